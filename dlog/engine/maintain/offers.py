"""Owns the choice of a stratum's strategy: each makes an offer with its cost, or refuses; the cheapest wins.

Uses statistics only.  Knows no strategy by name: `dlog.engine.maintain.strategies` lists them.

    cost  =  per_transaction + per_row + build / transactions that the choice is expected to last
             + bytes * a weight                                   of a transaction of one row, in us
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from dlog.engine.maintain.body_changes import assignments
from dlog.engine.maintain.rule_strategy import Method, RuleChoice, RuleStrategy
from dlog.engine.maintain.strategies import REGISTRY, Entry
from dlog.engine.maintain.strategy import Strategy
from dlog.engine.state.store import Store
from dlog.errors import UnsupportedError
from dlog.ir.functors import calls
from dlog.ir.rules import Program, Rule, Stratum
from dlog.planning.stored_calls import why_not_stored

# Joins produced 8 million assignments a second on a star of six relations.
PER_ASSIGNMENT = 1 / 8
LASTS = 15  # one-row transactions for each row: then there are 16 times as many rows, and all are asked again
PER_BYTE = 1e-8  # so that memory decides only where times are about equal
RECURSIVE = "it is recursive"
SUBSUMES = "rows that were removed come back when the rows that subsume them go"
EQUIVALENCE = "it is an equivalence relation"
TOTALS = "it has recursive sums or counts, which may support themselves"
MEMORY = "its rows depend on those that it had"
SEQUENCE = "it is a sequence"
NOT_STORED = "the relation of its head is not stored"
# A transaction of one row, by the path that it takes (`benchmarks/strategies.py`: the short path took 10 to
# 35 us for rules of one to three atoms, the general path 190 to 350 us, with ten aggregates 740 to 810 us).
SHORT_PATH = 20.0
GENERAL_PATH = 250.0
PER_AGGREGATE = 50.0  # there
# The change of a head that is not stored, by deltas: rows that the short path takes, the general path where a
# changed row gives more, and each row of the change.
SHORT_ROWS, GENERAL_CHANGES, PER_CHANGED_ROW = 256, 210.0, 0.035
MUCH_SLOWER = 1.5  # below this, the memory that methods need decides between them


@dataclass(frozen=True)
class Offer:
    strategy: str
    reason: str
    per_row: float  # us for each changed row
    per_transaction: float  # us
    bytes: float  # beyond the relations and column orders that exist
    build: float  # us, once
    on_request: str = ""  # why it is chosen only if the user asks for it
    over_cone: bool = False  # whether it absorbs auxiliary strata: see `dlog.engine.maintain.cones`

    def cost(self, rows: int) -> float:
        """Of a transaction of one row, for a stratum that reads this many."""
        shared = self.build / (LASTS * max(rows, 1))
        return self.per_transaction + self.per_row + shared + PER_BYTE * self.bytes


@dataclass(frozen=True)
class Refusal:
    strategy: str
    reason: str


@dataclass
class Question:
    """Which strategy is to maintain a stratum?"""

    program: Program
    stratum: Stratum
    store: Store
    requested: str | None = None  # the strategy that the user requested
    others: Collection[Strategy] = ()  # strategies of other strata, which may share state
    given_up: Mapping[str, str] = field(default_factory=dict)  # strategies that failed, and why
    given: Program | None = None  # the program without stored primitives
    absorbable: Sequence[Stratum] = ()  # auxiliary strata below that nothing else reads, in order
    # For the costs of strategies that took longer than estimated: see `dlog.engine.maintain.measured`.
    factors: Mapping[str, float] = field(default_factory=dict)
    changes_only: bool = False  # whether the relation of its head is not stored
    refused: list[str] = field(default_factory=list)  # the reasons of those that were asked first
    refusals: list[Refusal] = field(default_factory=list)  # of all strategies asked
    times: dict[str, float] = field(default_factory=dict, init=False)  # us by strategy

    @cached_property
    def rows(self) -> int:
        """Of all that the stratum reads."""
        return sum(map(self.store.rows, self.stratum.reads))

    @cached_property
    def assignments(self) -> float:
        """The estimated number of assignments of the bodies."""
        return sum(assignments(self.store, rule) for rule in self.stratum.rules)

    @cached_property
    def classes(self) -> dict[str, str]:
        """The predicates with classes in the stratum, with their equivalence relations."""
        return self.program.classes_in(self.stratum)

    @cached_property
    def remembered(self) -> tuple[str, ...]:
        """The predicates of the stratum whose rows depend on those that they had."""
        return self.program.remembered_in(self.stratum)

    @cached_property
    def has_calls(self) -> bool:
        rules = (*self.stratum.rules, *self.stratum.subsumptions)
        return any(next(calls(rule.body), None) is not None for rule in rules)

    @cached_property
    def uncalled(self) -> str | None:
        """Why the calls of functors in the stratum cannot be followed, if they cannot."""
        return why_not_stored(self.program, self.stratum)

    @property
    def assignments_of_row(self) -> float:
        """The estimated number of assignments that a row is part of."""
        return self.assignments / max(self.rows, 1)

    @cached_property
    def tables(self) -> frozenset[str]:
        """Predicates that never change."""
        return frozenset(self.program.directed("table"))

    @cached_property
    def changing(self) -> list[str]:
        """The predicates that are read and may change."""
        return sorted(self.stratum.reads - self.tables)

    def per_transaction(self, short: float, general: float, is_short: Callable[[str], bool]) -> float:
        """The mean over what may change, if some of it takes the short path; on the other one aggregates
        have a price of their own."""
        aggregates = PER_AGGREGATE * sum(len(rule.aggregates) for rule in self.stratum.rules)
        times = [short if is_short(name) else general + aggregates for name in self.changing]
        return sum(times) / max(1, len(times))

    @cached_property
    def cone_time(self) -> float:
        """What a row costs because of the strata that can be absorbed, in us: there, and here for the groups
        that it changes there.  0 for a strategy over the cone.
        """
        time, changed = 0.0, dict[str, float]()
        for stratum in self.absorbable:
            below = replace(self, stratum=stratum, absorbable=())
            found = below.assignments_of_row + below._assignments_of(changed)
            aggregates = sum(len(rule.aggregates) for rule in stratum.rules)
            time += GENERAL_PATH + PER_AGGREGATE * aggregates + PER_ASSIGNMENT * found
            for name in stratum.predicates:
                rows = self.store.rows(name)  # without aggregates, most still have another derivation
                changed[name] = min(found if aggregates else found * rows / max(below.assignments, 1), rows)
        return time + PER_ASSIGNMENT * self._assignments_of(changed)

    def _assignments_of(self, changed: Mapping[str, float]) -> float:
        """Those that change with so many groups, each of which is a row that goes and one that comes."""
        shares = (n / max(self.store.rows(p), 1) for p, n in changed.items() if p in self.stratum.reads)
        return 2 * self.assignments * sum(shares)

    @cached_property
    def rule_choices(self) -> list[RuleChoice]:
        """The method of each rule.  REQUIRES: the stratum is not recursive."""
        return [_choose_method(self, rule) for rule in self.stratum.rules]

    def explained_choices(self) -> list[RuleChoice]:
        """The same; their reasons include why strategies asked earlier refused."""
        if not self.refused:
            return self.rule_choices
        why = "; ".join(self.refused)
        if self.requested is not None:
            return [replace(choice, reason=why) for choice in self.rule_choices]
        return [replace(choice, reason=f"{choice.reason}; {why}") for choice in self.rule_choices]


# Of a stratum


def choose(question: Question) -> Strategy:
    """The requested strategy, if possible; else the cheapest, the earlier in the list if equal."""
    for entry in _candidates(question):
        try:
            strategy: Strategy = entry.offers.make(entry.name, question)
        except UnsupportedError as error:
            question.refused.append(error.message)
        else:
            strategy.offered_as = entry.name
            return strategy
    raise AssertionError("the last resort never refuses")


def made_by_rule(question: Question) -> RuleStrategy:
    """The first strategy of those that are chosen rule by rule.  REQUIRES: the stratum is not recursive."""
    entry = next(entry for entry in REGISTRY if entry.by_rule)
    strategy: RuleStrategy = entry.offers.make(entry.name, replace(question, requested=entry.name))
    return strategy


def _candidates(question: Question) -> Iterator[Entry]:
    """Best first."""
    entries = [entry for entry in _entries(question) if not entry.last_resort]
    if question.requested is None:
        able = [entry for entry in entries if _refusal(entry, question) is None]
        # Rules have chosen their methods already: those of strategies before the last one are not theirs.
        methods = [entry for entry in able if entry.by_rule]
        able = [entry for entry in able if entry not in methods[:-1]]
        if len(able) > 1:  # otherwise there is nothing to compare
            able.sort(key=lambda entry: _offer(entry, question).cost(question.rows))
        yield from able
    else:
        entries.sort(key=lambda entry: entry.name != question.requested)
        for entry in entries:
            refusal = _refusal(entry, question)
            if refusal is None:
                yield entry
            elif (
                entry.name == question.requested and not entry.by_rule
            ):  # otherwise each rule gives its reason
                question.refused = [refusal]
    yield from (entry for entry in REGISTRY if entry.last_resort)


def _entries(question: Question) -> list[Entry]:
    """All strategies; those for special predicates and for functors only where there is one."""
    return [entry for entry in REGISTRY if _is_concerned(entry, question)]


def _is_concerned(entry: Entry, question: Question) -> bool:
    if entry.last_resort:
        return True
    if entry.classes:
        return bool(question.classes)
    if entry.sequences:
        return question.stratum.sequence is not None
    if entry.subsumptions:
        return bool(question.stratum.subsumptions)
    if entry.memory:
        return bool(question.remembered)
    return question.has_calls or not entry.calls


def _refusal(entry: Entry, question: Question) -> str | None:
    if entry.name in question.given_up:
        question.refused.append(question.given_up[entry.name])
        return question.given_up[entry.name]
    if question.changes_only and not entry.changes_only:
        return NOT_STORED
    if question.classes and not entry.classes:
        return EQUIVALENCE
    if question.remembered and not entry.memory:
        return MEMORY
    if question.stratum.sequence is not None and not entry.sequences:
        return SEQUENCE
    reason = _peculiar(entry, question) or _unlike_calls(entry, question)
    reason = reason or entry.offers.refuse(entry.name, question)
    if reason is not None and not entry.on_request:
        question.refusals.append(Refusal(entry.name, reason))
    return reason


def _peculiar(entry: Entry, question: Question) -> str | None:
    """Why a stratum of a kind that most strategies cannot maintain is refused."""
    if entry.last_resort:
        return None
    if question.stratum.subsumptions and not entry.subsumptions:
        return SUBSUMES
    return TOTALS if question.stratum.totals and not entry.totals else None


def _unlike_calls(entry: Entry, question: Question) -> str | None:
    """Why a strategy cannot maintain a stratum that calls functors, if it does."""
    if not question.has_calls or entry.last_resort:
        return None
    return question.uncalled or (None if entry.calls else "it has values of a functor")


def _offer(entry: Entry, question: Question) -> Offer:
    offer: Offer = entry.offers.offer(entry.name, question)
    factor = question.factors.get(entry.name, 1.0)
    time = factor * offer.per_transaction + (0.0 if offer.over_cone else question.cone_time)
    return replace(offer, per_transaction=time, per_row=factor * offer.per_row)


def estimate_of(name: str, question: Question) -> Offer | None:
    """What a strategy would cost without what it may absorb; None: it is the last resort."""
    entry = next(entry for entry in REGISTRY if entry.name == name)
    asked = replace(question, requested=name, refused=[], refusals=[], factors={})
    return None if entry.last_resort else entry.offers.offer(name, asked)


def all_offers(question: Question) -> Iterator[Offer | Refusal]:
    """The answer of every strategy, in list order.  Each is asked as if the user had requested it."""
    return (answer_of(entry, question) for entry in _entries(question))


def answer_of(entry: Entry, question: Question) -> Offer | Refusal:
    """The answer of one strategy, as if the user had requested it."""
    reason = _unless_made(entry, replace(question, refused=[], refusals=[]))
    wished = replace(question, requested=entry.name, refused=[], refusals=[])
    if reason is not None and (refusal := _unless_made(entry, wished)) is not None:
        return Refusal(entry.name, refusal)
    return replace(_offer(entry, wished), on_request=reason or "")


def _unless_made(entry: Entry, question: Question) -> str | None:
    """Why a strategy refuses, if it does: some reasons appear only when it is made."""
    if (reason := _refusal(entry, question)) is not None:
        return reason
    try:
        entry.offers.make(entry.name, question)
    except UnsupportedError as error:
        return error.message
    return None


# Of a rule


@dataclass(frozen=True)
class RuleOffer:
    """A method that can find the change of a rule's body."""

    way: str
    method: Method
    need: Callable[[], Need]


