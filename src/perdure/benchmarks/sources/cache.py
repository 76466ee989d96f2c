"""Arrays that take long to build are cached: complete, checked, and only while their inputs are unchanged."""

from __future__ import annotations

import hashlib
import io
import json
import warnings
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from perdure.benchmarks.sources.folder import cache_folder
from perdure.benchmarks.task import Array
from perdure.errors import PerdureError
from perdure.files import check_regular, write

LARGEST = 2**38
"""Size in bytes of the largest file that is read."""
DIGEST = 32
"""Size in bytes of the digest that precedes the arrays in a cache file."""

NamedArrays = dict[str, Array]


def kept(name: str, recipe: Mapping[str, Any], make: Callable[[], NamedArrays]) -> NamedArrays:
    """The arrays that `make` returns, from the cache if they were made before with the same recipe.

    `recipe` names everything the arrays depend on: options, digests of raw files, a revision of the code.
    A cache file that is damaged or incomplete is written again; one that cannot be written is a warning.
    """
    path = place(name, recipe)
    found = _read(path)
    if found is not None:
        return found
    arrays = make()
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, **arrays)
    content = buffer.getvalue()
    try:
        write(path, hashlib.sha256(content).digest() + content)
    except PerdureError as error:  # the cache only saves time, and what it would hold is there
        reason = getattr(error.__cause__, "strerror", None) or error
        warnings.warn(
            f"The data of {name} cannot be kept in '{path.parent}' ({reason}), so they are built again each "
            f"time; XDG_CACHE_HOME names another folder.",
            stacklevel=2,
        )
    return arrays


def place(name: str, recipe: Mapping[str, Any]) -> Path:
    """Where arrays with this recipe are cached."""
    text = json.dumps(recipe, sort_keys=True)
    return cache_folder() / "built" / f"{name}-{hashlib.sha256(text.encode()).hexdigest()[:16]}.npz"


def built(name: str) -> list[Path]:
    """The cached files of this name, whatever their recipe."""
    return sorted((cache_folder() / "built").glob(f"{name}-*.npz"))


def _read(path: Path) -> NamedArrays | None:
    try:
        check_regular(path, LARGEST)
        content = path.read_bytes()
        if hashlib.sha256(content[DIGEST:]).digest() != content[:DIGEST]:
            return None
        with np.load(io.BytesIO(content[DIGEST:]), allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
    except (OSError, ValueError, zipfile.BadZipFile):
        return None


def digest(path: Path) -> str:
    """SHA-256 of a regular file; others, which may never end, raise OSError."""
    check_regular(path, LARGEST)
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
