"""Owns the prompt on a terminal: editing, history, completion, colours.  Input goes to the session.

Enter ends the input when it is complete, and begins a new line when it is not.  Ctrl-C discards the input,
or stops the evaluation that is in progress; Ctrl-D on an empty line leaves.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion, PathCompleter
from prompt_toolkit.document import Document
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings
from prompt_toolkit.lexers import Lexer
from prompt_toolkit.styles import Style

from dlog.ir.primitives import FUNCTORS, RELATIONS
from dlog.language.typed import PROMPT, WORDS, Piece, Typed, is_complete
from dlog.language.vocabulary import AGGREGATES, COFACTOR, DIRECTIVES, KEYWORDS, TOKEN
from dlog.repl.commands import COMMANDS
from dlog.repl.session import Session
from dlog.values import BUILTIN_TYPES

STYLE = Style.from_dict(
    {
        "comment": "ansibrightblack",
        "string": "ansigreen",
        "number": "ansicyan",
        "predicate": "bold",
        "keyword": "ansiblue",
        "command": "ansimagenta",
        "sign": "",
    }
)
_WORD_BEFORE = re.compile(r"\.?[A-Za-z_?][A-Za-z_0-9?.]*$|\.$")


def serve(session: Session) -> int:
    """Until Ctrl-D or `.quit`.  Errors were shown when they happened, so the status is 0."""
    typed = Typed(PROMPT)
    prompt = make_prompt(session)
    while not session.quits:
        try:
            text = prompt.prompt(lambda: f"{session.state}> ")
        except KeyboardInterrupt:
            continue
        except EOFError:
            break
        for piece in _pieces(typed, text):
            session.run(piece)
    session.close()
    return 0


def _pieces(typed: Typed, text: str) -> Iterable[Piece]:
    """The input is complete, or an error: nothing is carried over to the next input."""
    for line in text.split("\n"):
        yield from typed.feed(line)
    yield from typed.finish()


def make_prompt(session: Session, **settings: Any) -> PromptSession[str]:
    """`settings` are those of prompt_toolkit: tests give an input and an output."""
    return PromptSession(
        history=_history(),
        lexer=Colours(),
        style=STYLE,
        completer=Names(session.database.predicates),
        complete_while_typing=False,
        multiline=True,
        prompt_continuation=lambda width, line, soft: "... ".rjust(width),
        key_bindings=_keys(),
        **settings,
    )


def _keys() -> KeyBindings:
    keys = KeyBindings()

    @keys.add("enter")
    def _(event: Any) -> None:
        buffer = event.current_buffer
        if _is_whole(buffer.text):
            buffer.validate_and_handle()
        else:
            buffer.insert_text("\n")

    return keys


def _is_whole(text: str) -> bool:
    """Whether Enter sends the text: a command or a word is complete, and so is a complete statement."""
    typed = Typed("")
    lines = text.split("\n")
    for line in lines:
        typed.feed(line)
    return not typed.is_open or is_complete(text)


def history_file() -> Path:
    """`$DLOG_HISTORY`, else a file in the user's state folder."""
    if given := os.environ.get("DLOG_HISTORY"):
        return Path(given)
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state) / "dlog" / "history"


def _history() -> History:
    path = history_file()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    except OSError:
        return InMemoryHistory()
    return FileHistory(str(path))


class Names(Completer):
    """Completes commands, predicates, functors and words; file names after `.load` and `.save`."""

    def __init__(self, predicates: Callable[[], Iterable[str]]):
        self._predicates = predicates
        self._paths = PathCompleter(expanduser=True)

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        line = document.current_line_before_cursor
        if found := re.match(r"\s*\.(?:load|save)\s+(.*)$", line):
            path = Document(found.group(1))
            yield from self._paths.get_completions(path, complete_event)
            return
        before = _WORD_BEFORE.search(line)
        prefix = before.group() if before else ""
        for word in self._words(prefix, at_start=before is None or not line[: before.start()].strip()):
            if word.startswith(prefix):
                yield Completion(word, start_position=-len(prefix))

    def _words(self, prefix: str, at_start: bool) -> list[str]:
        if prefix.startswith("."):
            dotted = [*COMMANDS, *sorted(DIRECTIVES)] if at_start else []
            return [f".{name}" for name in dotted]
        words = sorted(self._predicates())
        if prefix or not at_start:
            words += sorted({*FUNCTORS, *RELATIONS, *AGGREGATES, COFACTOR, *KEYWORDS, *BUILTIN_TYPES} - {"_"})
        return [*(WORDS if at_start else ()), *words]


_CLASSES = {
    "COMMENT": "class:comment",
    "BAD_COMMENT": "class:comment",
    "STRING": "class:string",
    "BAD_STRING": "class:string",
    "INT": "class:number",
    "UNSIGNED": "class:number",
    "FLOAT": "class:number",
    "IPV4": "class:number",
    "AGG_OPEN": "class:keyword",
    "SYMBOL": "class:sign",
}


class Colours(Lexer):
    """Colours by token: comments, strings, numbers, keywords, and names that an argument list follows."""

    def lex_document(self, document: Document) -> Callable[[int], StyleAndTextTuples]:
        lines = coloured(document.text)
        return lambda number: lines[number] if number < len(lines) else []


def coloured(text: str) -> list[StyleAndTextTuples]:
    """(style, text) of each part of each line.

    >>> coloured("p(1).")[0][:3]
    [('class:predicate', 'p'), ('class:sign', '('), ('class:number', '1')]
    """
    lines: list[StyleAndTextTuples] = [[]]
    position = 0
    if found := re.match(r"\s*\.[A-Za-z_]+", text):
        position = found.end()
        lines[0].append(("class:command", found.group()))
    while position < len(text):
        match = TOKEN.match(text, position)
        end = match.end() if match else position + 1
        _add(lines, _class(match, text), text[position:end])
        position = end
    return lines


def _class(match: re.Match[str] | None, text: str) -> str:
    kind = match.lastgroup if match else None
    if match is None or kind is None or kind == "SPACE":
        return ""
    if kind != "NAME":
        return _CLASSES.get(kind, "")
    if match.group() in KEYWORDS or match.group() in WORDS:
        return "class:keyword"
    return "class:predicate" if text[match.end() : match.end() + 1] in ("(", "[") else ""


def _add(lines: list[StyleAndTextTuples], style: str, text: str) -> None:
    first, *rest = text.split("\n")
    if first:
        lines[-1].append((style, first))
    lines.extend([(style, line)] if line else [] for line in rest)
