"""Owns the analysis of a join plan: where its run is sensitive to changes, and how each place is found again.

The *key variables* of a traced plan are the slots of its leaps at the top, up to the first other choice; if
that is a disjunction, also those that its branches all begin with.  A *context* is a binding of the first few
of them.  For each level of each atom there is a *watch*: it gives for
a surgery (prefix, key) of that atom the contexts that have to be evaluated again.

    free      the surgery is enough: every key variable of the context is in the atom itself.  The paper's
              case is an atom whose arguments are a prefix of the key order; constants do no harm
    wild      those that are missing are few for a given surgery: the run finds them itself (an item of the
              oracle that lets a variable have any value)
    traced    a sensitivity index has rows (prefix, a, b, other key variables)

Invariant.  For each context that a run reaches, and each key q of the variable that is bound next: if all
participants have q, each of them is sensitive at q; otherwise at least one that lacks q is.  Free and wild
ones are sensitive everywhere.  So a change of an atom at a key that no watch leads to changes no output.

Granularity.  `exact` notes each operation of an iterator, as the paper does.  `coarse` notes of a context:

    point     a participant that has no column before this one is taken out of the leap and sought instead,
              inside negations and branches too: it is sensitive at the keys that all others have
    span      every other participant from the first to the last key of those that are sensitive everywhere
    all       one participant, if none is sensitive everywhere: it becomes so

Of a *shared* leap, which does not depend on all of its context, only one participant has a watch, for what
is reached; what changes there is found by a plan of its own: see `dlog.sensitivity.shared`.

What coarse notes of a context follows from what is sensitive everywhere, so it changes only where the oracle
leads: after every cycle the index is the one that a fresh evaluation would make.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile
from math import inf

from dlog.lftj.plan import Exists, Holds, Leap, Not, Or, Participant, Plan, RangeStep, Seek, Slot, Step, Value
from dlog.lftj.traced_plan import ALL, COVER, EACH, POINT, SPAN, Note, TracedPlan, Word
from dlog.sensitivity.shared import OwnPlan, leader_of, own_plan

FREE, WILD, TRACED = "free", "wild", "traced"
EXACT, COARSE = "exact", "coarse"

# Where the value of a key variable of a context comes from: the place in the prefix, the key itself, the
# place among the others, or anywhere.
Source = tuple[str, int]
PREFIX, KEY, OTHER, ANY = "prefix", "key", "other", "any"


@dataclass(frozen=True)
class Watch:
    """`depth` is the number of key variables of the contexts that the watch leads to; of those of a `leap`
    the last one is the key itself.  `level` is -1 if only the emptiness of the atom's predicate matters."""

    atom: int
    level: int
    depth: int
    how: str
    prefix: tuple[Slot, ...]
    key: Slot | None
    others: tuple[Slot, ...]
    sources: tuple[Source, ...]
    is_leap: bool
    leap: int = -1  # its number, if it is one
    note: int = -1  # the number of the note, if it is traced
    below: bool = False  # whether the note is that of the level below: all rows of a prefix are meant
    own: OwnPlan | None = None  # of a shared leap: what finds the rows that matter

    @property
    def wild(self) -> tuple[int, ...]:
        """The depths at which any value matches."""
        return tuple(d for d, (kind, _) in enumerate(self.sources) if kind == ANY)


@dataclass(frozen=True)
class Watched:
    """A plan with all its watches; the machine runs `traced`."""

    traced: TracedPlan
    watches: tuple[Watch, ...]
    keys: tuple[Slot, ...]
    constants: dict[Slot, int] = field(default_factory=dict, compare=False)

    def is_exact(self, watch: Watch) -> bool:
        """Whether a watch is that of an exact leap that a guide can lead to."""
        return watch.is_leap and (watch.atom, watch.level) in self.traced.exact

    @property
    def indexed(self) -> tuple[Watch, ...]:
        """The watches that have a sensitivity index, by the number of their notes."""
        own = (w for w in self.watches if w.note >= 0 and not w.below)
        return tuple(sorted(own, key=lambda w: w.note))

    def widening(self, watch: Watch) -> Iterator[Watch]:
        """The other participants of a watch's leap whose intervals can be found by its contexts alone."""
        for other in self.watches:
            if other.how == TRACED and other.leap == watch.leap >= 0:
                slots = (*other.prefix, *other.others)
                if all(slot in self.keys or slot in self.constants for slot in slots):
                    yield other


# May the variables of these depths be anything?
MayRoam = Callable[[tuple[int, ...]], bool]


