"""Sizes that cannot fit are refused before anything is allocated, with the option to change."""

from __future__ import annotations

import pytest
import torch

import perdure
from perdure import PerdureError
from perdure.config import build
from perdure.experiment import assemble
from perdure.learning import room
from perdure.learning.learner import grow, init
from perdure.learning.room import free_bytes, lacking_room, least_bytes
from perdure.networks.network import Network

pytestmark = pytest.mark.skipif(free_bytes() is None, reason="this system does not say how much is free")


@pytest.mark.parametrize("method", ["fine-tuning", "hnet"])
@pytest.mark.parametrize(
    ("name", "value", "advice"),
    [
        ("training.batch_size", 10**12, "a smaller --training.batch_size"),
        ("network.hidden", 10**6, "fewer units"),
    ],
)
def test_impossible_sizes_are_refused_at_once(method, name, value, advice, tmp_path):
    config = build("permuted-copy", method, scale="smoke", **{name: value})
    with pytest.raises(PerdureError, match=f"Not enough memory: .* GB are free; choose {advice}"):
        perdure.run(config, tmp_path)


@pytest.mark.parametrize("method", ["fine-tuning", "hnet", "from-scratch"])
def test_what_is_asked_for_is_less_than_what_is_used(method):
    """The weights of one task, their gradient, and a mini-batch of inputs: a run keeps more than that."""
    config = build("permuted-copy", method, scale="smoke")
    tasks, learner = assemble(config)
    network = Network(config.network, tasks[0].inputs, [task.outputs for task in tasks])
    weights, rows = least_bytes(network, 128, 11, tasks[0].inputs)
    state = grow(learner, init(learner), [tasks[0].outputs], lambda *_: torch.Generator().manual_seed(0))
    used = sum(weight.nbytes for weight in state.weights(learner, 0)[1].values())
    assert weights <= 2 * used * len(tasks)
    assert rows >= 128 * 11 * tasks[0].inputs * 4


def test_the_limit_of_a_container_counts(tmp_path, monkeypatch):
    for name, text in (("MEMORY", "MemFree: 1 kB\nMemAvailable: 9000 kB\n"), ("LIMIT", "max")):
        path = tmp_path / name
        path.write_text(text)
        monkeypatch.setattr(room, name, path)
    assert free_bytes() == 9000 * 1024
    (tmp_path / "LIMIT").write_text("5000000\n")
    assert free_bytes() == 5_000_000
    config = build("permuted-copy", "si", scale="smoke")
    network = Network(config.network, 8, [7])
    assert lacking_room(network, 8, 11, 8) is None
    (tmp_path / "LIMIT").write_text("1000\n")
    assert "the weights need at least 2.1e-05 GB, but 1e-06 GB are free" in lacking_room(network, 8, 11, 8)
    (tmp_path / "MEMORY").unlink()
    assert free_bytes() is None
    assert lacking_room(network, 10**15, 11, 8) is None
