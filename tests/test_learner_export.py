"""An exported network gives our answers: for every cell, direction and kind of answer, ragged lengths too."""

from __future__ import annotations

import importlib.util
import io
import json

import numpy as np
import pytest
import torch

from perdure import ContinualLearner

pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning")
"""Torch announces the end of TorchScript."""

BODIES = {
    "elman": {"cell": "elman", "hidden": 7},
    "lstm": {"cell": "lstm", "hidden": 7},
    "gru": {"cell": "gru", "hidden": 7},
    "bidirectional elman": {"cell": "elman", "hidden": 5, "bidirectional": True},
    "bidirectional lstm": {"cell": "lstm", "hidden": 5, "bidirectional": True},
    "bidirectional gru": {"cell": "gru", "hidden": 5, "bidirectional": True},
    "deep": {"cell": "lstm", "hidden": [6, 5], "input_layers": [4], "output_layers": [6, 3]},
    "forgetful": {"cell": "lstm", "hidden": 6, "cell.forget_offset": 2.0, "task_identity": True},
    "normed": {"cell": "elman", "hidden": [6, 5], "input_layers": [4], "output_layers": [5], "norm": "layer"},
    "all normed": {"cell": "gru", "hidden": 6, "input_norm": True, "norm": "layer", "task_identity": True},
    "zero forward": {"cell": "elman", "hidden": 5, "bidirectional": True, "zero_forward": True},
    "normed both ways": {
        "cell": "lstm",
        "hidden": [5, 4],
        "bidirectional": True,
        "zero_forward": True,
        "norm": "layer",
    },
    "dropping": {"cell": "lstm", "hidden": 6, "dropout": 0.5},
}


def answers(kind: str, x: np.ndarray, lengths: np.ndarray):
    random = np.random.RandomState(3)
    if kind == "label":
        return random.choice(["a", "b", "c"], len(x)).tolist()
    if kind == "tags":
        return [random.choice(["N", "V"], length).tolist() for length in lengths]
    if kind == "bits":
        return random.randint(0, 2, (len(x), 2, 3))
    return 40 + 7 * random.randn(len(x), 2)


def learnt(kind: str, network: dict, method: str = "online-ewc") -> tuple[ContinualLearner, list[np.ndarray]]:
    random = np.random.RandomState(0)
    x = 5 + 3 * random.randn(30, 6, 3).astype(np.float32)
    lengths = random.randint(2, 7, 30)
    listed = [one[:length] for one, length in zip(x, lengths, strict=True)]
    learner = ContinualLearner(
        method, network=network, training={"iterations": 6, "validate_every": 3}, target=kind, verbose=0
    )
    for task in ("first", "second"):
        learner.learn(task, listed, answers(kind, x, lengths))
    return learner, listed


def ours(learner: ContinualLearner, listed: list[np.ndarray], kind: str) -> list[np.ndarray]:
    found = (learner.predict if kind == "value" else learner.predict_proba)(listed, task="second")
    return list(found)


def padded(listed: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    lengths = np.array([len(one) for one in listed])
    x = np.full((len(listed), lengths.max(), listed[0].shape[1]), 9.0, dtype=np.float32)
    for row, one in zip(x, listed, strict=True):
        row[: len(one)] = one
    return x, lengths


def close(found: np.ndarray, wanted: list[np.ndarray], lengths: np.ndarray, kind: str) -> None:
    for one, other, length in zip(found, wanted, lengths, strict=True):
        assert np.allclose(one[:length] if kind == "tags" else one, other, atol=1e-5, rtol=1e-5)


def runs_onnx(content: bytes, x: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed (extra export)")
    session = runtime.InferenceSession(content, providers=["CPUExecutionProvider"])
    return session.run(["y"], {"x": x, "lengths": lengths})[0]


@pytest.mark.parametrize("kind", ["label", "tags", "bits", "value"])
@pytest.mark.parametrize("body", BODIES)
def test_torchscript_answers_as_we_do(body, kind, tmp_path):
    learner, listed = learnt(kind, BODIES[body])
    x, lengths = padded(listed)
    notes = {"classes": "", "task": ""}
    module = torch.jit.load(
        io.BytesIO(learner.export(tmp_path / "m.pt", task="second").read_bytes()), _extra_files=notes
    )
    found = module(torch.from_numpy(x), torch.from_numpy(lengths)).numpy()
    close(found, ours(learner, listed, kind), lengths, kind)
    assert notes["task"] == b"second"
    assert json.loads(notes["classes"]) == list(learner.classes("second"))


@pytest.mark.parametrize("kind", ["label", "tags", "bits", "value"])
@pytest.mark.parametrize("body", BODIES)
def test_onnx_answers_as_we_do(body, kind, tmp_path):
    pytest.importorskip("onnx", reason="onnx is not installed (extra export)")
    learner, listed = learnt(kind, BODIES[body])
    x, lengths = padded(listed)
    content = learner.export(tmp_path / "m.onnx", task="second").read_bytes()
    wanted = ours(learner, listed, kind)
    close(runs_onnx(content, x, lengths), wanted, lengths, kind)
    few, ends = padded(listed[:1])  # any number of sequences and steps
    close(runs_onnx(content, few, ends), wanted[:1], ends, kind)


@pytest.mark.parametrize("method", ["hnet", "masking", "from-scratch", "coresets"])
def test_weights_from_any_source_are_written_out(method, tmp_path):
    learner, listed = learnt("label", {"cell": "gru", "hidden": 10}, method)
    x, lengths = padded(listed)
    module = torch.jit.load(io.BytesIO(learner.export(tmp_path / "m.pt", task="second").read_bytes()))
    close(
        module(torch.from_numpy(x), torch.from_numpy(lengths)).numpy(),
        ours(learner, listed, "label"),
        lengths,
        "label",
    )
    if importlib.util.find_spec("onnxruntime"):
        content = learner.export(tmp_path / "m.onnx", task="second").read_bytes()
        close(runs_onnx(content, x, lengths), ours(learner, listed, "label"), lengths, "label")


def test_what_cannot_be_exported_is_refused(tmp_path):
    learner, _ = learnt("label", {"cell": "diagonal", "hidden": 8})
    with pytest.raises(ValueError, match=r"task: .*cannot be exported"):
        learner.export(tmp_path / "m.pt", task="second")
    with pytest.raises(ValueError, match=r"path: 'm.bin' must end in .onnx"):
        learner.export(tmp_path / "m.bin", task="second")
    with pytest.raises(ValueError, match="task: 'third' has not been learnt"):
        learner.export(tmp_path / "m.pt", task="third")