def watched(
    plan: Plan,
    granularity: str,
    may_roam: MayRoam = lambda depths: False,
    drop_free: bool = True,
    exact_at: Collection[Slot] = (),
    shared_at: Collection[Slot] = (),
) -> Watched:
    """O(size of the plan)^2.

    In a coarse trace the leaps that bind `exact_at` are exact, and those that bind key variables of
    `shared_at` are shared if they can be.  Without `drop_free` also free watches are traced: for the paper's
    examples.
    """
    survey = _Survey(plan, granularity, may_roam, drop_free, frozenset(exact_at), frozenset(shared_at))
    steps = survey.walk(plan.steps[:-1], True)
    survey.share_notes()
    guided = {(w.atom, w.level) for w in survey.watches if w.is_leap}
    covers = [replace(n, form=COVER) for n in survey.notes if n.form == EACH and (n.atom, n.level) in guided]
    traced = TracedPlan(
        replace(plan, steps=(*steps, plan.steps[-1])),
        (*survey.notes, *covers),
        tuple(survey.keys),
        frozenset(survey.exact),
    )
    return Watched(traced, tuple(survey.watches), tuple(survey.keys), dict(plan.constants))


@dataclass
class _Survey:
    plan: Plan
    granularity: str
    may_roam: MayRoam
    drop_free: bool
    exact_at: frozenset[Slot]
    shared_at: frozenset[Slot]
    keys: list[Slot] = field(default_factory=list)
    watches: list[Watch] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    exact: set[Participant] = field(default_factory=set)
    columns: dict[int, list[Slot]] = field(default_factory=dict)  # of each atom, what its levels hold
    at_top: bool = True  # before any choice but leaps
    most_keys: float = inf  # in the branches of a disjunction
    n_leaps: int = 0
    previous: Participant | None = None  # what the step before sought
    sought_before: dict[int, Participant] = field(default_factory=dict)  # the same of leaps, by depth

    def walk(self, steps: tuple[Step, ...], top: bool) -> tuple[Step, ...]:
        return tuple(out for step in steps for out in self.step(step, top))

    def step(self, step: Step, top: bool) -> Iterator[Step]:
        previous, self.previous = self.previous, None
        match step:
            case Leap():
                if previous is not None:
                    self.sought_before[len(self.keys) + 1] = previous
                yield from self.leap(step, top and self.at_top and len(self.keys) < self.most_keys)
                return
            case Seek():
                self.narrow(step.atom, step.level, step.operand, POINT)
                self.previous = (step.atom, step.level)
            case Value():
                self.narrow(step.atom, step.level, step.slot, ALL, is_value=True)
            case Holds():
                self.watches.append(Watch(step.atom, -1, 0, FREE, (), None, (), (), False))
            case Not():
                step = Not(self.walk(step.steps, False))
                self.previous = None
            case Exists():
                step = Exists(self.walk(step.steps, False))
                self.previous = None
            case Or():
                step = self.either(step, top)
                self.previous = None
            case RangeStep():
                self.at_top &= not top
        yield step

    def either(self, step: Or, top: bool) -> Or:
        """A disjunction: its branches are led by the same key variables, as far as their beginnings agree."""
        if not (top and self.at_top):
            return Or(tuple(self.walk(branch, False) for branch in step.branches))
        keys, limit = list(self.keys), self.most_keys
        self.most_keys = min(limit, len(keys) + len(_leading((step,))))
        branches = []
        for branch in step.branches:
            self.keys, self.at_top, self.previous = list(keys), True, None
            branches.append(self.walk(branch, True))
        self.most_keys, self.at_top = limit, False
        return Or(tuple(branches))

    # One level of an atom

    def watch(self, atom: int, level: int, key: Slot | None, is_leap: bool) -> Watch:
        """How contexts are found for a change of this level.  A leap's key is not bound yet."""
        is_exact = (atom, level) in self.exact or (self.granularity == EXACT and not is_leap)
        prefix = tuple(self.columns.get(atom, [])[:level])
        depth = len(self.keys) + is_leap
        known = dict.fromkeys([*prefix, *([key] if key is not None else [])])
        context = [*self.keys, *([key] if is_leap and key is not None else [])]
        others = tuple(slot for slot in context if slot not in known)
        missing = tuple(d for d, slot in enumerate(context) if slot not in known)
        how = FREE if self.drop_free else TRACED
        if missing:
            roams = not is_exact and 0 not in missing and self.may_roam(missing)
            how = WILD if roams else TRACED
        sources = tuple(_source(slot, prefix, key, others, how) for slot in context)
        leap = self.n_leaps if is_leap else -1
        return Watch(atom, level, depth, how, prefix, key, others, sources, is_leap, leap)

    def narrow(self, atom: int, level: int, slot: Slot, form: str, is_value: bool = False) -> None:
        """A step that narrows one level by itself."""
        watch = self.watch(atom, level, None if is_value else slot, False)
        self.add(watch, form)
        self.columns.setdefault(atom, []).append(slot)

    def add(self, watch: Watch, form: str, span: tuple[Participant, ...] = ()) -> None:
        if watch.how == TRACED:
            words: tuple[Word, ...] = (*watch.prefix, "a", "b", *watch.others)
            self.notes.append(Note(watch.atom, watch.level, words, form, span))
            watch = replace(watch, note=len(self.notes) - 1)
        self.watches.append(watch)

    def share_notes(self) -> None:
        """If a key is sought, and the level below is a participant of the very next leap, one index is
        enough.

        Its rows have the sought key in their prefix, whether the key is found, which the leap notes, or not,
        which the seek notes.  Nothing may come in between: if that fails nothing would be noted, a key that
        then disappears would not be missed, and one that reappears after the failure would lead nowhere.  For
        the same reason exact indices are not shared: an exact leap need not examine all of its participants.
        """
        for i, watch in enumerate(self.watches):
            if watch.note < 0 or self.notes[watch.note].form != POINT or watch.key is None:
                continue
            for lower in self.watches:
                is_next = self.sought_before.get(lower.depth) == (watch.atom, watch.level)
                if (
                    is_next
                    and lower.is_leap
                    and lower.how == TRACED
                    and (lower.atom, lower.level) not in self.exact
                    and (lower.atom, lower.level) == (watch.atom, watch.level + 1)
                ):
                    kept = self.notes[lower.note]
                    self.notes[lower.note] = replace(kept, missed=(watch.atom, watch.level))
                    self.watches[i] = replace(watch, note=lower.note, below=True)
        self.renumber()

    def renumber(self) -> None:
        """Leave out notes that have no watch."""
        own = [w.note for w in self.watches if w.note >= 0 and not w.below]
        numbers = {old: new for new, old in enumerate(sorted(own))}
        self.notes = [self.notes[old] for old in sorted(own)]
        self.watches = [replace(w, note=numbers[w.note]) if w.note >= 0 else w for w in self.watches]

    # Leaps

    def leap(self, step: Leap, guided: bool) -> Iterator[Step]:
        if self.granularity == EXACT or step.slot in self.exact_at:
            self.exact.update(step.participants)
        found = {p: self.watch(*p, step.slot if guided else None, guided) for p in step.participants}
        leader = self.leader(step, found) if guided and step.slot in self.shared_at else None
        if leader is None:
            sought, kept = self.parted(step, found)
            self.note_leap(kept, found)
        else:
            sought, kept = [], list(step.participants)
            self.share(step, leader, found)
        if guided:
            self.keys.append(step.slot)
            self.n_leaps += 1
        for atom, _ in kept:
            self.columns.setdefault(atom, []).append(step.slot)
        yield replace(step, participants=tuple(kept))
        for atom, level in sought:
            self.narrow(atom, level, step.slot, POINT)
            self.previous = (atom, level)
            yield Seek(atom, level, step.slot)

    def leader(self, step: Leap, found: dict[Participant, Watch]) -> Participant | None:
        """The leader of a leap that does not depend on all of its context."""
        prefixes = {p: watch.prefix for p, watch in found.items()}
        leader = leader_of(step, prefixes, {slot for slot, _ in self.plan.constants})
        return leader if leader is not None and found[leader].how != FREE else None

    def share(self, step: Leap, leader: Participant, found: dict[Participant, Watch]) -> None:
        """Only the leader has a watch: its index has the contexts that are reached."""
        watch = found[leader]
        if watch.how == WILD:
            sources = tuple(
                _source(slot, watch.prefix, watch.key, watch.others, TRACED)
                for slot in (*self.keys, step.slot)
            )
            watch = replace(watch, how=TRACED, sources=sources)
        prefixes = {p: watch.prefix for p, watch in found.items()}
        arity = len(watch.prefix) + 2 + len(watch.others)
        own = own_plan(self.plan, step, leader, prefixes, arity)
        self.add(replace(watch, own=own), ALL, (leader,))

    def parted(
        self, step: Leap, found: dict[Participant, Watch]
    ) -> tuple[list[Participant], list[Participant]]:
        """(Participants to be sought, those that stay in the leap)."""
        sought = [p for p, watch in found.items() if watch.how == TRACED and not watch.prefix]
        if not self.exact.isdisjoint(step.participants) or len(sought) == len(step.participants):
            return [], list(step.participants)
        return sought, [p for p in step.participants if p not in sought]

    def note_leap(self, kept: list[Participant], found: dict[Participant, Watch]) -> None:
        everywhere = tuple(p for p in kept if found[p].how != TRACED)
        if not self.exact.isdisjoint(kept):
            for p in kept:
                self.add(found[p], EACH)
            return
        if not everywhere:
            everywhere = (kept[0],)
        for p in kept:
            self.add(found[p], ALL if p in everywhere else SPAN, everywhere)


def _leading(steps: Sequence[Step]) -> list[Slot]:
    """The slots of the leaps that lead through some steps."""
    found: list[Slot] = []
    for step in steps:
        match step:
            case Leap():
                found.append(step.slot)
            case Or():
                return found + _common([_leading(branch) for branch in step.branches])
            case RangeStep():
                return found
    return found


def _common(lists: list[list[Slot]]) -> list[Slot]:
    """The common prefix of all lists."""
    alike = takewhile(lambda slots: len(set(slots)) == 1, zip(*lists, strict=False))
    return [slots[0] for slots in alike]


def _source(
    slot: Slot, prefix: tuple[Slot, ...], key: Slot | None, others: tuple[Slot, ...], how: str
) -> Source:
    if slot in prefix:
        return PREFIX, prefix.index(slot)
    if slot == key:
        return KEY, 0
    return (ANY, 0) if how == WILD else (OTHER, others.index(slot))
