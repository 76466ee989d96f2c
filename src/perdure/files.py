"""Files that are either complete or absent, and tensors that are checked when read."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import secrets
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from perdure.alignment import aligned
from perdure.errors import PerdureError

PARTIAL = ".partial"
"""Suffix of files that are being written."""


class Damaged(Exception):
    """The content of a file is not what was written."""


def write(path: Path, content: bytes) -> None:
    """Write content atomically: a reader sees the old file or the new one, never a part."""
    try:
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
        f"Cannot write to '{path.parent}' ({error.strerror or error}); "
        f"choose a writable folder with --runs DIR."
    )


def write_json(path: Path, data: Any) -> None:
    """Write data as JSON."""
    write(path, (json.dumps(data, indent=1, allow_nan=False) + "\n").encode())


def read_json(path: Path) -> Any:
    """Read JSON; raises Damaged if it does not parse."""
    try:
        return json.loads(path.read_bytes())
    except (ValueError, UnicodeDecodeError) as error:
        raise Damaged(str(error)) from error


def write_tensors(path: Path, tensors: dict[str, Tensor], facts: Any = None) -> None:
    """Write tensors as safetensors, with facts (JSON) and a digest of both in the header."""
    plain = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()}
    text = json.dumps(facts)
    write(path, save(plain, {"facts": text, "digest": _digest(plain, text)}))


def read_tensors(path: Path) -> tuple[dict[str, Tensor], Any]:
    """Read what `write_tensors` wrote; raises Damaged if anything differs."""
    try:
        with safe_open(path, framework="pt") as file:
            tensors = {name: aligned(file.get_tensor(name)) for name in file.keys()}  # noqa: SIM118
            notes = file.metadata() or {}
        if notes.get("digest") != _digest(tensors, notes.get("facts", "")):
            raise Damaged("the digest does not match")
        return tensors, json.loads(notes["facts"])
    except (SafetensorError, ValueError, KeyError, EOFError, OSError) as error:
        raise Damaged(str(error)) from error


def _digest(tensors: dict[str, Tensor], text: str) -> str:
    digest = hashlib.sha256(text.encode())
    for name in sorted(tensors):
        digest.update(f"{name} {tensors[name].dtype} {tuple(tensors[name].shape)}".encode())
        digest.update(tensors[name].reshape(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def set_aside(path: Path) -> Path:
    """Rename a damaged file so that it is neither used nor lost; returns its new path."""
    number = 1
    while (aside := path.with_name(f"{path.name}.damaged-{number}")).exists():
        number += 1
    path.rename(aside)
    return aside
