"""Where data are: the folder of raw files, and the cache folder of what was built from them."""

from __future__ import annotations

import os
from pathlib import Path

from perdure.errors import PerdureError

VARIABLE = "PERDURE_DATA"
"""Environment variable that names the folder of raw data; the option --data sets it for one command."""


def data_folder() -> Path:
    """The folder of raw data: PERDURE_DATA, or `data` in the user's cache."""
    named = os.environ.get(VARIABLE)
    return Path(named).expanduser() if named else cache_folder() / "data"


def cache_folder() -> Path:
    """The user's cache for Perdure."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "perdure"


def raw(benchmark: str, *parts: str) -> Path:
    """A raw file or folder that a benchmark needs; raises a helpful error if it does not exist."""
    folder = data_folder()
    path = folder.joinpath(*parts)
    if not path.exists():
        raise PerdureError(
            f"{benchmark}: '{path}' does not exist; put the data in '{folder}', or name another folder "
            f"with --data DIR or {VARIABLE} (perdure data list shows what is needed)."
        )
    return path
