"""Online prediction equals prediction; learning from a stream notices drift and resumes."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from perdure import ContinualLearner
from perdure.learner.drift import Drift

LITTLE = {"iterations": 4, "validate_every": 2}


@pytest.mark.parametrize("cell", ["elman", "lstm", "gru"])
@pytest.mark.parametrize("method", ["online-ewc", "hnet", "masking"])
def test_stepping_through_a_sequence_is_predicting_its_prefixes(cell, method):
    random = np.random.RandomState(0)
    x = random.randn(30, 6, 3).astype(np.float32)
    learner = ContinualLearner(method, network={"cell": cell, "hidden": [10, 8]}, training=LITTLE, verbose=0)
    learner.learn("a", x, random.choice(["p", "q", "r"], 30))
    for t in range(6):
        assert learner.step(x[:, t], task="a").tolist() == learner.predict(x[:, : t + 1], task="a").tolist()
    module = learner._streams["a"]
    logits = module.step(torch.from_numpy(x[:, 0])).softmax(1).numpy()
    again = np.concatenate([x, x[:, :1]], axis=1)
    assert np.allclose(logits, learner.predict_proba(again, task="a"), atol=1e-5)
    learner.reset([3, 4])  # only these begin again
    now = module.step(torch.from_numpy(x[:, 1])).softmax(1).numpy()
    fresh = learner.predict_proba(x[:, 1:2], task="a")
    going = learner.predict_proba(np.concatenate([again, x[:, 1:2]], axis=1), task="a")
    begun = np.isin(np.arange(30), [3, 4])
    assert np.allclose(now, np.where(begun[:, None], fresh, going), atol=1e-5)
    learner.reset()
    assert learner.step(x[0, 0]).shape == (1,)


@pytest.mark.parametrize(
    "more",
    [
        {"norm": "layer"},
        {"norm": "layer", "cell": "elman", "input_layers": [5], "output_layers": [4]},
        {"input_norm": True},
        {"input_norm": True, "norm": "layer", "task_identity": True},
        {"zero_forward": True},
        {"dropout": 0.5},
    ],
    ids=str,
)
def test_every_option_of_a_network_counts_step_by_step(more):
    random = np.random.RandomState(0)
    x = 5 + 3 * random.randn(30, 6, 3).astype(np.float32)
    network = {"cell": "lstm", "hidden": [10, 8]} | more
    learner = ContinualLearner("online-ewc", network=network, training=LITTLE, verbose=0)
    learner.learn("a", x, random.choice(["p", "q", "r"], 30))
    learner.step(x[:, 0])
    streams = learner._streams["a"]
    streams.reset(None)
    for t in range(6):
        found = streams.step(torch.from_numpy(x[:, t])).softmax(1).numpy()
        assert np.allclose(found, learner.predict_proba(x[:, : t + 1], task="a"), atol=1e-5)


def two_tasks() -> tuple[ContinualLearner, np.ndarray, np.ndarray]:
    random = np.random.RandomState(0)
    x, z = random.randn(30, 6, 3).astype(np.float32), random.randn(20, 6, 3).astype(np.float32)
    training = {"iterations": 40, "validate_every": 20}
    learner = ContinualLearner("hnet", network={"cell": "lstm", "hidden": 8}, training=training, verbose=0)
    learner.learn("march", x, np.where(x[:, :, 0].sum(1) > 0, "p", "q"))
    return learner.learn("april", z, random.choice(["r", "s", "t"], 20)), x, z


def test_streams_of_two_tasks_run_side_by_side():
    learner, x, z = two_tasks()
    for t in range(6):
        march, april = learner.step(x[:, t], task="march"), learner.step(z[:, t], task="april")
        assert march.tolist() == learner.predict(x[:, : t + 1], task="march").tolist()
        assert april.tolist() == learner.predict(z[:, : t + 1], task="april").tolist()
    assert learner.score(x, march, task="march") == 100


def test_resetting_one_task_leaves_the_other():
    learner, x, z = two_tasks()

    def run(steps):
        for t in steps:
            learner.step(x[:, t], task="march")
            learner.step(z[:, t], task="april")
        return [learner._streams[task].states[0][0].clone() for task in ("march", "april")]

    full, first = run(range(4)), learner.reset() and run(range(1))
    learner.reset()
    run(range(3))
    learner.reset(task="march")
    learner.step(x[:, 0], task="march")
    learner.step(z[:, 3], task="april")
    now = [learner._streams[task].states[0][0] for task in ("march", "april")]
    assert torch.equal(now[0], first[0])
    assert torch.equal(now[1], full[1])
    learner.reset([0], task="april")
    assert (now := learner._streams["april"].states[0][0])[:, 0].abs().max() == 0
    assert torch.equal(now[:, 1:], full[1][:, 1:])
    learner.reset(task="march")
    assert learner.step(x[:2, 0], task="march").shape == (2,)  # any number may begin
    learner.learn("may", x, ["p", "q"] * 15)
    assert torch.equal(run([0])[1], learner.reset() and run([0])[1])  # learning begins all again


def test_which_streams_to_reset_must_be_clear():
    learner, x, z = two_tasks()
    with pytest.raises(ValueError, match=r"^streams: no stream has begun"):
        learner.reset([0])
    learner.reset().reset(task="april")  # nothing to do
    learner.step(x[:, 0], task="march")
    learner.reset([0])  # there is only one task's
    with pytest.raises(ValueError, match=r"^streams: no stream of 'april' has begun"):
        learner.reset([0], task="april")
    learner.step(z[:, 0], task="april")
    with pytest.raises(ValueError, match=r"^task: streams of march, april have begun; name"):
        learner.reset([0])
    with pytest.raises(ValueError, match=r"^task: 'may' has not been learnt"):
        learner.reset(task="may")
    with pytest.raises(TypeError, match=r"^task: it is missing"):
        learner.step(x[:, 0])


def test_tags_and_values_step_by_step():
    random = np.random.RandomState(0)
    x = random.randn(30, 5, 2).astype(np.float32)
    tagger = ContinualLearner("si", network={"hidden": 8}, training=LITTLE, verbose=0)
    tagger.learn("a", x, np.where(x[:, :, 0] > 0, "N", "V"))
    steps = np.stack([tagger.step(x[:, t]) for t in range(5)], axis=1)
    assert (steps == tagger.predict(x, task="a")).all()
    meter = ContinualLearner("si", network={"hidden": 8}, training=LITTLE, verbose=0)
    meter.learn("a", x, 10 * x[:, -1, 0].astype(float))
    for t in range(5):
        assert np.allclose(meter.step(x[:, t]), meter.predict(x[:, : t + 1], task="a"), atol=1e-4)


def test_wrong_steps_are_named():
    x = np.random.RandomState(0).randn(30, 5, 2)
    learner = ContinualLearner("si", network={"hidden": 8}, training=LITTLE, verbose=0)
    learner.learn("a", x, ["p", "q"] * 15)
    learner.step(x[:4, 0])
    for wrong in (x[:5, 0], x[:4, 0, :1], [[np.nan, 1.0]] * 4, "step", [["a", "b"]] * 4, None):
        with pytest.raises((ValueError, TypeError), match=r"^x: "):
            learner.step(wrong)
    for wrong in ([9], "first", [[0.5]]):
        with pytest.raises(ValueError, match=r"^streams: "):
            learner.reset(wrong)
    both = ContinualLearner("si", network={"hidden": 4, "bidirectional": True}, training=LITTLE, verbose=0)
    with pytest.raises(ValueError, match="both directions"):
        both.learn("a", x, ["p", "q"] * 15).step(x[:, 0])


def test_drift_is_noticed_and_steadiness_is_not():
    """Against simulated errors: 10 % throughout, or 10 % and then 50 %."""
    alarms = []
    for seed in range(40):
        random = np.random.RandomState(seed)
        steady = changed = Drift()
        for _ in range(400):
            steady = steady.after(random.rand() > 0.1)
        alarms.append(steady.changed)
        for n in range(600):
            changed = changed.after(random.rand() > (0.1 if n < 300 else 0.5))
            if changed.changed:
                break
        assert changed.changed
    assert np.mean(alarms) < 0.2
    assert Drift.from_json(changed.json()) == changed


def stream(seed: int, count: int, sign: int):
    random = np.random.RandomState(seed)
    x = random.randn(count, 4, 2).astype(np.float32)
    return x, np.where(sign * x[:, :, 0].sum(1) > 0, "up", "down")


def test_a_stream_is_learnt_predicted_first_and_resumed(tmp_path):
    def fresh():
        return ContinualLearner(
            "online-ewc",
            network={"hidden": 10, "heads": "single"},
            training={"iterations": 60, "validate_every": 20},
            verbose=0,
        )

    first, second = stream(0, 150, 1), stream(1, 150, -1)
    straight = fresh().observe(*first, every=50).observe(*second, every=50)
    said = straight.prequential
    assert said["samples"] == 300
    assert said["segments"] >= 2  # the classes changed their places
    assert 150 < said["changes"][0] < 220
    parts = fresh().observe(first[0][:70], first[1][:70], every=50)
    parts = ContinualLearner.load(parts.save(tmp_path / "m"))
    parts.observe(first[0][70:], first[1][70:], every=50).observe(*second, every=50)
    assert parts.prequential == said
    assert (parts.predict(first[0], task="segment 1") == straight.predict(first[0], task="segment 1")).all()
    with pytest.raises(ValueError, match="the class 'sideways'"):
        straight.observe(first[0][:1], ["sideways"])
    with pytest.raises(ValueError, match="heads"):
        ContinualLearner("si", verbose=0).observe(*first)
