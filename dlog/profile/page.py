"""Owns the page: a profile's numbers as HTML.  All text of the program is escaped."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from html import escape
from importlib import resources
from pathlib import Path

from dlog.engine.database import Database
from dlog.errors import DlogError
from dlog.profile.chart import bars, milliseconds
from dlog.profile.data import Profile, RuleProfile, Run, profile_of
from dlog.profile.picture import picture

MOST_PLANS = 6  # of one rule; a plan is rebuilt when relations have grown
MOST_RUNS = 200  # lines of the table of runs
COLUMNS = ("time", "rows", "iterations", "seeks", "nexts", "bytes")


def write_profile(path: Path, database: Database, program: Path, phases: dict[str, float]) -> None:
    """Write the page of a traced run.  O(rules + runs + steps of plans + text)."""
    write_file(path, page(profile_of(database, program.name, phases)))


def write_file(path: Path, text: str) -> None:
    """Write a page in one step."""
    try:
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except OSError as error:
        raise DlogError(f"cannot write {path}: {error.strerror}") from None


def page(profile: Profile) -> str:
    body = "\n".join(
        [
            *_totals(profile),
            *_table(profile),
            *_recursions(profile),
            *_plans(profile),
            *_sources(profile),
        ]
    )
    return document(f"{profile.name}: profile", body)


def document(title: str, body: str, style: str = "") -> str:
    """A page that needs no other file.  `style`: in addition to that of all pages."""
    common, script = (
        resources.files("dlog.profile").joinpath(f"page.{end}").read_text() for end in ("css", "js")
    )
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)}</title>
<style>
{common}{style}</style>
</head>
<body>
{body}
<div id="hint"></div>
<script>
{script}</script>
</body>
</html>
"""


def _totals(profile: Profile) -> Iterator[str]:
    total = sum(profile.phases.values())
    yield f"<h1>{escape(profile.name)}</h1>"
    yield '<p class="quiet">Where the time of this run went.  Rules are the slowest first.</p>'
    numbers = {
        "total": milliseconds(total),
        **{phase: milliseconds(seconds) for phase, seconds in profile.phases.items()},
        "rows produced": f"{sum(rule.rows for rule in profile.rules):,}",
        "seeks": f"{sum(rule.seeks for rule in profile.rules):,}",
        "nexts": f"{sum(rule.nexts for rule in profile.rules):,}",
        "bytes produced": _bytes(sum(rule.bytes for rule in profile.rules)),
    }
    cards = "".join(
        f"<div><b>{number}</b><span class='quiet'>{name}</span></div>" for name, number in numbers.items()
    )
    yield f'<div class="totals">{cards}</div>'
    shares = {phase: 100 * seconds / max(total, 1e-9) for phase, seconds in profile.phases.items()}
    parts = "".join(
        f'<span class="{phase}" style="width:{share:.2f}%" data-hint="{phase}: {share:.0f}%"></span>'
        for phase, share in shares.items()
    )
    yield f'<div class="phases">{parts}</div>'
    names = "".join(
        f'<span><i class="{phase}"></i>{phase} {share:.0f}%</span>' for phase, share in shares.items()
    )
    yield f'<div class="legend">{names}</div>'


def _table(profile: Profile) -> Iterator[str]:
    yield "<h2>Rules</h2>"
    if not profile.rules:
        yield '<p class="quiet">No rule ran.</p>'
        return
    most = max(max(rule.seconds for rule in profile.rules), 1e-9)
    titles = "".join(
        f'<th data-sort="number"{" aria-sort=descending" if name == "time" else ""}>{name}</th>'
        for name in COLUMNS
    )
    yield '<div class="rules scroll"><table class="sortable" id="rules">'
    yield f"<thead><tr><th>rule</th>{titles}</tr></thead><tbody>"
    for rule in profile.rules:
        values = (rule.seconds, rule.rows, rule.iterations, rule.seeks, rule.nexts, rule.bytes)
        texts = (milliseconds(rule.seconds), *(f"{v:,}" for v in values[1:5]), _bytes(rule.bytes))
        cells = "".join(f'<td data-value="{v}">{text}</td>' for v, text in zip(values, texts, strict=True))
        share = f'<div class="share" style="width:{100 * rule.seconds / most:.1f}%"></div>'
        yield (
            f'<tr data-rule="{rule.id}"><td><a class="rule" href="#rule-{rule.id}">{escape(rule.text)}</a>'
            f"{_where(rule, profile)}{share}</td>{cells}</tr>"
        )
    yield "</tbody></table></div>"


