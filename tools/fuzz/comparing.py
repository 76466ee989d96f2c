"""Whether two folders of runs hold the same records and the same tensors, bit for bit."""

from __future__ import annotations

from pathlib import Path

import torch

from perdure.files import read_tensors
from perdure.storage.store import all_records

TIMES = ("seconds", "timings")
"""What may differ."""


def difference(ours: Path, expected: Path) -> str | None:
    """What differs between the finished runs of two folders; None if nothing does."""
    (mine, my_faults), (others, their_faults) = all_records(ours), all_records(expected)
    if my_faults or their_faults:
        return (my_faults + their_faults)[0]
    if [one.hash for one in mine] != [one.hash for one in others]:
        return f"{len(mine)} records instead of {len(others)}"
    for one, other in zip(mine, others, strict=True):
        plain, expected_plain = one.json, other.json
        for name in expected_plain:
            if name not in TIMES and plain[name] != expected_plain[name]:
                return f"'{name}' of the record differs"
        fault = _states(ours / one.hash, expected / one.hash)
        if fault:
            return fault
    return None


def _states(ours: Path, expected: Path) -> str | None:
    names = sorted(path.name for path in expected.glob("after-*.safetensors"))
    if {path.name for path in ours.iterdir()} != {path.name for path in expected.iterdir()}:
        return f"the files of '{ours.name}' differ: {sorted(path.name for path in ours.iterdir())}"
    for name in names:
        mine, others = read_tensors(ours / name)[0], read_tensors(expected / name)[0]
        if mine.keys() != others.keys():
            return f"the tensors of '{name}' have other names"
        for key, tensor in others.items():
            if mine[key].dtype != tensor.dtype or not torch.equal(mine[key], tensor):
                return f"'{key}' of '{name}' differs"
    return None
