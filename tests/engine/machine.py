"""Owns the machine that makes random transactions on a random program, and what must be true after each.

A transaction inserts, erases and upserts base facts, adds and removes rules and constraints, is rolled back,
or is aborted by a conflict, by a limit or by Ctrl-C.  After each of them every predicate is what the naive
evaluator gives, what DuckDB gives where SQL can say it, and what the engine gives from scratch; every
structure passes its check; and the commit has reported the net difference.  A failed transaction changes
nothing.

    run_state_machine_as_test(machine(strategies=(None, "delta")), settings=...)

The oracles get their program by checking its text again, never from the database.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import lru_cache

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import dlog
from dlog.engine.commit.commits import Commit, RecordedSummary
from dlog.engine.maintain import maintain
from dlog.engine.maintain.heads import sets
from dlog.engine.maintain.trace.offer import TRACE
from dlog.engine.state.limits import Limits, Watch
from dlog.errors import ConstraintError, DataError, DlogError, Interrupted, LimitError, SourceError
from dlog.ir.rules import Program
from dlog.storage.relation.relation import Relation
from tests.engine.mixed import MIXED, mixed
from tests.oracle import sql
from tests.oracle.bodies import Draw, Features, Predicate
from tests.oracle.changes import Change, Transaction, apply_all, transactions
from tests.oracle.compare import same_program
from tests.oracle.domains import VALUES, literal
from tests.oracle.heads import one_head_each
from tests.oracle.naive import Facts, base_facts, evaluate_base
from tests.oracle.programs import ALL, Author
from tests.oracle.values import DoesNotFit

REFUSED = (ConstraintError, DataError, OverflowError, DoesNotFit)  # what an oracle raises
KINDS = (
    *["change"] * 4,
    *("change_and_undo", "roll_back", "constrain"),
    *["abort", "add_rules", "remove_rule"] * 2,
)
Contents = dict[str, list]  # type: ignore[type-arg]


@contextmanager
def short_ways() -> Iterator[list[bool]]:
    """For every commit of a few rows, whether it took the short path."""
    short: list[bool] = []
    commit_rows = dlog.Database._commit_rows

    def counted(db: dlog.Database, transaction: dlog.engine.transaction.Transaction) -> object:
        found = commit_rows(db, transaction)
        short.append(found is not None)
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dlog.Database, "_commit_rows", counted)
        yield short


def went_short(commit: Commit) -> bool:
    """Whether a commit took the short path of a few rows, and there was something to do."""
    return not isinstance(commit._summary, RecordedSummary)


class Seen(Counter[str]):
    """What a run of machines met, to tell that it was not idle."""

    def share(self, part: str, whole: str) -> float:
        return self[part] / max(1, self[whole])


def machine(
    strategies: tuple[str | None, ...] = (None, "delta"), features: Features = ALL, seen: Seen | None = None
) -> type[TransactionMachine]:
    """A machine whose database maintains rules by one of the strategies, or MIXED; it adds to `seen`."""
    return type(
        "TransactionMachine",
        (TransactionMachine,),
        {"strategies": strategies, "features": features, "seen": Seen() if seen is None else seen},
    )


class TransactionMachine(RuleBasedStateMachine):
    strategies: tuple[str | None, ...] = (None,)
    features: Features = ALL
    seen: Seen = Seen()

    def __init__(self) -> None:
        super().__init__()
        self.stack = ExitStack()
        self.started = self.fresh = False

    def teardown(self) -> None:
        self.stack.close()

    @initialize(data=st.data())
    def start(self, data: st.DataObject) -> None:
        self.author = data.draw(authors(self.features), label="program")
        self.away: list[str] = []
        self.constraints: list[str] = []
        self.strategy = data.draw(st.sampled_from(self.strategies), label="strategy")
        self.stack.enter_context(ways(*data.draw(WAYS, label="ways")))
        try:
            self.program = dlog.check(self.text)
            self.base = base_facts(self.program)
            self.expected = evaluate_base(self.program, self.base)
        except (SourceError, *REFUSED):
            self.seen["not started"] += 1
            return
        self.taken = self.text
        if self.strategy == MIXED:
            seed, restless = data.draw(st.integers(0, 99), label="seed of the ways"), data.draw(st.booleans())
            self.stack.enter_context(mixed(seed, restless))
        self.db = self.opened(data)
        self.started = self.fresh = True
        self.seen["programs"] += 1
        self.begin(data)

    def opened(self, data: st.DataObject) -> dlog.Database:
        return dlog.Database(
            source=self.author.text, strategy=TRACE if self.strategy == MIXED else self.strategy
        )

    def begin(self, data: st.DataObject) -> None:
        """What a machine of another kind draws first."""

    @property
    def text(self) -> str:
        """The program for the oracles: every predicate is declared, also where its rules are gone, and every
        head has a rule of its own."""
        lines = [*self.author.undeclared(), *self.author.lines, *self.constraints]
        return "\n".join(map(one_head_each, lines)) + "\n"

    # Transactions

    @precondition(lambda self: self.started)
    @rule(data=st.data(), kind=st.sampled_from(KINDS))
    def step(self, data: st.DataObject, kind: str) -> None:
        """One transaction.  A single rule for all kinds: hypothesis leaves whole rules out of a run."""
        getattr(self, kind)(data)

    def change(self, data: st.DataObject) -> None:
        """Facts come and go and get new values."""
        size = data.draw(st.sampled_from((1, 1, 2, 4, 9)), label="size")
        self.commit(self.changes(data, size, derived=data.draw(st.booleans(), label="derived, too")))

    def change_and_undo(self, data: st.DataObject) -> None:
        """Twice the way: there, and back to where it began."""
        before = {name: set(rows) for name, rows in self.base.items()}
        self.commit(self.changes(data, 3, derived=False))
        self.compare()
        back = [
            Change(op, name, row, self.program.predicates[name].is_functional)
            for name, rows in before.items()
            for op, some in (("-", self.base[name] - rows), ("+", rows - self.base[name]))
            for row in sorted(some, key=repr)
        ]
        if back:
            self.commit(back)

    def roll_back(self, data: st.DataObject) -> None:
        transaction = self.changes(data, 3, derived=True)
        with self.unchanged(), self.db.transaction() as tx:
            enter(tx, transaction)
            tx.rollback()
        self.seen["rolled back"] += 1

    def add_rules(self, data: st.DataObject) -> None:
        """A rule that went away comes back, one more is written, or a whole predicate with its rules."""
        lines, predicates = list(self.author.lines), list(self.author.predicates)
        if self.away and data.draw(st.booleans(), label="back"):
            self.author.lines.append(data.draw(st.sampled_from(self.away), label="comes back"))
        else:
            data.draw(more(self.author), label="added")
        added = [line for line in self.author.lines[len(lines) :] if line not in lines]
        self.author.lines = [*lines, *added]  # what is there already is not there twice
        if not self.change_program(lambda: self.db.add_rules("\n".join(added)), added):
            self.author.lines, self.author.predicates = lines, predicates
            return
        self.away = [text for text in self.away if text not in added]
        self.seen["rules added"] += 1

    def remove_rule(self, data: st.DataObject) -> None:
        rules = [line for line in self.author.lines if "<-" in line]
        if not rules:
            return
        gone, lines = data.draw(st.sampled_from(rules), label="gone"), list(self.author.lines)
        self.author.lines.remove(gone)
        if self.change_program(lambda: self.db.remove_rule(gone), []):
            self.away.append(gone)
            self.seen["rules removed"] += 1
        else:
            self.author.lines = lines

    def constrain(self, data: st.DataObject) -> None:
        """A constraint comes, which may refuse what is there and what is to come, or goes."""
        before = list(self.constraints)
        if self.constraints and data.draw(st.booleans(), label="goes"):
            text = self.constraints.pop(data.draw(st.integers(0, len(before) - 1)))
            step: Callable[[], object] = lambda: self.db.remove_rule(text)  # noqa: E731
        else:
            text = constraint(data, data.draw(st.sampled_from(self.author.predicates)))
            if text in before:
                return
            self.constraints.append(text)
            step = lambda: self.db.add_rules(text)  # noqa: E731
        if not self.change_program(step, []):
            self.constraints = before

    def abort(self, data: st.DataObject) -> None:
        """Ctrl-C at some look at the limits, or a limit of derived rows.  Quick ones get through."""
        transaction = self.changes(data, 5, derived=True)
        if not self.accepts(transaction):
            return
        look = data.draw(st.integers(0, 6), label="interrupted at look")
        limited = look == 0
        self.db.limits = Limits(rows=0) if limited else Limits(timeout=3600)  # the general path, with checks
        relations = self.db.store.relations
        try:
            with interrupted_at(look):
                self.commit(transaction)
        except (Interrupted, LimitError):
            self.has_relations(relations)
            self.db.limits = Limits()
            self.same_as_before()
            self.seen["aborted"] += 1
        finally:
            self.db.limits = Limits()

    # What must be true

    @invariant()
    def compare(self) -> None:
        """All opinions on what follows from the base facts agree."""
        if not self.fresh:
            return
        self.fresh = False
        self.seen["compared"] += 1
        rows = contents(self.db)
        same_program(rows, self.expected, self.program)
        self.db.check()
        self.db.verify()
        said = second_opinion(self.taken, self.base)
        if said is not None:
            same_program(rows, said, self.program)
            self.seen["compared with DuckDB"] += 1
        derived = [name for name in rows if name.startswith("p")]
        self.seen["derived"] += len(derived)
        self.seen["derived with rows"] += sum(bool(rows[name]) for name in derived)

    def changes(self, data: st.DataObject, size: int, derived: bool) -> Transaction:
        found = data.draw(
            transactions(self.program, most=1, size=size, derived=derived, base=self.base, conflicts=True),
            label="transaction",
        )
        return found[0]

    def accepts(self, transaction: Transaction) -> bool:
        try:
            evaluate_base(self.program, self.after(transaction))
        except REFUSED:
            return False
        return True

    def after(self, transaction: Transaction) -> Facts:
        later = {name: set(rows) for name, rows in self.base.items()}
        apply_all(later, transaction)
        return later

    def commit(self, transaction: Transaction) -> None:
        """Both sides take a transaction, or both refuse it."""
        later = self.after(transaction)
        try:
            expected = evaluate_base(self.program, later)
        except REFUSED:
            self.refuses(lambda: self.take(transaction))
            return
        self.take(transaction)
        self.base, self.expected, self.fresh = later, expected, True
        self.seen["transactions"] += 1

    def take(self, transaction: Transaction) -> None:
        before = self.shown()
        with self.db.transaction() as tx:
            enter(tx, transaction)
        assert tx.commit_info is not None
        self.reported(tx.commit_info, before)

    def shown(self) -> Contents:
        """All rows, to compare a commit with."""
        return contents(self.db)

    def reported(self, commit: Commit, before: Contents) -> None:
        check_commit(commit, before, contents(self.db))

    def same_relations(self, relations: dict[str, Relation], kept: dict[str, Relation]) -> None:
        """Of a version that others may hold."""
        assert relations == kept

    def has_relations(self, relations: dict[str, Relation]) -> None:
        """After a failure.  Ctrl-C drops the state of strategies."""
        now = self.db.store.relations
        assert now is relations or all(relations[name] is relation for name, relation in now.items())

    def change_program(self, step: Callable[[], object], added: list[str]) -> bool:
        """Both sides take another program, or both refuse it: its text, or what follows from it."""
        try:
            program = dlog.check(self.text)
            found = base_facts(program)
            base = {name: self.base.get(name, set()) | (found[name] if added else set()) for name in found}
            base.update({name: self.base[name] for name in self.base if not _has_facts(name, added)})
            base = {name: base[name] for name in program.predicates}
            expected = evaluate_base(program, base)
        except (SourceError, *REFUSED) as error:
            refused = (SourceError,) if isinstance(error, SourceError) else (ConstraintError, DataError)
            self.refuses(step, refused)
            return False
        before = self.shown()
        commit = step()
        self.reported(commit, before)  # type: ignore[arg-type]
        self.program, self.base, self.expected, self.fresh = program, base, expected, True
        self.taken = self.text
        return True

    def refuses(
        self, step: Callable[[], object], kinds: tuple[type[DlogError], ...] = (ConstraintError, DataError)
    ) -> None:
        with self.unchanged():
            try:
                step()
            except kinds:
                self.seen["refused"] += 1
                return
            raise AssertionError("taken, where the oracle refuses")

    @contextmanager
    def unchanged(self) -> Iterator[None]:
        """Nothing of the state is another one afterwards."""
        relations, program, version = self.db.store.relations, self.db.program, self.db.version
        kept = dict(relations)
        yield
        self.has_relations(relations)
        self.same_relations(relations, kept)
        assert (self.db.program, self.db.version) == (program, version)
        self.same_as_before()

    def same_as_before(self) -> None:
        self.fresh = True
        self.compare()


@st.composite
def authors(draw: Draw, features: Features) -> Author:
    """Programs that can be written further, with rows in nearly all predicates."""
    author = Author(draw, features.without("deltas"))
    author.base(10)
    author.picks_with_rows(4)
    if not draw(st.booleans()) or not _infers(author):
        author.declare_all()
    return author


def _infers(author: Author) -> bool:
    """Whether predicates that are not declared get the types that the author means; a date may be a text."""
    try:
        predicates = dlog.check(author.text).predicates
    except SourceError:
        return False
    return all([c.type.name for c in predicates[p.name].columns] == [*p.types] for p in author.predicates)


@st.composite
def more(draw: Draw, author: Author) -> list[str]:
    """One more rule, or a whole predicate with its rules, which the author has added to the program."""
    author.draw, before = draw, len(author.lines)
    if draw(st.booleans()):
        draw(st.sampled_from(author.kinds()))()
    else:
        derived = [p for p in author.predicates if p.name.startswith("p")]
        author.another_rule(draw(st.sampled_from(derived or author.predicates)))
    author.declare_all()
    return author.lines[before:]


def _has_facts(name: str, lines: list[str]) -> bool:
    facts = [line for line in lines if "->" not in line and "<-" not in line]
    return any(line.startswith((f"{name}(", f"{name}[")) for line in facts)


def enter(tx: dlog.engine.transaction.Transaction, transaction: Transaction) -> None:
    for change in transaction:
        {"+": tx.insert, "-": tx.erase, "^": tx.upsert}[change.op](change.predicate, [change.row])


def contents(db: dlog.Database) -> Contents:
    return {name: db[name].rows() for name in db.predicates()}


def check_commit(commit: dlog.engine.transaction.Commit, before: Contents, after: Contents) -> None:
    """A commit reports the net difference of the two states."""
    changes = commit.changes
    for name, rows in after.items():
        old, new = set(map(repr, before.get(name, ()))), set(map(repr, rows))
        found = (changes[name].inserted, changes[name].erased) if name in changes else None
        inserted, erased = (set(map(repr, part.rows())) for part in found) if found else (set(), set())
        assert (inserted, erased) == (new - old, old - new), name


def constraint(data: st.DataObject, predicate: Predicate) -> str:
    """Some column never holds some value."""
    names = [f"x{i}" for i in range(len(predicate.types))]
    column = data.draw(st.integers(0, len(names) - 1), label="column")
    value = data.draw(st.sampled_from(VALUES[predicate.types[column]]), label="value")
    return f"{predicate.apply(names)} -> {names[column]} != {literal(value)}."


def second_opinion(text: str, base: Facts) -> Facts | None:
    """DuckDB's, where SQL can say the program and no number leaves its range."""
    program, queries = _said(text)
    return None if queries is None else sql.run(program, queries, base)


