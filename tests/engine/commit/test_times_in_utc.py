"""Times in UTC need no database of time zones, which not every system has."""

import datetime as dt

import pyarrow as pa
import pytest

import dlog
from dlog.values.timestamp import TimestampType

SOURCE = """
    login(user, at) -> string(user), timestamp(at).
    login("ann", "2026-03-29T00:30:00Z").  login("bob", "2026-03-29T03:30:00.5+02:00").
    parts(year(at), weekday(at), hour(at), to_string(at)) <- login(_, at).
    read(user) <- login(user, at), to_timestamp(to_string(at)) = at.
"""
ANN = dt.datetime(2026, 3, 29, 0, 30, tzinfo=dt.UTC)
BOB = dt.datetime(2026, 3, 29, 1, 30, 0, 500_000, dt.UTC)


def test_invariant_times_in_utc_without_time_zones(monkeypatch: pytest.MonkeyPatch) -> None:
    """A zone that is in no database stands for UTC where there is none."""
    monkeypatch.setattr(TimestampType, "arrow", lambda type: pa.timestamp("us", "Nowhere/Land"))
    db = dlog.Database(source=SOURCE)
    texts = "2026-03-29T00:30:00Z", "2026-03-29T01:30:00.500000Z"
    assert db["login"].rows() == [("ann", ANN), ("bob", BOB)]
    assert {at.tzinfo for _, at in db["login"].rows()} == {dt.UTC}
    assert db["parts"].rows() == [(2026, 7, 0, texts[0]), (2026, 7, 1, texts[1])]
    assert db["read"].rows() == [("ann",), ("bob",)]
    assert texts[1] in db.why(f'login("bob", "{texts[1]}")')