@dataclass(frozen=True)
class Need:
    """What a method needs beyond what exists, and the text for it."""

    bytes: float
    text: str
    weight: float = 1.0  # of a byte, relative to other methods
    per_transaction: float = SHORT_PATH  # us for one row


def _choose_method(question: Question, rule: Rule) -> RuleChoice:
    said = [
        entry.offers.rule_offer(entry.name, question, rule)
        for entry in REGISTRY
        if entry.by_rule
        and (entry.name == question.requested or not entry.on_request)
        and (entry.changes_only or not question.changes_only)
    ]
    if question.changes_only:
        said += [Refusal("", NOT_STORED)]
    offers = [one for one in said if isinstance(one, RuleOffer)]
    refusals = {one.strategy: one.reason for one in said if isinstance(one, Refusal)}
    if question.requested is None:
        return _least([_corrected(offer, question) for offer in offers], "; ".join(refusals.values()))
    for offer in offers:
        if offer.way == question.requested:
            return RuleChoice(offer.way, "it was requested", offer.method)
    return RuleChoice(offers[0].way, refusals.get(question.requested, ""), offers[0].method)


def _corrected(offer: RuleOffer, question: Question) -> RuleOffer:
    """With the time that was measured, if that was far from the estimate."""
    factor = question.factors.get(offer.way)
    if factor is None:
        return offer

    def need() -> Need:
        found = offer.need()
        return replace(found, per_transaction=factor * found.per_transaction)

    return replace(offer, need=need)


def _least(offers: Sequence[RuleOffer], refusals: str) -> RuleChoice:
    """The method that needs the least memory, unless the first one is much slower than another; the first
    one, without asking others, if it needs nothing."""
    first, *others = offers
    if not others:
        return RuleChoice(first.way, refusals, first.method)
    need = first.need()
    if not need.bytes and need.per_transaction <= SHORT_PATH:
        return RuleChoice(first.way, need.text, first.method)
    needs = [need, *(offer.need() for offer in others)]
    pairs = [*zip(offers, needs, strict=True)]
    quick, least = min(pairs, key=lambda pair: pair[1].per_transaction)
    if need.per_transaction > MUCH_SLOWER * least.per_transaction:
        slow = f"{need.per_transaction:,.0f} us by {first.way}"
        text = f"a row takes about {least.per_transaction:,.0f} us, {slow}"
        return RuleChoice(quick.way, text, quick.method)
    if not need.bytes:
        return RuleChoice(first.way, need.text, first.method)
    chosen, _ = min(pairs, key=lambda pair: pair[1].bytes * pair[1].weight)
    return RuleChoice(chosen.way, ", ".join(need.text for need in needs), chosen.method)