@lru_cache(maxsize=8)
def _said(text: str) -> tuple[Program, dict[str, str] | None]:
    program = dlog.check(text)
    return program, sql.translate(program)


# Other ways to keep heads up to date, which never change an answer


@contextmanager
def ways(existence: bool, small: int, bulk: float) -> Iterator[None]:
    joins = maintain.SMALL_CHANGE_WITH_STATE
    kept = sets.FAR_LARGER, maintain.SMALL_CHANGE, maintain.BULK
    sets.FAR_LARGER = 0 if existence else kept[0]
    maintain.SMALL_CHANGE = maintain.SMALL_CHANGE_WITH_STATE = small
    maintain.BULK = bulk
    try:
        yield
    finally:
        sets.FAR_LARGER, maintain.SMALL_CHANGE, maintain.BULK = kept
        maintain.SMALL_CHANGE_WITH_STATE = joins


WAYS = st.one_of(
    st.just((False, 64, 0.5)),
    st.tuples(st.booleans(), st.sampled_from((0, 3)), st.sampled_from((0.0, 0.3, 9.0))),
)


@contextmanager
def interrupted_at(call: int) -> Iterator[None]:
    """Ctrl-C at the n-th look at the limits; 0: never."""
    calls, check = [0], Watch.check

    def counting(self: Watch) -> None:
        calls[0] += 1
        if calls[0] == call:
            raise KeyboardInterrupt
        check(self)

    Watch.check = counting  # type: ignore[method-assign]
    try:
        yield
    finally:
        Watch.check = check  # type: ignore[method-assign]
