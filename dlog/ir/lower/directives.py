"""Owns the parameters of directives: which exist, and which values they take.

`dlog.io.options` reads the same parameters once more when files are opened; a test keeps the two in step.
"""

from __future__ import annotations

from collections.abc import Callable

from dlog.errors import Diagnostics, did_you_mean
from dlog.ir.lower.lowered import Lowered
from dlog.language import ast

Value = str | int | bool

_FILES = ("file", "csv", "tsv", "json", "jsonfile", "parquet", "arrow", "sqlite", "table")
IO_KINDS = {
    "input": (*_FILES, "stdin", "stdinjson"),
    "output": (*_FILES, "stdout", "stdoutjson"),
    "printsize": ("stdout", "stdoutprintsize"),
}
_COMMON = (
    "IO",
    "filename",
    "dbname",
    "name",
    "delimiter",
    "rfc4180",
    "headers",
    "header",
    "attributeNames",
    "compress",
    "format",
)
PARAMETERS = {
    "input": (*_COMMON, "columns"),
    "output": (*_COMMON, "precision"),
    "printsize": ("IO",),
    "limitsize": ("n",),
    "table": (),
    "stream": (),
    "materialize": ("mode",),
}

# Directives that an equivalence relation cannot have, and why.
_NOT_OF_CLASSES = {
    "limitsize": "its rows are not derived one by one; limit a predicate with a rule that reads it",
    "materialize": "its pairs are never stored, only one row for each member",
}


def check_directives(lowered: Lowered, diagnostics: Diagnostics) -> None:
    """Reports unknown parameters, and values that a parameter cannot take."""
    for directive in lowered.directives:
        if lowered.names.shapes[directive.predicate].is_equivalence and directive.kind in _NOT_OF_CLASSES:
            message = f"{directive.predicate} is an equivalence relation: .{directive.kind} cannot be used"
            diagnostics.error(message, directive.span, _NOT_OF_CLASSES[directive.kind])
            continue
        for parameter in directive.params:
            _check_parameter(directive, parameter, diagnostics)
        if directive.kind == "limitsize" and not any(p.name == "n" for p in directive.params):
            help = f"write .limitsize {directive.predicate}(n=10)"
            diagnostics.error(".limitsize needs a limit", directive.span, help)


def _check_parameter(
    directive: ast.Directive, parameter: ast.DirectiveParameter, diagnostics: Diagnostics
) -> None:
    allowed = PARAMETERS[directive.kind]
    if parameter.name not in allowed:
        known = f"the parameters are {', '.join(allowed)}" if allowed else f".{directive.kind} takes none"
        help = did_you_mean(parameter.name, allowed, known)
        diagnostics.error(f"unknown parameter {parameter.name} of .{directive.kind}", parameter.span, help)
        return
    if parameter.name == "IO":
        kinds = IO_KINDS[directive.kind]
        help = did_you_mean(str(parameter.value), kinds, f"IO is one of {', '.join(kinds)}")
        wrong = parameter.value not in kinds
    else:
        accepts, help = _VALUES[parameter.name]
        wrong = not accepts(parameter.value)
    if wrong:
        diagnostics.error(f"bad value for {parameter.name}: {_shown(parameter.value)}", parameter.span, help)


def _is_flag(value: Value) -> bool:
    return str(value).lower() in ("true", "false", "0", "1")


def _is_text(value: Value) -> bool:
    return value != "" and not isinstance(value, bool)


def _is_limit(value: Value) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_line(value: Value) -> bool:
    return _is_text(value) and not set("\n\r") & set(str(value))


def _are_columns(value: Value) -> bool:
    return all(part.isascii() and part.isdigit() for part in str(value).split(":"))


def _one_of(*choices: str) -> Callable[[Value], bool]:
    return lambda value: str(value) in choices


_FLAG: tuple[Callable[[Value], bool], str] = (_is_flag, "it is true or false")
_TEXT: tuple[Callable[[Value], bool], str] = (_is_text, 'it is a string, as in name="..."')
_VALUES: dict[str, tuple[Callable[[Value], bool], str]] = {
    "filename": _TEXT,
    "dbname": _TEXT,
    "name": _TEXT,
    "delimiter": (_is_line, "it has at least one character and no line break"),
    "rfc4180": _FLAG,
    "headers": _FLAG,
    "header": _FLAG,
    "attributeNames": (_is_line, "it is one line: the names of the columns"),
    "compress": _FLAG,
    "format": (_one_of("object", "list"), "it is object or list"),
    "columns": (_are_columns, 'it has numbers from 0 joined by colons, as in columns="0:2:1"'),
    "precision": (_one_of("9", "full"), "it is 9 or full"),
    "mode": (_one_of("always", "changes", "on_read"), "it is always, changes or on_read"),
    "n": (_is_limit, "it is a number of rows"),
}


def _shown(value: Value) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value) or '""'
