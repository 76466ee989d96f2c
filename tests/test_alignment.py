"""Whatever reader a tensor comes through, in a run it begins at a multiple of 64 bytes.

Each reader is given what begins elsewhere. Numbers would show a fault on some CPUs only; addresses show it on
all of them.
"""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest
import torch
from torch import Tensor

from helpers import EVERY, TARGETS, sequences
from perdure.alignment import aligned
from perdure.benchmarks.sources import cache
from perdure.benchmarks.task import Sequences
from perdure.errors import Interrupted
from perdure.experiment import assemble, generators_of, on_device
from perdure.files import read_tensors, write_tensors
from perdure.learning.engine import RunOptions, learn
from perdure.learning.optimiser import OPTIMISERS
from perdure.networks.batch import Data
from perdure.rehearsal.samples import store, unstore
from perdure.targets.label import Label
from perdure.targets.tags import Tags
from perdure.targets.target import Target
from perdure.testing import small


def elsewhere(tensor: Tensor) -> Tensor:
    """A copy of a tensor that begins 16 bytes after a multiple of 64."""
    room = torch.empty(16 + tensor.nbytes, dtype=torch.uint8)
    copy = room[16:].view(tensor.dtype).view(tensor.shape) if tensor.numel() else tensor
    return copy.copy_(tensor)


def misplaced(array):
    """The same for an array."""
    return elsewhere(torch.from_numpy(np.ascontiguousarray(array))).numpy()


def tensors_in(data: Data) -> list[Tensor]:
    """All tensors that an object holds, in tuples too."""
    held = [
        part for value in vars(data).values() for part in (value if isinstance(value, tuple) else [value])
    ]
    return [part for part in held if isinstance(part, Tensor)]


def assert_aligned(tensors) -> None:
    tensors = dict(tensors if isinstance(tensors, dict) else enumerate(tensors))
    assert tensors
    assert not {name: t.data_ptr() % 64 for name, t in tensors.items() if t.data_ptr() % 64}


def test_what_is_aligned_is_not_copied():
    made = torch.arange(5)
    assert made.data_ptr() % 64 == 0  # torch keeps its side
    assert aligned(made) is made
    moved = elsewhere(made)
    assert moved.data_ptr() % 64 == 16
    assert aligned(moved).data_ptr() % 64 == 0
    assert torch.equal(aligned(moved), made)


def ragged(kind: Target) -> Sequences:
    """Numbers of the precision in which they are read, so that nothing is converted by the way."""
    data = sequences(kind, 9, 5, 3, 4, ragged=True)
    return Sequences(kind, *(misplaced(part) for part in (data.x.astype(np.float32), data.y, data.lengths)))


def variants() -> dict[str, Sequences]:
    plain = ragged(Tags())
    table = misplaced(np.random.default_rng(0).normal(size=(7, 3)).astype(np.float32))
    rows = misplaced(np.random.default_rng(0).integers(0, 7, (9, 5)))
    scaling = (misplaced(np.zeros(3, np.float32)), misplaced(np.ones(3, np.float32)))
    words, scaled = replace(plain, x=rows, table=table), replace(plain, scaling=scaling)
    return {kind.name: ragged(kind) for kind in TARGETS} | {"words": words, "scaled": scaled}


@pytest.mark.parametrize("variant", variants())
def test_arrays(variant):
    given = variants()[variant]
    arrays = [part for f in fields(given) if isinstance(part := getattr(given, f.name), np.ndarray)]
    assert all(array.ctypes.data % 64 == 16 for array in [*arrays, *(given.scaling or ())])
    data = Data(given)
    assert len(tensors_in(data)) == len(arrays) + 2 * (given.scaling is not None)
    assert_aligned(tensors_in(data))
    assert np.array_equal(data.x.numpy(), given.x)


@pytest.mark.parametrize("variant", variants())
@pytest.mark.parametrize("packed", [True, False])
def test_stored_samples(variant, packed):
    """From a memory that somebody else has read; bits are unpacked by numpy."""
    given = variants()[variant]
    if packed:
        given = replace(given, x=(given.x > 0).astype(given.x.dtype))
    data = Data(given)
    memory = store(data, torch.arange(6), 0, packed=packed)
    assert ("bits.0" in memory) == packed
    for _ in range(4):  # where numpy puts what it unpacks is up to numpy
        found = unstore({name: elsewhere(tensor) for name, tensor in memory.items()}, 0, data)
        assert torch.equal(found.x, data.x[:6].to(found.x.dtype))
        assert_aligned(tensors_in(found))


def test_other_sequences_of_the_same_kind():
    data = Data(ragged(Label()))
    other = data.having(*(elsewhere(part) for part in (data.x, data.y, data.lengths)))
    assert len(tensors_in(other)) == 3
    assert_aligned(tensors_in(other))


def test_files(tmp_path):
    """Names of different lengths put the tensors of a file at different places."""
    for extra in range(9):
        tensors = {"a" * (1 + extra): torch.arange(3.0), "b": torch.arange(5), "c": torch.zeros(0, 3)}
        write_tensors(tmp_path / "t", tensors)
        found, _ = read_tensors(tmp_path / "t")
        assert_aligned(found)
        for name, tensor in tensors.items():
            assert torch.equal(found[name], tensor)


def test_caches(tmp_path, monkeypatch):
    """What numpy reads from a cache lies where numpy likes; a run's data do not."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    given = ragged(Label())
    arrays = {name: getattr(given, name) for name in ("x", "y", "lengths")}
    for _ in range(2):
        found = cache.kept("made", {"number": 1}, lambda: arrays)
        assert_aligned(tensors_in(Data(Sequences(Label(), **found))))


class Elsewhere:
    """A store that hands out misplaced tensors, and notes what a run holds when it saves itself."""

    def __init__(self) -> None:
        self.checkpoint = None
        self.held = {}

    def load(self):
        if self.checkpoint is None:
            return None
        tensors, facts = self.checkpoint
        return {name: elsewhere(tensor) for name, tensor in tensors.items()}, facts

    def save(self, tensors, facts) -> None:
        self.held = tensors
        copies = {name: tensor.clone() for name, tensor in tensors.items()}
        self.checkpoint = copies, facts | {"results": dict(facts["results"])}

    def keep(self, phase, tensors) -> None:
        self.held = tensors


CHECKPOINTS = [(method, {}) for method in EVERY]
CHECKPOINTS += [("fine-tuning", {"training.optimiser": name}) for name in OPTIMISERS]
CHECKPOINTS += [("fine-tuning", {"training.patience": 1, "training.validate_every": 1})]


@pytest.mark.parametrize(("method", "values"), CHECKPOINTS, ids=lambda part: str(part))
def test_checkpoints(method, values):
    """The learner's state, the optimiser's, the best weights so far, the state of penalties and rehearsal."""
    config = small(method, **({"benchmark.tasks": 2} | values))
    tasks, learner = assemble(config)
    folder = Elsewhere()
    again = 0
    for _ in range(20):
        try:
            data = on_device(tasks, "cpu")
            learn(
                learner,
                data,
                config.training,
                generators_of(config),
                folder,
                RunOptions(stop=lambda: True),
            )
            break
        except Interrupted:
            again += 1
            assert_aligned(folder.held)
    assert again > 3
    assert_aligned(folder.held)
