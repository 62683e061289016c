"""Owns how offers and refusals are printed: the chosen one first, then all others in list order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dlog.engine.maintain.offers import Offer, Refusal


def explain_offers(offers: Iterable[Offer | Refusal], chosen: str) -> Iterator[str]:
    """A table, and under each offer its reason.

    >>> offers = [Refusal("views", "it has no aggregate"), Offer("delta", "it is small", 0.3, 20, 0, 12)]
    >>> print("\\n".join(explain_offers(offers, "delta")))
    strategy      per transaction   per row     memory    to build
    delta                   20 us    0.3 us          0       12 us   chosen: it is small
    views         refused: it has no aggregate
    """
    said = sorted(offers, key=lambda one: one.strategy != chosen)
    yield f"{'strategy':<14}{'per transaction':>15}{'per row':>10}{'memory':>11}{'to build':>12}"
    for one in said:
        if isinstance(one, Refusal):
            yield f"{one.strategy:<14}refused: {one.reason}"
        else:
            times = f"{time_text(one.per_transaction):>15}{time_text(one.per_row):>10}"
            figures = f"{times}{size_text(one.bytes):>11}{time_text(one.build):>12}"
            yield f"{one.strategy:<14}{figures}   {_state(one, chosen)}"


def _state(offer: Offer, chosen: str) -> str:
    if offer.strategy == chosen:
        return f"chosen: {offer.reason}"
    if offer.on_request:
        return f"on request only: {offer.on_request}"
    return f"offered: {offer.reason}"


def time_text(microseconds: float) -> str:
    """
    >>> [time_text(us) for us in (0, 0.01, 0.31, 21.4, 123456, 2.5e6, 7.2e9)]
    ['0 us', '<0.1 us', '0.3 us', '21 us', '123 ms', '2.5 s', '7,200 s']
    """
    if microseconds >= 1e6:
        seconds = microseconds / 1e6
        return f"{seconds:,.0f} s" if seconds >= 10 else f"{seconds:.1f} s"
    if microseconds >= 1e4:
        return f"{microseconds / 1e3:,.0f} ms"
    if microseconds >= 10 or not microseconds:
        return f"{microseconds:,.0f} us"
    return f"{microseconds:.1f} us" if microseconds >= 0.05 else "<0.1 us"


def size_text(size: float) -> str:
    """
    >>> size_text(0), size_text(1200), size_text(8.6e6), size_text(1.7e12)
    ('0', '1,200 B', '8.6 MB', '1,700.0 GB')
    """
    if size >= 1e10:
        return f"{size / 1e9:,.1f} GB"
    if size >= 1e5:
        return f"{size / 1e6:,.1f} MB"
    return f"{size:,.0f} B" if size else "0"
