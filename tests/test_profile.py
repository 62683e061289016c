"""The profile: the page of a run, its numbers, and how a real browser shows it."""

from __future__ import annotations

import html
import re
import shutil
import subprocess
import sys
import zlib
from html.parser import HTMLParser
from pathlib import Path

import pytest

import dlog
from dlog.profile.chart import bars
from dlog.profile.data import Run, profile_of
from dlog.profile.page import page

# A rule that takes long, others that do not, recursion, and texts that would break a page.
PROGRAM = """\
edge(x, x + 1) <- x = range(0, 300).
edge(x, 0) <- x = range(0, 300), x % 50 = 7.
reach(x, y) <- edge(x, y).
reach(x, z) <- reach(x, y), edge(y, z).
best[x] = m <- agg<<m = max(y)>> reach(x, y).
lonely(x) <- edge(x, y), !reach(y, x), (y > 3 ; x = 1).
label(x, "</script><b id=\\"bad\\">&") <- edge(x, 0).
.output lonely, label
"""
FIXPOINT = {"driven by rows": "", "in rounds": 's(y) <- s(x), y = cat(x, "a"), strlen(y) < 9.  s("b").\n'}


def profiled(text: str) -> str:
    return page(profile_of(dlog.Database(source=text, traced=True), "p.dl", {"load": 0.5, "evaluate": 1.5}))


class _Tags(HTMLParser):
    """Elements that are open at the end, and all texts of scripts."""

    VOID = ("meta", "br", "link")

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag, f"</{tag}> closes something else"


def tags(text: str) -> list[tuple[str, dict[str, str | None]]]:
    parser = _Tags()
    parser.feed(text)
    assert parser.open == []
    return parser.seen


def test_the_page_is_well_formed_and_needs_nothing_else() -> None:
    seen = tags(profiled(PROGRAM))
    assert [tag for tag, _ in seen].count("script") == 1
    outside = [a for _, attrs in seen for n, a in attrs.items() if n in ("src", "href") and a and a[0] != "#"]
    assert outside == []
    anchors = {attrs["id"] for _, attrs in seen if "id" in attrs}
    links = {str(attrs["href"])[1:] for tag, attrs in seen if tag == "a"}
    assert links and links <= anchors
    assert "bad" not in anchors, "the program's text is text"


def test_rules_come_slowest_first_with_all_their_numbers() -> None:
    database = dlog.Database(source=PROGRAM, traced=True)
    text = page(profile_of(database, "p.dl", {}))
    times = [float(t) for t in re.findall(r'<tr data-rule="\d+">.*?data-value="([^"]*)"', text)]
    assert times == sorted(times, reverse=True)
    assert len(times) == len(database.measures.rules) == 7
    for measure in database.measures.rules.values():
        row = re.search(rf'<tr data-rule="{measure.rule.id}">(.*?)</tr>', text)
        assert row is not None
        assert html.escape(str(measure.rule)) in row[1]
        values = [float(v) for v in re.findall(r'data-value="([^"]*)"', row[1])]
        arity = sum(len(head.args) for head in measure.rule.heads)
        counted = [measure.rows, measure.iterations, measure.seeks, measure.nexts, 8 * arity * measure.rows]
        assert values[1:] == counted


@pytest.mark.parametrize("more", FIXPOINT.values(), ids=FIXPOINT)
def test_the_runs_of_a_rule_add_up_to_what_it_did(more: str) -> None:
    database = dlog.Database(source=PROGRAM + more, traced=True)
    profile = profile_of(database, "p.dl", {})
    for rule in profile.rules:
        assert sum(run.rows for run in rule.runs) == rule.rows, rule.text
        assert sum(run.seeks for run in rule.runs) == rule.seeks, rule.text
        assert sum(run.nexts for run in rule.runs) == rule.nexts, rule.text
        assert sum(run.seconds for run in rule.runs) == pytest.approx(rule.seconds)
        assert all(run.rows >= 0 and run.seeks >= 0 for run in rule.runs)


def test_nothing_is_recorded_without_a_profile() -> None:
    database = dlog.Database(source=PROGRAM)
    assert [m.trace for m in database.measures.rules.values()] == [None] * 7


def test_pictures_show_every_atom_and_step() -> None:
    text = profiled("t(x, y, z) <- e(x, y), e(y, z), e(x, z), !f[x] = 3, x < z.  e(1, 2).  f[1] = 2.")
    picture = re.search(r'<svg class="plan".*?</svg>', text, re.DOTALL)
    assert picture is not None
    assert len(re.findall('class="atom"', picture[0])) == 4
    assert len(re.findall('class="leapfrog"', picture[0])) == 3  # each of x, y and z is read in two atoms
    assert "only if there is no" in picture[0]
    assert "row (x, y, z)" in picture[0]


def test_many_runs_share_bars() -> None:
    runs = [Run(0.001, i, 0, 0, 0) for i in range(1000)]
    picture = bars(runs)
    assert picture.count('class="bar"') <= 120
    assert "runs 1 to 9: 36 rows, 9.00 ms" in picture


def test_a_program_without_rules_has_a_page() -> None:
    assert "No rule ran" in profiled("e(1).")


