"""Files that are either complete or absent, and tensors that are checked when read."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import secrets
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perdure.errors import PerdureError

if TYPE_CHECKING:  # torch takes seconds to load, and only tensors need it
    from torch import Tensor

PARTIAL = ".partial"
"""Suffix of files that are being written."""
LARGEST_JSON, LARGEST_TENSORS = 2**26, 2**36
"""Sizes in bytes of the largest files of each kind that are read."""
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
"""An escape in JSON that may stand for half a character."""


class Damaged(Exception):
    """The content of a file is not what was written."""


def write(path: Path, content: bytes, *, make_folder: bool = True) -> None:
    """Write content atomically: a reader sees the old file or the new one, never a part.

    What cannot be written is a PerdureError with the system's as its cause; which option names another
    folder, only the caller knows.
    Without `make_folder` the folder must be there: one that was removed is not made again.
    """
    try:
        if make_folder:
            path.parent.mkdir(parents=True, exist_ok=True)
        # Not tempfile: its files are readable only by their owner, and records are meant to be shared.
        name = path.with_name(f".{path.name}.{os.getpid()}-{secrets.token_hex(4)}{PARTIAL}")
        handle = os.open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            os.replace(name, path)
        except BaseException:
            name.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise PerdureError(_explained(error, path)) from error


def check_target(path: Path) -> None:
    """Raise the error of `write` if a file could not be written there; before the work that it is for."""
    probe = path.with_name(f".{path.name}.{os.getpid()}{PARTIAL}")
    write(probe, b"")
    probe.unlink(missing_ok=True)


def sweep(folder: Path) -> None:
    """Remove what killed writers left behind; requires the folder's lock."""
    for leftover in folder.glob(f".*{PARTIAL}"):
        leftover.unlink(missing_ok=True)


def _explained(error: OSError, path: Path) -> str:
    if error.errno == errno.ENOSPC:
        return (
            f"The disk is full: '{path.name}' could not be written to '{path.parent}'. "
            f"What was written before is intact; free some space and run the same command to continue."
        )
    return (
        f"Cannot write to '{path.parent}' ({error.strerror or error}); make it writable, or choose another "
        f"folder."
    )


def read(path: Path, largest: int) -> bytes:
    """The content of a regular file of at most `largest` bytes.

    A pipe or a device may never end, so these, and all that is no file, raise OSError.
    """
    # Non-blocking, since opening a pipe waits for its other end; for regular files it means nothing.
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    try:
        _check_regular(path, os.fstat(handle), largest)
    except OSError:
        os.close(handle)
        raise
    with os.fdopen(handle, "rb") as file:
        content = file.read(largest + 1)
    if len(content) > largest:
        raise OSError(errno.EFBIG, f"it has more than {largest} bytes", str(path))
    return content


def check_regular(path: Path, largest: int) -> None:
    """Raise OSError if a path is not that of a regular file of at most `largest` bytes."""
    _check_regular(path, path.stat(), largest)


def _check_regular(path: Path, facts: os.stat_result, largest: int) -> None:
    if stat.S_ISDIR(facts.st_mode):
        raise OSError(errno.EISDIR, "it is a folder", str(path))
    if not stat.S_ISREG(facts.st_mode):
        raise OSError(errno.EINVAL, "it is not a regular file", str(path))
    if facts.st_size > largest:
        raise OSError(errno.EFBIG, f"it has more than {largest} bytes", str(path))


def write_json(path: Path, data: Any, *, make_folder: bool = True) -> None:
    """Write data as JSON."""
    write(path, (json.dumps(data, indent=1, allow_nan=False) + "\n").encode(), make_folder=make_folder)


def read_json(path: Path) -> Any:
    """Read JSON; raises Damaged if it cannot be read or does not parse."""
    try:
        return parsed(read(path, LARGEST_JSON).decode())
    except (OSError, ValueError) as error:
        raise Damaged(_reason(error)) from error


def parsed(text: str) -> Any:
    """The data that JSON stands for; ValueError if it is none, nests too deep, or holds half a character."""
    try:
        data = json.loads(text)
        if "\\u" in text and _SURROGATE.search(text):
            json.dumps(data, ensure_ascii=False).encode()
        return data
    except RecursionError:
        raise ValueError("it nests too deep") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"it is not JSON (line {error.lineno}, column {error.colno})") from None
    except UnicodeEncodeError:
        raise ValueError("it holds half a character, a lone surrogate") from None


def _reason(error: Exception) -> str:
    """An error in a few words on one line."""
    told = (error.strerror if isinstance(error, OSError) else None) or str(error) or type(error).__name__
    return " ".join(told.split())[:160].rstrip(".;")


def write_tensors(
    path: Path, tensors: dict[str, Tensor], facts: Any = None, *, make_folder: bool = True
) -> None:
    """Write tensors as safetensors, with facts (JSON) and a digest of both in the header."""
    from safetensors.torch import save

    plain = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()}
    text = json.dumps(facts)
    content = save(plain, {"facts": text, "digest": _digest(plain, text)})
    write(path, content, make_folder=make_folder)


def read_tensors(path: Path) -> tuple[dict[str, Tensor], Any]:
    """Read what `write_tensors` wrote; raises Damaged if anything differs."""
    from safetensors import SafetensorError, safe_open

    from perdure.alignment import aligned

    try:
        check_regular(path, LARGEST_TENSORS)
        with safe_open(path, framework="pt") as file:
            tensors = {name: aligned(file.get_tensor(name)) for name in file.keys()}  # noqa: SIM118
            notes = file.metadata() or {}
        if notes.get("digest") != _digest(tensors, notes.get("facts", "")):
            raise Damaged("the digest does not match")
        return tensors, parsed(notes["facts"])
    except KeyError:
        raise Damaged("it has no digest") from None
    except (SafetensorError, ValueError, TypeError, EOFError, OSError, RuntimeError) as error:
        raise Damaged(_reason(error)) from error


def _digest(tensors: dict[str, Tensor], text: str) -> str:
    import torch

    digest = hashlib.sha256(text.encode())
    for name in sorted(tensors):
        digest.update(f"{name} {tensors[name].dtype} {tuple(tensors[name].shape)}".encode())
        digest.update(tensors[name].reshape(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def set_aside(path: Path) -> Path:
    """Rename a damaged file so that it is neither used nor lost; returns its new path."""
    number = 1
    while os.path.lexists(aside := path.with_name(f"{path.name}.damaged-{number}")):
        number += 1
    try:
        path.rename(aside)
    except OSError as error:
        raise PerdureError(_explained(error, path)) from error
    return aside
