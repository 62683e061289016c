"""Owns the files of pictures: the name determines the format.  Knows nothing of what is drawn."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from dlog.errors import DlogError
from dlog.views.picture.scene import Label, Scene
from dlog.views.picture.text import DELTA, EXISTS, SHAPES

FORMATS = (".svg", ".pdf", ".dot")


def write_scene(path: str | Path, draw: Callable[[], Scene], dot: Callable[[], str]) -> str:
    """Into a file whose name ends in .svg, .pdf or .dot.  Returns the characters that the format cannot show:
    PDF has those of Western European languages only.
    """
    suffix = Path(path).suffix.lower()
    if suffix not in FORMATS:
        help = f"name the file {Path(path).stem}.svg, .pdf or .dot"
        raise DlogError(f"cannot draw into {path}", help=help)
    scene = draw()
    content = dot().encode() if suffix == ".dot" else _written(scene, suffix)
    try:
        Path(path).write_bytes(content)
    except OSError as error:
        raise DlogError(f"cannot write {path}: {error.strerror}") from None
    return _beyond_latin(scene) if suffix == ".pdf" else ""


def _written(scene: Scene, suffix: str) -> bytes:
    if suffix == ".svg":
        from dlog.views.picture.svg import svg

        return svg(scene).encode()
    from dlog.views.picture.pdf import pdf

    return pdf(scene)


def _beyond_latin(scene: Scene) -> str:
    shown = {*SHAPES, DELTA, EXISTS}
    letters = (c for item in scene.items if isinstance(item, Label) for run in item.text for c in run.text)
    return "".join(dict.fromkeys(c for c in letters if ord(c) > 255 and c not in shown))
