"""What identifies a plugin: its file, and the modules beside it that it imports.

Results made with one version of a helper are not those of another, so helpers count as the file itself does.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator
from pathlib import Path

PACKAGE = "__init__.py"
"""The file of a package itself."""


def digest_of(file: Path) -> str:
    """16 hexadecimal digits for a file by itself, or for it and all that it imports from its own folder."""
    root = _root(file)
    found = sorted(_with_helpers(file, root))
    if len(found) == 1:
        return _digest(file.read_bytes())
    parts = ((path.relative_to(root).as_posix().encode(), path.read_bytes()) for path in found)
    return _digest(b"".join(b"%d %s %d " % (len(name), name, len(text)) + text for name, text in parts))


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


def _root(file: Path) -> Path:
    """The folder from which a file is imported: its own, or that of the outermost package it is part of."""
    folder = file.parent
    while (folder / PACKAGE).is_file():
        folder = folder.parent
    return folder


def _with_helpers(file: Path, root: Path) -> set[Path]:
    """A file and, from the files that it imports on, all that lie below the root."""
    found, left = {file}, [file]
    while left:
        for helper in set(_imported(left.pop(), root)) - found:
            found.add(helper)
            left.append(helper)
    return found


def _imported(file: Path, root: Path) -> Iterator[Path]:
    """The files below the root that a file imports, wherever in its text; none if it is not Python."""
    try:
        tree = ast.parse(file.read_bytes())
    except (SyntaxError, ValueError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from _files(root, alias.name.split("."))
        elif isinstance(node, ast.ImportFrom):
            start = file.parents[node.level - 1] if node.level else root
            words = (node.module or "").split(".") if node.module else []
            for alias in node.names:
                yield from _files(start, [*words, alias.name])


def _files(folder: Path, words: list[str]) -> Iterator[Path]:
    """The files of a dotted name, and of the packages on the way to it, as far as there are any."""
    for count in range(1, len(words) + 1):
        place = folder.joinpath(*words[:count])
        for path in (place.with_suffix(".py"), place / PACKAGE):
            if path.is_file():
                yield path