def _where(rule: RuleProfile, profile: Profile) -> str:
    if not rule.line:
        return ""
    place = escape(f"{os.path.basename(rule.file)}:{rule.line}")
    if rule.file not in profile.sources:
        return f' <span class="where">{place}</span>'
    return f' <a class="where" href="#{_anchor(profile, rule.file, rule.line)}">{place}</a>'


def _anchor(profile: Profile, file: str, line: int) -> str:
    return f"line-{list(profile.sources).index(file)}-{line}"


def _recursions(profile: Profile) -> Iterator[str]:
    if not profile.recursions and not profile.detection_lines:
        return
    yield "<h2>Recursion: rows produced in each run</h2>"
    for line in profile.detection_lines:
        yield f'<p class="detection">{escape(line)}</p>'
    yield (
        '<p class="quiet">A run is one iteration, or, where each new row at once derives what follows, one '
        "slice of that work.</p>"
    )
    for name, runs in profile.recursions:
        yield f'<div class="card"><h3>{escape(name)}</h3>{bars(runs)}</div>'


def _plans(profile: Profile) -> Iterator[str]:
    if not profile.rules:
        return
    yield "<h2>Plans</h2>"
    yield (
        '<p class="quiet">Steps run from top to bottom and go back for the next value.  A dot is a level of '
        "an atom's index that the step reads; joined dots are intersected.  On the right, how many bindings "
        "were expected.</p>"
    )
    for rule in profile.rules:
        yield f'<div class="card" id="rule-{rule.id}"><div class="rule">{escape(rule.text)}</div>'
        yield (
            f'<div class="numbers">{milliseconds(rule.seconds)}, {rule.rows:,} rows, {rule.seeks:,} seeks, '
            f"{rule.nexts:,} nexts, {_bytes(rule.bytes)}{_where(rule, profile)}</div>"
        )
        for plan in rule.plans[:MOST_PLANS]:
            yield f'<div class="scroll">{picture(plan, profile.rows, profile.columns)}</div>'
        if len(rule.plans) > MOST_PLANS:
            yield f'<p class="quiet">and {len(rule.plans) - MOST_PLANS} more plans</p>'
        if not rule.plans:
            yield '<p class="quiet">No join: only primitives on columns.</p>'
        yield from _runs(rule.runs, rule.bytes // max(rule.rows, 1))
        yield "</div>"


def _runs(runs: tuple[Run, ...], width: int) -> Iterator[str]:
    if len(runs) < 2:
        return
    yield bars(runs)
    yield f"<details><summary>{len(runs):,} runs</summary><div class='scroll'><table>"
    titles = "".join(f"<th>{name}</th>" for name in ("run", "time", "rows", "seeks", "nexts", "bytes"))
    yield f"<thead><tr>{titles}</tr></thead><tbody>"
    for number, run in enumerate(runs[:MOST_RUNS], 1):
        yield (
            f"<tr><td>{number:,}</td><td>{milliseconds(run.seconds)}</td><td>{run.rows:,}</td>"
            f"<td>{run.seeks:,}</td><td>{run.nexts:,}</td><td>{_bytes(width * run.rows)}</td></tr>"
        )
    yield "</tbody></table></div>"
    if len(runs) > MOST_RUNS:
        yield f'<p class="quiet">and {len(runs) - MOST_RUNS:,} more</p>'
    yield "</details>"


def _sources(profile: Profile) -> Iterator[str]:
    """The program's text, with the time of the rules that begin on a line beside it."""
    if not profile.sources:
        return
    yield "<h2>Program</h2>"
    for file, text in profile.sources.items():
        rules: dict[int, list[RuleProfile]] = {}
        for rule in profile.rules:
            if rule.file == file:
                rules.setdefault(rule.line, []).append(rule)
        if len(profile.sources) > 1:
            yield f"<h3>{escape(file)}</h3>"
        yield '<div class="source scroll"><code>'
        for number, line in enumerate(text.splitlines(), 1):
            time = ""
            if here := rules.get(number):
                seconds = milliseconds(sum(rule.seconds for rule in here))
                time = f'<a href="#rule-{here[0].id}">{seconds}</a>'
            yield (
                f'<div id="{_anchor(profile, file, number)}"><span class="n">{number}</span>'
                f'<span class="t">{time}</span><span>{escape(line)}</span></div>'
            )
        yield "</code></div>"


def _bytes(number: float) -> str:
    """
    >>> _bytes(800), _bytes(2048), _bytes(3 * 1024**3)
    ('800 B', '2.0 KiB', '3.0 GiB')
    """
    for unit in ("B", "KiB", "MiB", "GiB"):
        if number < 1024 or unit == "GiB":
            break
        number /= 1024
    return f"{number:,.0f} {unit}" if unit == "B" else f"{number:,.1f} {unit}"
