"""What must be equal in driver and workers for their numbers to be equal.

The driver sends its fingerprint with each order; a worker that differs refuses the order with a sentence.
"""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Mapping
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from perdure.config import REVISION
from perdure.errors import Refused
from perdure.networks.native.library import VARIABLE, describe
from perdure.registry import origins

PACKAGES = ("perdure", "torch", "numpy")
ENDINGS = {".py", ".toml", ".c", ".h"}
"""Files of the package that can change numbers."""

Fingerprint = Mapping[str, Any]


def fingerprint() -> dict[str, Any]:
    """Versions, code, kernels and plugins of this process, as plain data."""
    return {
        **{name: version(name) for name in PACKAGES},
        "python": ".".join(platform.python_version_tuple()[:2]),
        "revision": REVISION,
        "code": _code(),
        "kernels": describe(),
        "plugins": {source.name: source.digest for source in origins()},
    }


def check(driver: Fingerprint) -> None:
    """Raise Refused if a driver's runs would give other numbers here."""
    worker, where = fingerprint(), f"The worker on {platform.node() or 'another machine'}"
    for name in (*PACKAGES, "python", "revision"):
        if driver[name] != worker[name]:
            raise Refused(
                f"{where} has {name} {worker[name]}, this side has {driver[name]}; install the same on both."
            )
    if driver["code"] != worker["code"]:
        raise Refused(f"{where} runs other source files of perdure than this side; bring both up to date.")
    if driver["kernels"] != worker["kernels"]:
        raise Refused(
            f"{where} computes with the kernels '{worker['kernels']}', this side with "
            f"'{driver['kernels']}', so the last digits would differ; set {VARIABLE} alike on both."
        )
    for name, digest in driver["plugins"].items():
        if name not in worker["plugins"]:
            raise Refused(f"{where} does not have the plugin '{name}'; bring it to the same place there.")
        if worker["plugins"][name] != digest:
            raise Refused(f"{where} has another version of the plugin '{name}'; bring it up to date there.")


@cache
def _code() -> str:
    """16 hexadecimal digits of the package's own files."""
    root = Path(__file__).parent
    digest = hashlib.sha256()
    for path in sorted(path for path in root.rglob("*") if path.suffix in ENDINGS):
        digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]
