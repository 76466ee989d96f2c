"""Runs that are stopped again and again and restored from their files.

`python resuming.py CAPABILITY` checks all methods in a process of its own, whose environment has chosen the
instructions that torch may use; see test_resume.py.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import torch

from perdure.config import Config, build, option_names, sections
from perdure.errors import Interrupted
from perdure.experiment import run
from perdure.files import read_tensors
from perdure.learning.engine import RunOptions
from perdure.methods import COMBINATIONS, METHODS
from perdure.storage.store import RunFolder
from test_learning import SMALL

EVERY = [*METHODS, *COMBINATIONS, "hnet+si", "coresets+si"]
SMALLER = {"weights.hidden": "6", "weights.chunk": 60, "rehearsal.hidden": 6, "rehearsal.size": 9}


def config_of(method: str, **values: object) -> Config:
    """A small config; what the method does not know is left out of SMALLER before."""
    return build("permuted-copy", method, scale="smoke", **(SMALL | {"training.iterations": 120} | values))


def smallest(method: str, tasks: int, **values: object) -> Config:
    """A few iterations on each of some tasks."""
    known = option_names(sections("permuted-copy", method))
    few = {name: value for name, value in SMALLER.items() if name in known}
    length = {"benchmark.tasks": tasks, "training.iterations": 4, "training.validate_every": 2}
    return config_of(method, **(few | length | values))


def comparable(folder: Path):
    """Everything in a record but the times, and every tensor kept after a phase."""
    record = RunFolder(folder.parent, folder.name).record()
    assert record is not None
    facts = {k: v for k, v in record.json.items() if k not in ("seconds", "timings")}
    tensors = {path.name: read_tensors(path)[0] for path in sorted(folder.glob("after-*.safetensors"))}
    return facts, tensors


def assert_equal(ours: Path, expected: Path) -> None:
    """Two run folders hold the same record and the same knowledge, bit for bit."""
    (facts, tensors), (other_facts, other_tensors) = comparable(ours), comparable(expected)
    assert facts == other_facts
    assert tensors.keys() == other_tensors.keys()
    for name, vectors in other_tensors.items():
        assert vectors.keys() == tensors[name].keys()
        for key, value in vectors.items():
            assert torch.equal(tensors[name][key], value), (name, key)


def assert_stops_change_nothing(config: Config, folder: Path, every: int = 5) -> None:
    """Stop at each `every`-th iteration: state -> file -> restore -> finish equals going on."""
    whole = run(config, folder / "whole")
    calls, stops = 0, 0

    def sometimes() -> bool:
        nonlocal calls
        calls += 1
        return calls % every == 0

    for _ in range(100):
        try:
            done = run(config, folder / "stopped", RunOptions(stop=sometimes))
            break
        except Interrupted:
            stops += 1
    iterations = sum(whole.record.iterations)
    assert (calls, stops) == (iterations, iterations // every)
    assert_equal(done.folder, whole.folder)


def main(capability: str) -> int:
    """All methods, Elman and LSTM (whose kernels are oneDNN's); names those that do not end the same."""
    torch.set_num_threads(1)
    found = torch.backends.cpu.get_cpu_capability()
    failed = [] if found == capability else [f"{found} instructions instead of {capability}"]
    for method in EVERY:
        for cell in ("elman", "lstm"):
            with tempfile.TemporaryDirectory() as folder:
                try:
                    config = smallest(method, 2, **{"network.cell": cell})
                    assert_stops_change_nothing(config, Path(folder), every=3)
                except AssertionError:
                    failed.append(f"{method} ({cell})")
    print(", ".join(failed))
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
