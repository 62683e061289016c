"""Data of the small programs about values: strings, dates, times, decimals, numbers, booleans."""

import itertools
import re
from collections import Counter
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from math import ceil, floor, fsum, sqrt

from common import Duration, Example, Scaled, rounded, utc_text


def main() -> None:
    strings()
    text_order()
    dates()
    time_zones()
    decimals()
    unsigned()
    floats()
    booleans()
    arithmetic()
    conversions()


def strings() -> None:
    example = Example("strings")
    rng = example.random
    names = ["ada", "bob.marsh", "C_Dorn", "eve", "Fritz", "gil.b", "hanna", "ivo", "jo99", "K.Lund"]
    domains = ["mail.org", "uni.EDU", "cs.ac.uk", "Example.com", "dept.ac.at", "box.org", "host", "x y.com"]
    emails = {f"{rng.choice(names)}@{rng.choice(domains)}" for _ in range(60)} | {"nobody", "no at sign.org"}
    example.facts("email", {(e,) for e in emails})
    at = {e: e.index("@") for e in emails if "@" in e}
    domain = {e: e[i + 1 :].lower() for e, i in at.items()}
    user = {e: e[:i] for e, i in at.items()}
    example.expected("at", at.items())
    example.expected("user", user.items())
    example.expected("domain", domain.items())
    example.expected("no_address", {(e,) for e in emails if "@" not in e})
    well_formed = re.compile(r"[A-Za-z0-9._]+@[A-Za-z0-9.]+[.][a-z]+")
    example.expected("well_formed", {(e,) for e in emails if well_formed.fullmatch(e)})
    example.expected(
        "academic", {(e,) for e, d in domain.items() if re.fullmatch(r".*\.edu|.*\.ac\.[a-z]+", d)}
    )
    example.expected("users_at", Counter(domain.values()).items())
    example.expected("greeting", {(e, f"Dear {u[0].upper()}{u[1:]},") for e, u in user.items()})
    labels(example)


def labels(example: Example) -> None:
    texts = {f"{word}-{n}" for word in ("shelf", "box", "row") for n in (1, 2, 7, 12, 99)}
    texts |= {"shelf-x", "lamp", "row-007", "-5", "top-left-3"}
    example.facts("label", {(t,) for t in texts})
    number = {t: int(t.split("-")[1]) for t in texts if re.fullmatch(r"[^-]*-[0-9]+", t)}
    example.expected("number_of", number.items())
    example.expected("next_label", {(t, f"{t.split('-')[0]}-{n + 1}") for t, n in number.items()})
    example.expected("word", {(w,) for t in texts for w in t.split("-") if w})
    example.expected("tidy", {(t, t.replace("-", " ").strip()) for t in texts})


def text_order() -> None:
    example = Example("text_order")
    rng = example.random
    letters = "abcdeABCDE019éäÄ"
    words = {"".join(rng.choice(letters) for _ in range(rng.randrange(1, 6))) for _ in range(150)}
    words |= {"Zebra", "apple", "10", "9", "zebra", "élan"}
    order = sorted(words)
    example.facts("word", {(w,) for w in words})
    example.expected("next", set(itertools.pairwise(order)))
    example.expected("first", {(order[0],)})
    example.expected("last", {(order[-1],)})
    example.expected("position", {(w, i) for i, w in enumerate(order)})
    example.expected("by_initial", {w[0]: w for w in order}.items())


