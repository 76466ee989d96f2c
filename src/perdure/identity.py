"""What identifies a config: a hash of its plain data.

Data that have a digest of their files (`benchmark.content`) are known by it; where they are stored
(`benchmark.folder`) stays in the config, so that a run can read them, but does not count.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

PLACE = "folder"
"""The option of a benchmark that says where its data are; it does not count if they have a digest."""
DIGITS = 16
"""Number of hexadecimal digits of a hash."""


def hash_of(config: Mapping[str, Any]) -> str:
    """16 hexadecimal digits that identify a config given as plain data."""
    benchmark = config.get("benchmark")
    if isinstance(benchmark, Mapping) and benchmark.get("content"):
        kept = {name: value for name, value in benchmark.items() if name != PLACE}
        return _digest({**config, "benchmark": kept})
    return _digest(config)


def stands_for(name: str, config: Mapping[str, Any]) -> bool:
    """Whether a hash is that of a config; once, the folder of the data counted too."""
    return name in (hash_of(config), _digest(config))


def _digest(config: Mapping[str, Any]) -> str:
    text = json.dumps(config, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:DIGITS]
