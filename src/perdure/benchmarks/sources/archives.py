"""Members of archives, read without unpacking anything to disk.

Nothing is written, so names with `..` or a leading slash can do no harm; they are rejected all the same,
since such an archive is not what it claims to be. Sizes are bounded, so that zip bombs are detected early.
"""

from __future__ import annotations

import gzip
import lzma
import tarfile
import tokenize
import warnings
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import Self

import numpy as np

from perdure.benchmarks.task import Array
from perdure.errors import PerdureError
from perdure.files import check_regular

LARGEST = 4 * 2**30
"""Maximum size in bytes of one unpacked archive."""
LARGEST_PACKED = 2**38
"""Maximum size in bytes of an archive, whose members have limits of their own."""
RATIO = 1000
"""Maximum compression ratio of a zip's members; genuine data stay far below."""
TEXT_RATIO, FREE = 300, 2**26
"""Maximum compression ratio of gzipped text, which stays below 100, once it has so many bytes unpacked."""
GZIP = b"\x1f\x8b"
"""The first bytes of a gzipped file."""
UNREADABLE = (
    zlib.error, ArithmeticError, AttributeError, EOFError, LookupError, MemoryError, OSError, RuntimeError,
    SyntaxError, TypeError, ValueError,
)  # fmt: skip
"""What damaged archives and arrays raise, in addition to their own errors."""


class _Member(tarfile.TarInfo):
    """A member of an intact archive; tarfile itself takes a damaged header for the end of the archive."""

    @classmethod
    def fromtarfile(cls, tarfile_: tarfile.TarFile) -> Self:
        """The member whose header comes next."""
        try:
            return super().fromtarfile(tarfile_)
        except tarfile.EOFHeaderError:  # type: ignore[attr-defined]  # missing from the stubs
            raise  # blocks of zeros mark the end of an archive
        except tarfile.HeaderError as error:
            raise tarfile.ReadError(f"{error}, it is damaged or truncated") from None


def tar_members(
    path: Path, wanted: Callable[[str], bool] = lambda _: True, largest: int = LARGEST
) -> Iterator[tuple[str, bytes]]:
    """Names and contents of the wanted files of a tar archive (plain, gz, bz2 or xz)."""
    total = 0
    try:
        check_regular(path, LARGEST_PACKED)
        with tarfile.open(path, tarinfo=_Member) as archive:
            for member in archive:
                _check_name(path, member.name)
                if not member.isfile():
                    continue
                total += member.size
                if total > largest:
                    raise PerdureError(
                        f"'{path}' holds more than {largest} bytes unpacked; this is not allowed."
                    )
                if wanted(member.name):
                    file = archive.extractfile(member)
                    assert file is not None  # regular files have content
                    yield member.name, file.read()
    except (tarfile.TarError, lzma.LZMAError, zlib.error, EOFError, OSError) as error:
        raise PerdureError(
            f"'{path}' cannot be read as a tar archive ({error}); download it again."
        ) from None


def unzipped(path: Path, largest: int = LARGEST) -> bytes:
    """The bytes of a file, unpacked if it is gzipped, which its first bytes tell, not its name."""
    try:
        check_regular(path, largest)
        with path.open("rb") as file:
            packed = file.read(len(GZIP)) == GZIP
            file.seek(0)
            if packed:
                largest = min(largest, max(FREE, TEXT_RATIO * path.stat().st_size))
            content = gzip.GzipFile(fileobj=file).read(largest + 1) if packed else file.read(largest + 1)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise PerdureError(f"'{path}' is a gzip file that is cut off or damaged ({error}).") from None
    except OSError as error:
        raise PerdureError(f"'{path}' cannot be read ({error.strerror or error}).") from None
    if len(content) > largest:
        raise PerdureError(f"'{path}' holds more than {largest} bytes unpacked; this is not allowed.")
    return content


def decoded(content: bytes, source: Path | str, lines: str = "line") -> str:
    """The text that bytes stand for; the error for what is no UTF-8 names the place, in `lines` or rows."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        number = content.count(b"\n", 0, error.start) + 1
        raise PerdureError(
            f"'{source}', {lines} {number}: byte 0x{content[error.start]:02x} is not UTF-8; save the file as "
            f"UTF-8 text."
        ) from None


def npz(path: Path, needed: tuple[str, ...] = (), largest: int = LARGEST) -> dict[str, Array]:
    """The arrays of an npz file, never unpickled; it must contain those in `needed`."""
    try:
        check_regular(path, LARGEST_PACKED)
        with zipfile.ZipFile(path) as archive:
            _check_zip(path, archive, largest)
        with np.load(path, allow_pickle=False) as file, warnings.catch_warnings():
            warnings.simplefilter("error")  # numpy warns when it had to guess a header
            missing = [name for name in needed if name not in file.files]
            if missing:
                raise PerdureError(
                    f"'{path}' lacks the array '{missing[0]}'; it has {', '.join(file.files) or 'none'}."
                )
            arrays = {name: file[name] for name in (needed or file.files)}
    except (zipfile.BadZipFile, tokenize.TokenError, Warning, KeyError, *UNREADABLE) as error:
        raise PerdureError(f"'{path}' cannot be read as an npz file ({_reason(error)}).") from None
    strange = [name for name, array in arrays.items() if not isinstance(array, np.ndarray)]
    if strange:
        raise PerdureError(
            f"'{path}': its member '{strange[0]}' is not an array; write the file with np.savez."
        )
    return arrays


def npy(path: Path, largest: int = LARGEST) -> Array:
    """The array of an npy file, never unpickled."""
    try:
        check_regular(path, largest)
        with path.open("rb") as file, warnings.catch_warnings():
            warnings.simplefilter("error")
            array: Array = np.lib.format.read_array(file, allow_pickle=False)
            return array
    except (tokenize.TokenError, Warning, *UNREADABLE) as error:
        raise PerdureError(f"'{path}' cannot be read as an npy file ({_reason(error)}).") from None


def _reason(error: BaseException) -> str:
    """The message of an error, on one line."""
    if "pickle" in str(error) or "Object arrays" in str(error):
        return "it holds Python objects, which are never unpickled; save numbers or strings"
    if isinstance(error, zipfile.BadZipFile):
        return "it is no zip archive, or a damaged one; write it with np.savez"
    if isinstance(error, (TypeError, OverflowError, SyntaxError)) or "malformed node" in str(error):
        return "the header of an array is not one that numpy writes; save it again with numpy"
    told = (error.strerror if isinstance(error, OSError) else None) or str(error)
    return " ".join(told.split())[:200].rstrip(".") or type(error).__name__


def _check_zip(path: Path, archive: zipfile.ZipFile, largest: int) -> None:
    total = 0
    seen: set[str] = set()
    for member in archive.infolist():
        _check_name(path, member.filename)
        if member.filename in seen:
            raise PerdureError(
                f"'{path}' holds '{member.filename}' twice; write the file again with np.savez."
            )
        seen.add(member.filename)
        total += member.file_size
        if total > largest or member.file_size > RATIO * max(member.compress_size, 4096):
            raise PerdureError(
                f"'{path}': member '{member.filename}' claims {member.file_size} bytes from "
                f"{member.compress_size}; files with such a compression ratio are rejected."
            )


def _check_name(path: Path, name: str) -> None:
    pure = PurePosixPath(name.replace("\\", "/"))
    if pure.is_absolute() or ".." in pure.parts:
        raise PerdureError(
            f"'{path}' holds a member named '{name}', which points outside; such archives are rejected."
        )