def dates() -> None:
    example = Example("dates")
    rng = example.random
    readers = [f"reader{i:02}" for i in range(15)]
    days = [date(2025, 9, 1) + timedelta(n) for n in range(175)]
    loans = {(f"book{rng.randrange(60):02}", rng.choice(readers), rng.choice(days)) for _ in range(180)}
    loans |= {("book90", "reader01", date(2026, 1, 1)), ("book91", "reader02", date(2026, 1, 1))}
    returned = {
        (*loan, loan[2] + timedelta(rng.randrange(0, 35))) for loan in sorted(loans) if rng.random() < 0.8
    }
    example.facts("loan", loans)
    example.facts("returned", returned)
    today = date(2026, 3, 1)
    due = {loan: loan[2] + timedelta(21) for loan in loans}
    still_open = loans - {row[:3] for row in returned}
    example.expected("overdue", {(*o[:2], (today - due[o]).days) for o in still_open if due[o] < today})
    late = {(*row[:2], (row[3] - due[row[:3]]).days) for row in returned}
    example.expected("brought_late", {row for row in late if row[2] > 0})
    in_month = Counter((t.year, t.month) for _, _, t in loans)
    example.expected("loans_in", {(*ym, n) for ym, n in in_month.items()})
    by_reader: dict[str, list[date]] = {}
    for _, r, t in loans:
        by_reader.setdefault(r, []).append(t)
    example.expected("first_loan", {(r, min(ts)) for r, ts in by_reader.items()})
    example.expected("last_loan", {(r, max(ts)) for r, ts in by_reader.items()})
    example.expected("new_year", {(b, r) for b, r, t in loans if (t.month, t.day) == (1, 1)})
    visits(example, readers)


def visits(example: Example, readers: list[str]) -> None:
    rng = example.random
    rows = set()
    for reader in readers:
        come = datetime(2026, 2, 14, 9) + timedelta(minutes=rng.randrange(420), seconds=rng.randrange(60))
        rows.add((reader, come, come + timedelta(minutes=rng.randrange(10, 90))))
    example.facts("visit", rows)
    met = {(r, s, max(a, c)) for r, a, b in rows for s, c, d in rows if r < s and a < d and c < b}
    example.expected("met", met)
    example.expected("at_hour", Counter(a.hour for _, a, _ in rows).items())
    example.expected("afternoon", {(r,) for r, a, _ in rows if a.hour >= 12})


def time_zones() -> None:
    example = Example("time_zones")
    rng = example.random
    offsets = {"LIS": 0, "VIE": 1, "ATH": 2, "DEL": 5.5, "NRT": 9, "JFK": -5}
    hours = {name: timedelta(hours=offset) for name, offset in offsets.items()}
    example.facts("offset", {(name, Duration(offset)) for name, offset in hours.items()})
    flights = {}
    for n in range(60):
        start, end = rng.sample(sorted(offsets), 2)
        departs = datetime(2026, 3, 1, tzinfo=UTC) + timedelta(minutes=5 * rng.randrange(864))
        air = timedelta(minutes=rng.randrange(90, 840), seconds=rng.choice((0, 0, 30)))
        flights[f"F{n:02}"] = (start, end, departs, departs + air)
    # Files have the clock of each airport.
    example.facts(
        "flight",
        {
            (
                f,
                a,
                b,
                d.astimezone(timezone(hours[a])).isoformat(),
                e.astimezone(timezone(hours[b])).isoformat(),
            )
            for f, (a, b, d, e) in flights.items()
        },
    )
    late = {f: timedelta(minutes=rng.randrange(-20, 120), milliseconds=rng.randrange(1000)) for f in flights}
    delays = {f: d for f, d in late.items() if rng.random() < 0.4}
    example.facts("delay", {(f, Duration(d)) for f, d in delays.items()})
    itineraries(example, flights, delays, hours)


