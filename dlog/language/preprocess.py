"""Owns C preprocessor lines: `#include`, `#define`, `#ifdef` and the like, through pcpp.

Soufflé runs the C preprocessor on every program.  Texts without such a line are left alone, so most programs
pay nothing (pcpp takes 0.1 s to load).  What it drops, including comments, is lost.
"""

from __future__ import annotations

import functools
import io
import os
import re
from typing import Any

from dlog.errors import Diagnostics, DlogError, SourceError
from dlog.language.source import Origin, Source, Span, read_source
from dlog.language.surroundings import current

_DIRECTIVES = "define|undef|include|if|ifdef|ifndef|elif|else|endif|error|warning|pragma|line"
_DIRECTIVE_LINE = re.compile(rf"^[ \t]*#[ \t]*(?:{_DIRECTIVES})\b", re.MULTILINE)
# Comments and strings are skipped: a `#define` inside them is not a directive.
_DIRECTIVE_OUTSIDE = re.compile(
    r'//[^\n]*+|/\*(?>.*?\*/|.*+)|"[^"\\\n]*+(?>(?:\\[^\n][^"\\\n]*+)*)"|'
    rf"(^[ \t]*#[ \t]*(?:{_DIRECTIVES})\b)",
    re.MULTILINE | re.DOTALL,
)
_LINE_MARK = re.compile(r'^#line (\d{1,9})(?: "(.*)")?$')

MAX_INCLUDES = 40  # levels of files that include files
# Tokens that expansions may give, beyond five for every character of the text: macros that double each other
# thirty times would otherwise fill the memory.  pcpp makes some 300,000 a second; a rule with two small
# macros needs about a hundred.
_MAX_TOKENS = 200_000


def preprocess(source: Source) -> Source:
    """The text after preprocessing, with the origin of each line; the source itself when it needs none."""
    if not has_directives(source.text) and not current().macros:
        return source
    text = source.text
    if text.startswith("#!"):  # a script's first line is a comment
        text = "//" + text[2:]
    diagnostics = Diagnostics()
    expanded = _expand(source, text, diagnostics)
    diagnostics.raise_if_any()
    return _with_origins(source, expanded)


def has_directives(text: str) -> bool:
    """Whether a line of the text is for the preprocessor."""
    if not _DIRECTIVE_LINE.search(text):
        return False
    return any(match.group(1) for match in _DIRECTIVE_OUTSIDE.finditer(text))


class _Stop(Exception):
    """Stops processing a text whose error has been reported."""


@functools.cache
def _expander() -> type[Any]:
    from pcpp import OutputDirective, Preprocessor  # only programs with preprocessor lines pay for it
    from pcpp.preprocessor import Action

    class Expander(Preprocessor):
        """Reports through dlog's diagnostics, and stops where pcpp alone would not."""

        def __init__(self, source: Source, diagnostics: Diagnostics):
            self.program, self.diagnostics = source, diagnostics
            self.tokens_left = _MAX_TOKENS + 5 * len(source.text)
            self.copies = 1  # how often the next expansion will be put into the text
            super().__init__()
            self.line_directive = "#line"
            self.add_path(os.path.dirname(source.name) or ".")
            self.add_path(os.getcwd())
            for folder in current().folders:
                self.add_path(str(folder))
            for macro, value in current().macros:
                self.define(f"{macro} {value}")
            # Files are named as the program is: by absolute paths, or by paths relative to the working
            # directory.
            name = source.name
            if os.path.isabs(name):
                self.rewrite_paths.clear()
            else:
                own = f"{re.escape(os.path.abspath(name))}$"
                self.rewrite_paths.insert(0, (own, lambda _: name))

        def on_error(self, file: str, line: int, message: str) -> None:
            message, help = _translated(message)
            self.diagnostics.add(SourceError(message, span=_line_span(self.program, file, line), help=help))

        def on_last(self, message: str) -> None:
            """An error at the last directive that was read."""
            last = self.lastdirective
            file, line = (last.source, last.lineno) if last is not None else (self.program.name, 1)
            self.on_error(file, line, message)

        def on_include_not_found(
            self, is_malformed: bool, is_system_include: bool, curdir: str, includepath: str
        ) -> None:
            self.on_last(
                "malformed #include" if is_malformed else f"cannot find the included file {includepath}"
            )
            raise OutputDirective(Action.IgnoreAndRemove)

        def on_file_open(self, is_system_include: bool, includepath: str) -> io.StringIO:
            if not os.path.isfile(includepath):
                raise OSError(includepath)
            if self.include_depth > MAX_INCLUDES:
                self.on_last(
                    f"#include nests more than {MAX_INCLUDES} levels deep: does a file include itself?"
                )
                raise _Stop
            return io.StringIO(read_source(includepath).text)

        def on_directive_handle(self, directive, toks, ifpassthru, precedingtoks):
            super().on_directive_handle(directive, toks, ifpassthru, precedingtoks)
            if directive.value == "pragma" and not (toks and toks[0].value == "once"):
                raise OutputDirective(Action.IgnoreAndRemove)
            if directive.value == "include" and not toks:
                self.on_include_not_found(True, False, "", "")
            return True

        def on_directive_unknown(self, directive, toks, ifpassthru, precedingtoks):
            if directive.value == "error":
                text = "".join(token.value for token in toks).strip()
                self.on_error(directive.source, directive.lineno, f"#error {text}".strip())
            # `#line` marks where generated text came from, a `#warning` would go unseen, and for the rest
            # the lexer reports an unexpected `#`.
            return None if directive.value not in ("error", "warning") else True

        def expand_macros(self, *args, **kwargs):
            copies, self.copies = self.copies, 1
            tokens = super().expand_macros(*args, **kwargs)
            self.copies = copies
            self.tokens_left -= 1 + len(tokens) * copies
            if self.tokens_left < 0:
                self.on_last("macros expand to too much text")
                raise _Stop
            return tokens

        def macro_expand_args(self, macro, args):
            copies, self.copies = self.copies, max(1, len(macro.patch))
            tokens = super().macro_expand_args(macro, args)
            self.copies = copies
            return tokens

    return Expander


