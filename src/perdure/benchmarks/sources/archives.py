"""Members of archives, read without unpacking anything to disk.

Nothing is written, so names with `..` or a leading slash can do no harm; they are refused all the same,
since such an archive is not what it claims to be. Sizes are bounded, so a bomb is found before it bursts.
"""

from __future__ import annotations

import lzma
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath

import numpy as np

from perdure.benchmarks.task import Array
from perdure.errors import PerdureError

LARGEST = 4 * 2**30
"""Bytes that one archive may hold unpacked."""
RATIO = 1000
"""How many times larger than packed the members of a zip may be; honest data stay far below."""


def tar_members(
    path: Path, wanted: Callable[[str], bool] = lambda _: True, largest: int = LARGEST
) -> Iterator[tuple[str, bytes]]:
    """Names and contents of the wanted files of a tar archive (plain, gz, bz2 or xz)."""
    total = 0
    try:
        with tarfile.open(path) as archive:
            for member in archive:
                _check_name(path, member.name)
                if not member.isfile():
                    continue
                total += member.size
                if total > largest:
                    raise PerdureError(f"'{path}' holds more than {largest} bytes unpacked; that is refused.")
                if wanted(member.name):
                    file = archive.extractfile(member)
                    assert file is not None  # regular files have content
                    yield member.name, file.read()
    except (tarfile.TarError, lzma.LZMAError, zlib.error, EOFError, OSError) as error:
        raise PerdureError(f"'{path}' cannot be read as a tar archive ({error}); fetch it again.") from None


def npz(path: Path, needed: tuple[str, ...] = (), largest: int = LARGEST) -> dict[str, Array]:
    """The arrays of an npz file, never unpickled; `needed` names must be among them."""
    try:
        with zipfile.ZipFile(path) as archive:
            _check_zip(path, archive, largest)
        with np.load(path, allow_pickle=False) as file:
            missing = [name for name in needed if name not in file.files]
            if missing:
                raise PerdureError(
                    f"'{path}' lacks the array '{missing[0]}'; it has {', '.join(file.files) or 'none'}."
                )
            return {name: file[name] for name in (needed or file.files)}
    except (zipfile.BadZipFile, zlib.error, ValueError, EOFError, OSError) as error:
        reason = "it holds Python objects, which are never unpickled" if "pickle" in str(error) else error
        raise PerdureError(f"'{path}' cannot be read as an npz file ({reason}).") from None


def _check_zip(path: Path, archive: zipfile.ZipFile, largest: int) -> None:
    total = 0
    for member in archive.infolist():
        _check_name(path, member.filename)
        total += member.file_size
        if total > largest or member.file_size > RATIO * max(member.compress_size, 4096):
            raise PerdureError(
                f"'{path}': member '{member.filename}' claims {member.file_size} bytes from "
                f"{member.compress_size}; a file that swells like this is refused."
            )


def _check_name(path: Path, name: str) -> None:
    pure = PurePosixPath(name.replace("\\", "/"))
    if pure.is_absolute() or ".." in pure.parts:
        raise PerdureError(f"'{path}' holds a member named '{name}', which points outside; it is refused.")
