"""Owns a comparison as text: a table, then which choice dlog makes and how good it is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dlog.compare.measure import OWN, Comparison, Measured
from dlog.engine.maintain.chosen import Chosen
from dlog.engine.maintain.explain_offers import size_text, time_text
from dlog.engine.maintain.strategies import FROM_SCRATCH

HEADER = ("strategy", "to build", "median", "total", "operations", "memory")
MOST_NAMES = 3


def table(comparison: Comparison) -> Iterator[str]:
    """Lines.  An arrow shows what dlog chooses itself."""
    yield _line(HEADER, "  ", "note")
    for run in comparison.runs:
        mark = "->" if run.name == OWN else "  "
        if run.refused:
            yield f"{mark} {run.name:<14} refused: {run.refused}"
        else:
            yield _line(cells(run), mark, note(comparison, run))
    yield ""
    yield from sentences(comparison)


def cells(run: Measured) -> tuple[str, ...]:
    is_scratch = run.name == FROM_SCRATCH
    return (
        run.name,
        "" if is_scratch else time_text(run.build * 1e6),
        time_text(run.median * 1e6),
        time_text(run.total * 1e6),
        "" if run.operations is None else f"{run.operations:,}",
        size_text(run.memory),
    )


def _line(texts: Sequence[str], mark: str, said: str) -> str:
    name, *others = texts
    widths = (10, 9, 9, 12, 11)
    figures = "".join(text.rjust(width) for text, width in zip(others, widths, strict=True))
    return f"{mark} {name:<14}{figures}  {said}".rstrip()


def note(comparison: Comparison, run: Measured) -> str:
    """What maintains the predicates if not the strategy alone; for how many transactions there is a time."""
    if run.name == OWN:
        return ways(run.chosen)
    if run.name == FROM_SCRATCH:
        measured = len(run.seconds)
        if measured < comparison.transactions:
            return f"everything is evaluated again; the first {measured:,} transactions only"
        return "everything is evaluated again"
    others = [c for c in run.chosen if c.refusal and not c.recursive]
    if not others:
        return ""
    fallback = " or ".join(dict.fromkeys(c.strategy for c in others))
    reasons = dict.fromkeys(c.refusal for c in others)
    count = len(reasons) - 1
    more = f", and {count} other reason{'' if count == 1 else 's'}" if count else ""
    return f"falls back to {fallback} for {_names(others)}: {next(iter(reasons))}{more}"


def ways(chosen: Sequence[Chosen]) -> str:
    """`delta for p, q; stages for r`, or just `delta`."""
    found: dict[str, list[Chosen]] = {}
    for one in chosen:
        found.setdefault(one.strategy, []).append(one)
    if len(found) == 1:
        return next(iter(found))
    return "; ".join(f"{name} for {_names(ones)}" for name, ones in found.items())


def _names(chosen: Sequence[Chosen]) -> str:
    """Of the predicates, as the user has them; an auxiliary one counts as what it belongs to."""
    names = list(dict.fromkeys(name.split("'")[0] for one in chosen for name in one.predicates))
    more = f" and {len(names) - MOST_NAMES:,} more" if len(names) > MOST_NAMES else ""
    return ", ".join(names[:MOST_NAMES]) + more


def sentences(comparison: Comparison) -> Iterator[str]:
    """Why dlog chooses what it chooses; how far that is from the fastest; what was checked."""
    yield from reasons(comparison)
    own, fastest = comparison.own, comparison.fastest
    if not comparison.strategies:
        yield "No strategy can be selected here."
    elif fastest is own:
        yield "The choice is the fastest."
    else:
        yield f"The choice is within {comparison.ratio:.2f} times of the fastest, {fastest.name}."
    if unstored := comparison.unstored:
        names = ", ".join(unstored[:MOST_NAMES]) + (", ..." if len(unstored) > MOST_NAMES else "")
        yield f"All rows were stored here, whatever the mode (.materialize) of {names}."
    measured, available = comparison.transactions, comparison.available
    count = f"{measured:,} transaction{'' if measured == 1 else 's'}"
    if measured < available:
        count += f" of {available:,}, for lack of time"
    if failed := comparison.failed:
        verb = "transaction fails and is" if len(failed) == 1 else "transactions fail and are"
        places = ", ".join(failed[:MOST_NAMES]) + (", ..." if len(failed) > MOST_NAMES else "")
        yield f"{len(failed):,} {verb} left out: {places}."
    yield f"All strategies gave the same answers as evaluation from scratch, after {count}."


def reasons(comparison: Comparison) -> Iterator[str]:
    """One line for each strategy and reason of the own choice."""
    found: dict[tuple[str, str], list[Chosen]] = {}
    for one in comparison.own.chosen:
        found.setdefault((one.strategy, one.reason), []).append(one)
    for (strategy, reason), ones in found.items():
        which = "" if len(found) == 1 else f" for {_names(ones)}"
        yield f"dlog chooses {strategy}{which}" + (f", because {reason}." if reason else ".")