def _expand(source: Source, text: str, diagnostics: Diagnostics) -> str:
    expander = _expander()(source, diagnostics)
    out = io.StringIO()
    try:
        expander.parse(text, source.name)
        expander.write(out)
    except _Stop:
        pass
    except DlogError as error:
        diagnostics.add(error)
    except Exception:  # pcpp gives up on some malformed lines with its own errors
        last = expander.lastdirective
        expander.on_last(
            f"malformed #{last.value}" if last is not None else "the preprocessor cannot read this"
        )
    return out.getvalue()


# pcpp's messages, reworded like the rest of dlog's.
_TRANSLATIONS = [
    (re.compile(r"Could not evaluate expression", re.DOTALL), "cannot evaluate this condition", None),
    (re.compile(r"Unterminated #\s*(\w+)"), r"#\1 is not closed", "close it with #endif"),
    (re.compile(r"Misplaced #(\w+)"), r"#\1 without #if", None),
    (re.compile(r"Missing '\)' in macro arguments"), "`)` is missing in the arguments of a macro", None),
    (re.compile(r"Macro (\w+) requires (\d+) .* passed (\d+)"), r"macro \1 takes \2 arguments, not \3", None),
]  # fmt: skip


def _translated(message: str) -> tuple[str, str | None]:
    for pattern, replacement, help in _TRANSLATIONS:
        if match := pattern.match(message):
            return match.expand(replacement), help
    return (message[:1].lower() + message[1:]).splitlines()[0], None


def _line_span(source: Source, file: str, line: int) -> Span:
    """A whole line of a file that was read."""
    if file != source.name:
        try:
            source = read_source(file)
        except DlogError:
            return Span(source, 0, 1)
    lines = source.text.split("\n")
    line = min(max(line, 1), len(lines))
    start = sum(len(text) + 1 for text in lines[: line - 1])
    return Span(source, start, start + max(1, len(lines[line - 1])))


def _with_origins(source: Source, text: str) -> Source:
    """Turns `#line` marks into origins, one for each line of the text."""
    originals: dict[str, list[str]] = {source.name: source.text.split("\n")}
    lines: list[str] = []
    origins: list[Origin] = []
    file, number = source.name, 1
    for line in text.split("\n"):
        mark = _LINE_MARK.match(line)
        if mark:
            number, file = int(mark.group(1)), mark.group(2) or file
            continue
        lines.append(line)
        original = _original(originals, file, number)
        origins.append(Origin(file, number, original if original is not None else line))
        number += 1
    return Source(source.name, "\n".join(lines), origins)


def _original(originals: dict[str, list[str]], file: str, number: int) -> str | None:
    if file not in originals:
        try:
            originals[file] = read_source(file).text.split("\n")
        except DlogError:
            originals[file] = []
    lines = originals[file]
    return lines[number - 1] if 1 <= number <= len(lines) else None