def test_the_command_writes_the_page(tmp_path: Path) -> None:
    (tmp_path / "p.dl").write_text(PROGRAM)
    run = dlog_run(tmp_path, "--profile", "page.html")
    assert run.returncode == 0, run.stderr
    text = (tmp_path / "page.html").read_text()
    assert 'href="#line-0-4"' in text and 'id="line-0-4"' in text
    assert [file.name for file in tmp_path.glob(".page*")] == []
    bad = dlog_run(tmp_path, "--profile", "nowhere/page.html")
    assert bad.returncode == 1
    assert bad.stderr.splitlines()[-1] == "error: cannot write nowhere/page.html: No such file or directory"


def dlog_run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "dlog", "run", "p.dl", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120)


# In a browser

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
# Errors of scripts are collected; rules are sorted by rows as a user would do it; a bar is pointed at.
PROBE_FIRST = "<script>window.errors = []; window.onerror = (text) => { errors.push(text); };</script>"
PROBE_LAST = """<script>
const rows = () => [...document.querySelectorAll("#rules tbody tr")];
const order = () => rows().map((row) => row.dataset.rule).join(" ");
const before = order();
document.querySelectorAll("#rules th")[2].click();
const move = new MouseEvent("mousemove", {bubbles: true, clientX: 9, clientY: 9});
document.querySelector(".bar").dispatchEvent(move);
document.body.dataset.before = before;
document.body.dataset.after = order();
document.body.dataset.shown = document.getElementById("hint").textContent;
document.body.dataset.errors = errors.join("; ");
</script>"""


def browse(page: Path, *arguments: str) -> str:
    if CHROMIUM is None:
        pytest.skip("needs Chromium: apt-get install chromium")
    command = [
        CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
        "--disable-background-networking", "--disable-component-update", "--disable-sync",
        "--hide-scrollbars", f"--user-data-dir={page.parent / 'browser'}", *arguments, page.as_uri(),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_browser_runs_the_page_without_errors(tmp_path: Path) -> None:
    database = dlog.Database(source=PROGRAM, traced=True)
    text = page(profile_of(database, "p.dl", {}))
    text = text.replace("<head>", "<head>" + PROBE_FIRST).replace("</body>", PROBE_LAST + "</body>")
    (tmp_path / "page.html").write_text(text)
    dom = browse(tmp_path / "page.html", "--dump-dom")
    found = dict(re.findall(r'data-(before|after|shown|errors|ready)="([^"]*)"', dom[dom.index("<body") :]))
    assert 'data-ready="yes"' in dom
    assert found["errors"] == ""
    measures = database.measures.rules.values()
    by_time = sorted(measures, key=lambda m: -m.seconds)
    assert found["before"].split()[0] == str(by_time[0].rule.id)
    rows = {str(m.rule.id): m.rows for m in measures}
    sorted_rows = [rows[rule] for rule in found["after"].split()]
    assert sorted_rows == sorted(sorted_rows, reverse=True)
    assert re.fullmatch(r"run 1: [\d,]+ rows, .* m?s", found["shown"])


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_browser_draws_the_page(tmp_path: Path, dark: bool) -> None:
    (tmp_path / "page.html").write_text(profiled(PROGRAM))
    picture = tmp_path / "page.png"
    theme = ["--blink-settings=preferredColorScheme=0"] if dark else []
    browse(tmp_path / "page.html", f"--screenshot={picture}", "--window-size=1200,1600", *theme)
    width, height, rows = read_png(picture)
    assert (width, height) == (1200, 1600)
    assert (rows[0][0] < 100) == dark, "the page's own background"
    assert len(set(rows)) > 300, "text and pictures nearly everywhere"


def read_png(file: Path) -> tuple[int, int, list[bytes]]:
    """Size and rows of pixels, as far as these are without a filter against the row above."""
    data = file.read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    width, height = int.from_bytes(data[16:20], "big"), int.from_bytes(data[20:24], "big")
    packed, at = b"", 8
    while at < len(data):
        length = int.from_bytes(data[at : at + 4], "big")
        if data[at + 4 : at + 8] == b"IDAT":
            packed += data[at + 8 : at + 8 + length]
        at += 12 + length
    raw = zlib.decompress(packed)
    stride = len(raw) // height
    return width, height, [raw[i * stride + 1 : (i + 1) * stride] for i in range(height)]


def test_a_counted_evaluation_is_profiled_too() -> None:
    """Being ready for changes evaluates in another way, whose rules have runs and plans as well."""
    rules = "reach(x, y) <- edge(x, y).\nreach(x, z) <- reach(x, y), edge(y, z).\n"
    db = dlog.Database(source=rules + " ".join(f"edge({i}, {i + 1})." for i in range(90)), traced=True)
    db.apply(insert={"edge": [(200, 201)]})
    found = profile_of(db, "p.dl", {})
    assert {rule.line: rule.rows for rule in found.rules} == {1: 91, 2: 45 * 89}
    assert all(rule.runs and rule.plans for rule in found.rules)
    assert "reach: new rows were detected with cells with supports" in page(found)
