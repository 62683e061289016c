"""Owns the parameters of `.input` and `.output`: their names, defaults and checks.  Opens no file.

A wrong parameter is a `ParameterError`, a `DataError` that names it in `parameter`; the front end, which
knows where it is in the source, adds the span.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dlog.errors import DataError
from dlog.ir.lower.directives import PARAMETERS

ParameterValue = str | int | bool
Folder = str | os.PathLike[str]

TEXT, JSON, PARQUET, ARROW, SQLITE, TABLE = "text", "json", "parquet", "arrow", "sqlite", "table"
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")


class ParameterError(DataError):
    """A parameter of `.input` or `.output` that is unknown, or whose value cannot be used."""

    def __init__(self, message: str, parameter: str, help: str | None = None):
        super().__init__(message, help=help)
        self.parameter = parameter


@dataclass(frozen=True)
class _Kind:
    """A value of IO: the format, its usual suffix for input and output, whether text is quoted."""

    format: str
    input_suffix: str
    output_suffix: str
    quoted: bool = False
    stream: bool = False
    document: bool = False  # one JSON array of rows, rather than lines


# Soufflé's names and ours.  Only `file` keeps Soufflé's suffixes and its unquoted, tab-separated text.
_KINDS = {
    "file": _Kind(TEXT, ".facts", ".csv"),
    "csv": _Kind(TEXT, ".csv", ".csv", quoted=True),
    "tsv": _Kind(TEXT, ".tsv", ".tsv"),
    "json": _Kind(JSON, ".json", ".json"),
    "jsonfile": _Kind(JSON, ".json", ".json", document=True),  # Soufflé's
    "parquet": _Kind(PARQUET, ".parquet", ".parquet"),
    "arrow": _Kind(ARROW, ".arrow", ".arrow"),
    "sqlite": _Kind(SQLITE, ".sqlite", ".sqlite"),
    "table": _Kind(TABLE, "", "", stream=True),  # of a Spark catalog
    "stdin": _Kind(TEXT, "", "", stream=True),
    "stdinjson": _Kind(JSON, "", "", stream=True),
    "stdout": _Kind(TEXT, "", "", stream=True),
    "stdoutjson": _Kind(JSON, "", "", stream=True),
}
_INPUT_KINDS = [kind for kind in _KINDS if not kind.startswith("stdout")]
_OUTPUT_KINDS = [kind for kind in _KINDS if not kind.startswith("stdin")]

# Without IO=, these suffixes determine the format; `.csv` does not, because Soufflé's are tab-separated.
_KIND_BY_SUFFIX = {
    ".parquet": "parquet",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
}

_BOOLEANS = {"true": True, "1": True, "false": False, "0": False}


@dataclass(frozen=True)
class InputOptions:
    """Where and how one relation is read.  `path` is None for standard input.  `far` is a URI, or a table
    of a catalog: only Spark reads it.

    `compress` changes nothing: compressed data is recognised by its first bytes.  With `keep_rejected` every
    rejected row is stored in full, not just the first few for display.
    """

    relation: str
    format: str = TEXT
    path: Path | None = None
    folder: Path = Path(".")
    delimiter: str = "\t"
    quoted: bool = False
    header: bool = False
    columns: tuple[int, ...] | None = None
    compress: bool = False
    keep_rejected: bool = False
    far: str | None = None
    table: str = ""  # of a SQLite file

    @classmethod
    def from_params(
        cls, relation: str, params: Mapping[str, ParameterValue], facts_dir: Folder | None = None
    ) -> InputOptions:
        """The options that `.input RELATION(params)` asks for.

        >>> options = InputOptions.from_params("edge", {"delimiter": ","}, "facts")
        >>> options.path.as_posix(), options.delimiter
        ('facts/edge.facts', ',')
        """
        _check_names(params, PARAMETERS["input"])
        kind = _kind(params, _INPUT_KINDS)
        folder = Path(facts_dir or ".")
        quoted, delimiter = _text_form(params, kind)
        _check_format(params, kind)
        name = _text(params, "name", relation)
        return cls(
            relation=relation,
            format=kind.format,
            path=_path(params, kind, name + kind.input_suffix, folder),
            folder=folder,
            delimiter=delimiter,
            quoted=quoted,
            header=_header(params),
            columns=_source_columns(params),
            compress=_flag(params, "compress"),
            far=_far(params, kind, name),
            table=name,
        )

    @classmethod
    def for_path(cls, path: Folder, **params: ParameterValue) -> InputOptions:
        """The options for one file; the suffix determines the format unless `IO` is given."""
        return cls.from_params(Path(path).stem, {"filename": os.fspath(path), **params})


@dataclass(frozen=True)
class OutputOptions:
    """Where and how one relation is written.  `path` is None for standard output.  `far` is a URI, or a
    table of a catalog: only Spark writes it."""

    relation: str
    format: str = TEXT
    path: Path | None = None
    delimiter: str = "\t"
    quoted: bool = False
    header: bool = False
    attribute_names: str = ""  # the header line, if not the names of the columns
    compress: bool = False
    full_precision: bool = False
    arrays: bool = False  # JSON rows as arrays rather than objects
    document: bool = False  # all rows in one JSON array
    far: str | None = None
    name: str = ""  # of the relation in a heading, and of the table in a SQLite file

    @classmethod
    def from_params(
        cls, relation: str, params: Mapping[str, ParameterValue], output_dir: Folder | None = None
    ) -> OutputOptions:
        """The options that `.output RELATION(params)` asks for; the folder `-` is standard output.

        >>> OutputOptions.from_params("reach", {"compress": True}, "out").path.as_posix()
        'out/reach.csv.gz'
        """
        _check_names(params, PARAMETERS["output"])
        kind = _kind(params, _OUTPUT_KINDS)
        if os.fspath(output_dir or ".") == "-":
            kind = _KINDS["stdoutjson" if kind.format == JSON else "stdout"]
        quoted, delimiter = _text_form(params, kind)
        compress = _flag(params, "compress")
        name = _text(params, "name", relation)
        suffix = kind.output_suffix + (".gz" if compress and kind.format in (TEXT, JSON) else "")
        return cls(
            relation=relation,
            format=kind.format,
            path=_path(params, kind, name + suffix, Path(output_dir or ".")),
            delimiter=delimiter,
            quoted=quoted,
            header=_header(params),
            attribute_names=_text(params, "attributeNames", ""),
            compress=compress,
            full_precision=_choice(params, "precision", ("9", "full")) == "full",
            arrays=_check_format(params, kind) == "list",
            document=kind.document,
            far=_far(params, kind, name),
            name=name,
        )

    @classmethod
    def for_path(cls, path: Folder, **params: ParameterValue) -> OutputOptions:
        return cls.from_params(Path(path).stem, {"filename": os.fspath(path), **params})


def _check_names(params: Mapping[str, ParameterValue], known: Sequence[str]) -> None:
    for name in params:
        if name not in known:
            raise ParameterError(f'unknown parameter "{name}"', name, _did_you_mean(name, known))


def _did_you_mean(word: str, known: Iterable[str]) -> str:
    folded = {candidate.lower(): candidate for candidate in known}
    close = difflib.get_close_matches(word.lower(), folded, n=1)
    if close:
        return f'did you mean "{folded[close[0]]}"?'
    return "known: " + ", ".join(folded.values())


def _kind(params: Mapping[str, ParameterValue], allowed: list[str]) -> _Kind:
    if "IO" not in params and "dbname" not in params:
        return _KINDS[_KIND_BY_SUFFIX.get(_data_suffix(_text(params, "filename", "")), "file")]
    value = _text(params, "IO", "file")
    if value not in allowed:
        raise ParameterError(f'IO="{value}" is not possible here', "IO", _did_you_mean(value, allowed))
    if "dbname" in params and value != "sqlite":
        raise ParameterError("dbname is a parameter of SQLite files", "dbname", "write filename")
    return _KINDS[value]


def _data_suffix(filename: str) -> str:
    path = Path(filename)
    return Path(path.stem).suffix if path.suffix == ".gz" else path.suffix


def _text(params: Mapping[str, ParameterValue], name: str, default: str) -> str:
    value = params.get(name, default)
    if isinstance(value, bool) or (isinstance(value, str) and not value and name in params):
        raise ParameterError(f"{name} must be a string", name, f'write {name}="..."')
    return str(value)


def _flag(params: Mapping[str, ParameterValue], name: str) -> bool:
    value = str(params.get(name, "false")).lower()
    if value not in _BOOLEANS:
        raise ParameterError(f'{name} is true or false, not "{params[name]}"', name)
    return _BOOLEANS[value]


def _header(params: Mapping[str, ParameterValue]) -> bool:
    return _flag(params, "headers") or _flag(params, "header")


def _choice(params: Mapping[str, ParameterValue], name: str, choices: tuple[str, ...]) -> str:
    value = _text(params, name, choices[0])
    if value not in choices:
        expected = " or ".join(choices)
        raise ParameterError(f'{name} is {expected}, not "{value}"', name, _did_you_mean(value, choices))
    return value


def _check_format(params: Mapping[str, ParameterValue], kind: _Kind) -> str:
    if "format" in params and kind.format != JSON:
        raise ParameterError("format is a parameter of JSON files", "format", "add IO=json")
    return _choice(params, "format", ("list", "object") if kind.document else ("object", "list"))


def _text_form(params: Mapping[str, ParameterValue], kind: _Kind) -> tuple[bool, str]:
    """Whether strings are quoted, and the delimiter."""
    quoted = _flag(params, "rfc4180") if "rfc4180" in params else kind.quoted
    delimiter = _text(params, "delimiter", "," if quoted else "\t").replace("\\t", "\t")
    if "\n" in delimiter or "\r" in delimiter:
        raise ParameterError("a delimiter cannot contain a line break", "delimiter")
    if quoted and '"' in delimiter:
        raise ParameterError("with rfc4180=true a delimiter cannot contain a double quote", "delimiter")
    return quoted, delimiter


def _path(params: Mapping[str, ParameterValue], kind: _Kind, default: str, folder: Path) -> Path | None:
    """Relative names are relative to the folder."""
    return None if kind.stream else folder / (_filename(params) or default)


def _filename(params: Mapping[str, ParameterValue]) -> str:
    """As in Soufflé, `filename` is read before `dbname`."""
    return _text(params, "filename", _text(params, "dbname", ""))


def _far(params: Mapping[str, ParameterValue], kind: _Kind, name: str) -> str | None:
    if kind.format == TABLE:
        return name
    filename = _filename(params)
    if kind.format == SQLITE and _URI.match(filename):
        parameter = "filename" if "filename" in params else "dbname"
        raise ParameterError("a SQLite file is on a local disk", parameter, "write its path")
    return filename if _URI.match(filename) and not kind.stream else None


def _source_columns(params: Mapping[str, ParameterValue]) -> tuple[int, ...] | None:
    """`columns="0:2:1"`: the i-th column of the relation is the i-th number's column of the file."""
    if "columns" not in params:
        return None
    parts = str(params["columns"]).split(":")
    if not all(part.isascii() and part.isdigit() and len(part) < 10 for part in parts):
        message = f'columns are numbers joined by colons, not "{params["columns"]}"'
        raise ParameterError(message, "columns", 'for the first and third column write columns="0:2"')
    return tuple(int(part) for part in parts)
