"""Runs that are compared bit for bit.

`python resuming.py CAPABILITY` checks all methods in a process of its own, whose environment has chosen the
instructions that torch may use; see test_resume.py.
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch

from helpers import EVERY
from perdure.config import Config, build
from perdure.files import read_tensors
from perdure.storage.store import RunFolder
from perdure.testing import check_resumes, small
from test_learning import SMALL


def config_of(method: str, **values: object) -> Config:
    """A small config."""
    return build("permuted-copy", method, scale="smoke", **(SMALL | {"training.iterations": 120} | values))


def comparable(folder: Path):
    """Everything in a record but the times, and every tensor kept after a phase."""
    record = RunFolder(folder.parent, folder.name).record()
    assert record is not None
    facts = {k: v for k, v in record.json.items() if k not in ("seconds", "timings")}
    tensors = {path.name: read_tensors(path)[0] for path in sorted(folder.glob("after-*.safetensors"))}
    return facts, tensors


def assert_equal(ours: Path, expected: Path) -> None:
    """Two run folders hold the same record and the same states, bit for bit."""
    (facts, tensors), (other_facts, other_tensors) = comparable(ours), comparable(expected)
    assert facts == other_facts
    assert tensors.keys() == other_tensors.keys()
    for name, vectors in other_tensors.items():
        assert vectors.keys() == tensors[name].keys()
        for key, value in vectors.items():
            assert torch.equal(tensors[name][key], value), (name, key)


def main(capability: str) -> int:
    """All methods, those with hypernetworks with an LSTM too; names those that do not end the same."""
    torch.set_num_threads(1)
    found = torch.backends.cpu.get_cpu_capability()
    failed = [] if found == capability else [f"{found} instructions instead of {capability}"]
    for method in EVERY:
        for cell in ("elman", "lstm") if "hnet" in method else ("elman",):
            try:
                check_resumes(small(method, **{"network.cell": cell, "benchmark.tasks": 2}), every=3)
            except AssertionError as fault:
                failed.append(f"{method} ({cell}): {fault}")
    print(", ".join(failed))
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
