"""Bytes that must outlive a task: counted by the pieces, checked against counts by hand and by file size."""

from __future__ import annotations

import pytest
import torch

from helpers import EVERY
from perdure.cli import main
from perdure.experiment import assemble, on_device, run
from perdure.learning.engine import RunOptions
from perdure.learning.memory import WHILE_LEARNING
from perdure.learning.packing import unpack
from perdure.networks.network import Network
from perdure.storage.store import RunFolder
from perdure.testing.methods import small

TASKS = 3


def finished(tmp_path, method, **more):
    """The record of a tiny run, its folder and its learner."""
    config = small(method, **({"training.iterations": 2} | more))
    result = run(config, tmp_path, RunOptions())
    tasks, learner = assemble(config)
    return config, result.record, RunFolder(tmp_path, config.hash), on_device(tasks, "cpu"), learner


@pytest.mark.parametrize("method", EVERY)
def test_all_of_a_state_is_counted(tmp_path, method):
    """The file with all that a learner needs later has as many bytes as are counted, after each task."""
    _, record, folder, data, learner = finished(tmp_path, method)
    phases = len(learner.phases(len(data)))
    for phase in range(phases):
        tensors = folder.knowledge(phase)
        on_disk = sum(tensor.numel() * tensor.element_size() for tensor in tensors.values())
        counted = {
            name: count
            for name, count in record.kept[phase].items()
            if not name.endswith(WHILE_LEARNING) and name != "training data"
        }
        assert sum(counted.values()) == on_disk
    assert record.kept_bytes == sorted(record.kept_bytes)  # nothing is given back
    weights = record.kept[-1]["weights"] + sum(
        tensor.nbytes
        for name, tensor in folder.knowledge(phases - 1).items()
        if name.startswith(("parameters/latent", "parameters/decoder"))
    )
    assert weights == 4 * record.parameters["trained"]


@pytest.mark.parametrize("targets", ["stored", "recomputed"])
def test_targets_of_a_hypernetwork(tmp_path, targets):
    option = {"penalties.hnet-regulariser.targets": targets}
    _, record, folder, data, learner = finished(tmp_path, "hnet", **option)
    for phase in range(TASKS):
        counted = record.kept[phase]["hnet-regulariser" + WHILE_LEARNING]
        known = folder.knowledge(phase)
        if targets == "recomputed":  # theta, extensions and embeddings: all that is trained
            assert counted == sum(v.nbytes for n, v in known.items() if n.startswith("parameters/"))
            continue
        state = unpack(known, learner, [each.outputs for each in data[: phase + 1]])
        made = learner.source.shape(state.network).raw(
            state.parameters, torch.stack([state.parameters[f"embedding.{k}"] for k in range(phase + 1)])
        )
        assert made.shape[0] == phase + 1
        assert counted == made.numel() * 4
    growth = [each["hnet-regulariser" + WHILE_LEARNING] for each in record.kept]
    assert (growth[-1] > 2.5 * growth[0]) == (targets == "stored")


def test_soft_targets_of_stored_samples(tmp_path):
    """100 samples a task, each with a number for each of its outputs; hard targets need nothing more."""
    sizes = {"rehearsal.size": 5}
    _, record, folder, data, _ = finished(tmp_path, "coresets", **sizes)
    outputs = data[0].train.y[0].numel()
    for phase in range(TASKS):
        assert record.kept[phase]["rehearsal, while learning"] == 4 * 5 * outputs * (phase + 1)
        stored = folder.knowledge(phase)
        assert record.kept[phase]["rehearsal"] == sum(
            tensor.nbytes for name, tensor in stored.items() if name.startswith("memory/rehearsal/")
        )
    _, hard, *_ = finished(tmp_path, "coresets", **sizes, **{"rehearsal.targets": "hard"})
    assert "rehearsal, while learning" not in hard.kept[-1]


@pytest.mark.parametrize("method", ["rtf", "hnet+r"])
def test_teachers_of_replay(tmp_path, method):
    """The old network and decoder, twice while they teach; decoders of a hypernetwork have targets too."""
    _, record, folder, data, learner = finished(tmp_path, method)
    trained = sum(
        tensor.nbytes for name, tensor in folder.knowledge(2).items() if name.startswith("parameters/")
    )
    held = record.kept[-1]["rehearsal, while learning"]
    if method == "rtf":
        assert held == trained
    else:
        network = Network(learner.architecture, learner.inputs, [each.outputs for each in data])
        decoder = learner.rehearsal.decoder(network)
        made = learner.rehearsal.source.shape(decoder)
        chunks = -(-decoder.layout.size // learner.rehearsal.hyper_chunk)
        assert made.target.size == decoder.layout.size
        assert held == trained + TASKS * 4 * chunks * learner.rehearsal.hyper_chunk


def test_masks_and_importance_by_hand(tmp_path):
    """A mask is a number for each unit that is kept; importance and anchor are as long as the weights."""
    config, record, _, _, _ = finished(tmp_path, "masking+si", **{"weights.fraction": 0.5})
    units = sum(config.network.hidden)
    for phase in range(TASKS):
        kept = record.kept[phase]
        readout = kept["buffers"] / 8 / (phase + 1) / (units - units // 2)
        assert readout in (1, 2)  # an Elman network's readout has as many units, masked as well
        assert kept["si"] == 2 * kept["weights"]


def test_joint_training_needs_all_data(tmp_path):
    _, record, _, data, _ = finished(tmp_path, "multitask")
    expected = sum(part.nbytes for each in data for part in (each.train.x, each.train.y))
    assert record.kept[-1]["training data"] == expected


def test_it_is_shown(tmp_path, capsys):
    _, _, folder, *_ = finished(tmp_path, "online-ewc")
    assert main(["show", str(folder.path)]) == 0
    out = capsys.readouterr().out
    assert "What must outlive a task" in out
    assert "in all" in out
    assert main(["show", "--runs", str(tmp_path)]) == 0
    assert "kept" in capsys.readouterr().out