def itineraries(example: Example, flights: dict, delays: dict, hours: dict[str, timedelta]) -> None:
    landed = {f: e + delays.get(f, timedelta()) for f, (_, _, _, e) in flights.items()}
    air = {f: e - d for f, (_, _, d, e) in flights.items()}
    clock = {f: (e + hours[flights[f][1]]).replace(tzinfo=None) for f, e in landed.items()}
    wait = {
        (f, g): flights[g][2] - flights[f][3]
        for f, g in itertools.permutations(flights, 2)
        if flights[f][1] == flights[g][0]
        and timedelta(minutes=45) <= flights[g][2] - flights[f][3] < timedelta(hours=6)
    }
    missed = {fg for fg in wait if flights[fg[1]][2] - landed[fg[0]] < timedelta(minutes=30)}
    routes: dict[tuple, list[timedelta]] = {}
    for f, (a, b, _, _) in flights.items():
        routes.setdefault((a, b), []).append(air[f])
    example.expected("air_time", {(f, Duration(d)) for f, d in air.items()})
    example.expected("landed", {(f, utc_text(e)) for f, e in landed.items()})
    example.expected("local_time", clock.items())
    example.expected("connection", {(*fg, Duration(w)) for fg, w in wait.items()})
    example.expected("missed", {(*fg, Duration(landed[fg[0]] - flights[fg[0]][3])) for fg in missed})
    example.expected("fastest", {(*ab, Duration(min(ds))) for ab, ds in routes.items()})
    example.expected("slowest", {(*ab, Duration(max(ds))) for ab, ds in routes.items()})
    starts: dict[str, list[timedelta]] = {}
    for f, (a, _, _, _) in flights.items():
        starts.setdefault(a, []).append(air[f])
    sums = {a: sum(ds, timedelta()) for a, ds in starts.items()}
    example.expected("in_air", {(a, Duration(s)) for a, s in sums.items()})
    example.expected("usual", {(a, Duration(s / len(starts[a]))) for a, s in sums.items()})  # half to even
    lost = {a: sum((d for f, d in delays.items() if flights[f][1] == a), timedelta()) for a in hours}
    example.expected("lost", {(a, Duration(s)) for a, s in lost.items()})
    example.expected("hours_in_air", {(f, d // timedelta(hours=1)) for f, d in air.items()})
    example.expected("at_night", {(f, flights[f][1]) for f, c in clock.items() if c.hour >= 23 or c.hour < 5})
    first = min(d for _, _, d, _ in flights.values())
    since = {
        (f, Duration((landed[f] - first) / 2)) for f in flights if landed[f] - first < timedelta(hours=20)
    }
    example.expected("halfway", since)


def decimals() -> None:
    example = Example("decimals")
    rate = {"eur": "1.0000", "usd": "0.9125", "chf": "1.0450", "jpy": "0.0062"}
    items = [
        ("tea", "eur", "3.50"),
        ("cup", "usd", "12.00"),
        ("clock", "chf", "89.90"),
        ("fan", "jpy", "2500.00"),
        ("sample", "usd", "0.20"),
        ("stamp", "chf", "0.10"),
        ("refund", "usd", "-4.00"),
    ]
    exact = {name: Decimal(p) * Decimal(rate[c]) for name, c, p in items}
    euros = {name: rounded(e, 2) for name, e in exact.items()}
    example.expected("euros", {(name, Scaled(e, 2)) for name, e in euros.items()})
    example.expected("exactly", exact.items())
    halves = [Decimal("0.25"), Decimal("0.75"), Decimal("1.50")]
    example.expected("half", {(Scaled(x, 2), Scaled(x / 2, 2)) for x in halves})
    example.expected("sum_of_tenths", {(Decimal("0.3"),)})
    example.expected("three_tenths", {()})
    example.expected("bill", {(Scaled(sum(euros.values(), Decimal(0)), 2),)})
    example.expected("dearest", {(Scaled(max(euros.values()), 2),)})
    example.expected("cheap", {(name,) for name, e in euros.items() if 0 < e < 1})


def unsigned() -> None:
    example = Example("unsigned")
    states = [42]
    for _ in range(40):
        states.append((states[-1] * 6364136223846793005 + 1442695040888963407) % 2**64)
    dice = {(i, 1 + (x >> 33) % 6) for i, x in enumerate(states) if i > 0}
    example.expected("random", set(enumerate(states)))
    example.expected("die", dice)
    example.expected("large", {(i,) for i, x in enumerate(states) if x >= 2**63})
    example.expected("greatest", {(max(states),)})
    example.expected("thrown", Counter(e for _, e in dice).items())
    example.expected("bits", {(x, x & 0xFF, x ^ (2**64 - 1), x ^ 0b1010) for x in states[:4]})


def floats() -> None:
    example = Example("floats")
    rng = example.random
    rows = set()
    for i, station in enumerate(("harbour", "hill", "lake", "summit")):
        for hour in range(24):
            rows.add((station, hour, round(8 - 5 * i + 6 * rng.random() + hour % 12 / 2, 1)))
    example.facts("reading", rows)
    by_station: dict[str, list[float]] = {}
    for s, _, c in rows:
        by_station.setdefault(s, []).append(c)
    mean = {s: fsum(cs) / len(cs) for s, cs in by_station.items()}
    example.expected("readings", {(s, len(cs)) for s, cs in by_station.items()})
    example.expected("mean_of", mean.items())
    example.expected("coldest", {(s, min(cs)) for s, cs in by_station.items()})
    example.expected("warmest", {(s, max(cs)) for s, cs in by_station.items()})
    deviation = {(s, sqrt(fsum((c - mean[s]) ** 2.0 for c in cs) / len(cs))) for s, cs in by_station.items()}
    example.expected("deviation", deviation)
    example.expected("fahrenheit", {(s, h, c * 9.0 / 5.0 + 32.0) for s, h, c in rows})
    example.expected("whole_degrees", Counter(s for s, _, c in rows if floor(c) == ceil(c)).items())
    example.expected("freezing", {(s,) for s, _, c in rows if c < 0})
    example.expected("what_is_left", {(1.5,)})


def booleans() -> None:
    example = Example("booleans")
    rng = example.random
    switch = {f"s{i:02}": rng.random() < 0.6 for i in range(12)}
    lamps = [f"lamp{i:02}" for i in range(25)]
    wired = {(lamp, rng.choice(sorted(switch)), rng.random() < 0.7) for lamp in lamps for _ in range(2)}
    example.facts("switch", switch.items())
    example.facts("wired", wired)
    lit = {(lamp,) for lamp, s, works in wired if works and switch[s]}
    example.expected("lit", lit)
    example.expected("dark", {(lamp,) for lamp in lamps} - lit)
    example.expected("broken", {(lamp, s) for lamp, s, works in wired if not works and switch[s]})
    example.expected(
        "same_state", {(s, t) for s in switch for t in switch if s < t and switch[s] == switch[t]}
    )
    example.expected("how_many", Counter(switch.values()).items())


def arithmetic() -> None:
    example = Example("arithmetic")
    pairs = [(7, 3), (-7, 3), (7, -3), (-7, -3), (6, 2), (5, 0), (0, 5)]
    example.expected("plus", {(x, y, x + y) for x, y in pairs})
    example.expected("minus", {(x, y, x - y) for x, y in pairs})
    example.expected("times", {(x, y, x * y) for x, y in pairs})
    quotients = {(x, y, abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)) for x, y in pairs if y}
    example.expected("quotient", {(x, y, q, x - q * y) for x, y, q in quotients})
    example.expected("lesser", {(x, y, min(x, y)) for x, y in pairs})
    example.expected("greater", {(x, y, max(x, y)) for x, y in pairs})
    values = [
        ("2 + 3 * 4", 14),
        ("(2 + 3) * 4", 20),
        ("2 - 3 - 4", -5),
        ("100 / 7 * 7", 98),
        ("2 ^ 3 ^ 2", 512),
        ("-2 ^ 2", -4),
        ("2 * -3", -6),
        ("x <- 1", 1),
        ("2 ^ 62", 2**62),
    ]
    example.expected("value", values)
    example.expected("wrapped", {(2**63 - 1, -(2**63))})


def conversions() -> None:
    example = Example("conversions")
    example.expected("number_of", [("12", 12), ("-3", -3)])
    example.expected("float_of", [("12", 12.0), ("-3", -3.0), ("3.5", 3.5)])
    example.expected("decimal_of", {("12", Decimal(12)), ("-3", Decimal(-3)), ("3.5", Decimal("3.5"))})
    example.expected("unsigned_of", [("12", 12)])
    example.expected("not_a_number", [("3.5",), ("dozen",)])
    example.expected("date_of", [("2024-02-29", date(2024, 2, 29)), ("2026-12-31", date(2026, 12, 31))])
    moments = [datetime(2024, 2, 29, 23, 59, 58), datetime(2026, 1, 1)]
    example.expected("moment_of", {(m.isoformat(), m) for m in moments})
    example.expected("day_of_moment", {(m, m.date()) for m in moments})
    example.expected(
        "midnight", {(d, datetime.combine(d, datetime.min.time())) for d in map(datetime.date, moments)}
    )
    shown = [("int", "-7"), ("float", "1.500000"), ("bool", "true"), ("date", "2024-02-29")]
    example.expected("shown", shown)
    example.expected("size_of", [(-7, 7), (3, 3)])


if __name__ == "__main__":
    main()
