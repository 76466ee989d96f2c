"""Malformed input of any kind ends in a ValueError or TypeError that names the argument; nothing changes."""

from __future__ import annotations

import functools
import math

import numpy as np
import pandas
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some
from torch.utils.data import Dataset, TensorDataset

from perdure import ContinualLearner, PerdureError

FEATURES = 3


@functools.cache
def taught() -> ContinualLearner:
    learner = ContinualLearner(
        "online-ewc", network={"hidden": 6}, training={"iterations": 2, "validate_every": 1}, verbose=0
    )
    x = np.random.RandomState(0).randn(20, 4, FEATURES)
    return learner.learn("known", x, ["up", "down"] * 10)


@some.composite
def good(draw):
    """Sequences and labels that would be learnt."""
    count, steps = draw(some.integers(6, 12)), draw(some.integers(1, 5))
    random = np.random.RandomState(draw(some.integers(0, 99)))
    return random.randn(count, steps, FEATURES), np.array(["up", "down"] * count)[:count].tolist()


def bad_x(draw, x):
    """X with one thing wrong."""
    count, steps, _ = x.shape
    number, step, feature = (draw(some.integers(0, size - 1)) for size in x.shape)
    holed = x.copy()
    holed[number, step, feature] = draw(some.sampled_from([math.nan, math.inf, -math.inf, 1e300]))
    listed = [one.copy() for one in x]
    wider = [*listed[:-1], np.zeros((steps, FEATURES + draw(some.integers(1, 4))))]
    ragged = [*listed[:-1], [[0.0] * FEATURES, [0.0]]]
    return draw(
        some.sampled_from(
            [
                None,
                3,
                2.5,
                "sequences",
                b"bytes",
                object(),
                {1, 2},
                lambda: x,
                x[0],
                x[:, 0],
                x[None],
                x[..., 0],
                x[:0],
                x[:, :0],
                x[:, :, :0],
                x[..., :2],
                np.concatenate([x, x], axis=2),
                x.astype(str),
                x.astype(complex),
                x.astype(object),
                x.astype("datetime64[s]"),
                holed,
                holed.tolist(),
                torch.from_numpy(holed),
                [],
                (),
                [None] * count,
                ["abc"] * count,
                [one[0] for one in listed],
                [*listed[:-1], listed[0][:0]],
                [*listed[:-1], None],
                [*listed[:-1], "abc"],
                wider,
                ragged,
                [holed[number]] * count,
                np.array(3.0),
                torch.zeros(count, steps),
                pandas.DataFrame({"a": [1.0, 2.0], "b": [1.0, 2.0]}),
                pandas.DataFrame({"sequence": [1, 2], "a": ["x", "y"], "label": ["up", "down"]}),
                pandas.DataFrame({"sequence": [1, 2, 1], "a": [1.0] * 3, "label": ["up", "down", "up"]}),
                pandas.DataFrame({"sequence": [], "label": []}),
                Unpaired(),
            ]
        )
    )


class Unpaired(Dataset):
    """A data set whose items are no pairs."""

    def __len__(self):
        return 3

    def __getitem__(self, number):
        return torch.zeros(4, FEATURES)


def bad_y(draw, y, x):
    """Y with one thing wrong, for a task whose classes are up and down."""
    count, steps = len(x), x.shape[1]
    return draw(
        some.sampled_from(
            [
                None,
                3,
                "up",
                b"up",
                {"a": "up"},
                set(y),
                object(),
                [],
                y[:-1],
                [*y, "up"],
                np.array(y)[: count - 1],
                [*y[:-1], "sideways"],
                [*y[:-1], None],
                [*y[:-1], math.nan],
                [*y[:-1], object()],
                [*y[:-1], {}],
                [*y[:-1], ["up"]],
                list(range(count)),
                np.arange(count, dtype=float),
                np.zeros((count, steps + 7), dtype=int),
                np.zeros((count, 2, 2, 2), dtype=int),
                np.zeros((count, 1, 2), dtype=int),
                np.zeros(count, dtype=complex),
                np.array("up"),
                [["up"] * (steps + 1)] * count,
                torch.zeros(count, 2),
                pandas.Series(y[:-1]),
                pandas.DataFrame({"a": y, "b": y}),
            ]
        )
    )


def bad_new_y(draw, x):
    """Y that no new task can have."""
    count = len(x)
    return draw(
        some.sampled_from(
            [
                ["up"] * count,
                [math.nan] * count,
                [None] * count,
                [object() for _ in range(count)],
                [[]] * count,
                [{}] * count,
                [1 + 2j, 2] * count,
                np.full(count, np.nan),
                [("up", object()), ("down", object())] * count,
                np.zeros((count, x.shape[1]), dtype=int),
            ]
        )
    )


def bad_lengths(draw, x):
    count, steps, _ = x.shape
    return draw(
        some.sampled_from(
            [
                np.zeros(count, dtype=int),
                np.full(count, steps + 1),
                np.full(count, -1),
                np.ones(count),
                np.ones(count + 1, dtype=int),
                np.ones((count, 1), dtype=int),
                ["a"] * count,
                3,
                [[1], [1, 2]],
            ]
        )
    )


def others(x):
    """Calls of the methods that are not about learning and predicting."""
    return [
        (("x",), lambda learner: learner.step(x, task="known")),
        (("x",), lambda learner: learner.step(x[0, 0, :2], task="known")),
        (("streams",), lambda learner: learner.reset([1])),
        (("steps",), lambda learner: learner.infer_task(x, steps=0)),
        (("by",), lambda learner: learner.infer_task(x, by="magic")),
        (("x",), lambda learner: learner.inference_curve(x, [1])),
        (("steps",), lambda learner: learner.inference_curve({"known": x}, 3)),
        (("steps",), lambda learner: learner.inference_curve({"known": x}, ["one"])),
        (("task",), lambda learner: learner.inference_curve({"new": x}, [1])),
        (("network",), lambda learner: learner.observe(x, ["up"] * len(x))),
        (("path",), lambda learner: learner.export("model.bin", task="known")),
        (("folder",), lambda learner: learner.load("nowhere")),
        (("folder",), lambda learner: learner.save(__file__)),
        (("folder",), lambda learner: learner.save(None)),
    ]


BAD_TASKS = [None, "", 3, 2.5, ["known"], ("known",), b"known", object(), True]
BAD_PAIRS = [3, "xy", (), (1,), (1, 2, 3), [1, 2], {}, (None, None), ("x", "y")]


@some.composite
def calls(draw):  # noqa: C901 - one case per argument
    """The name of an argument that is wrong, and a call of the learner with it."""
    x, y = draw(good())
    x = x.astype(np.float64)
    which = draw(
        some.sampled_from(
            [
                "x",
                "x",
                "y",
                "new y",
                "lengths",
                "task",
                "validation",
                "ask x",
                "ask task",
                "score",
                "options",
                "other",
            ]
        )
    )
    if which == "other":
        return draw(some.sampled_from(others(x)))
    if which == "x":
        value = bad_x(draw, x)
        return ("x", "y"), lambda learner: learner.learn("known", value, y)
    if which == "y":
        value = bad_y(draw, y, x)
        return ("y",), lambda learner: learner.learn("known", x, value)
    if which == "new y":
        value = bad_new_y(draw, x)
        return ("y", "x"), lambda learner: learner.learn("new", x, value)
    if which == "lengths":
        value = bad_lengths(draw, x)
        return ("lengths",), lambda learner: learner.learn("known", x, y, lengths=value)
    if which == "task":
        value = draw(some.sampled_from(BAD_TASKS))
        return ("task",), lambda learner: learner.learn(value, x, y)
    if which == "validation":
        value = draw(some.sampled_from(BAD_PAIRS))
        return ("validation", "x", "y"), lambda learner: learner.learn("known", x, y, validation=value)
    if which == "ask x":
        value = bad_x(draw, x)
        method = draw(some.sampled_from(["predict", "predict_proba"]))
        return ("x",), lambda learner: getattr(learner, method)(value, task="known")
    if which == "ask task":
        value = draw(some.sampled_from([*BAD_TASKS[1:], "unknown"]))
        method = draw(some.sampled_from(["predict", "predict_proba", "score", "classes", "forget"]))
        if method in ("classes", "forget"):
            return ("task",), lambda learner: getattr(learner, method)(value)
        return ("task",), lambda learner: getattr(learner, method)(x, task=value)
    if which == "score":
        value = bad_y(draw, y, x)
        return ("y", "x"), lambda learner: learner.score({"known": (x, value)})
    name, value = draw(
        some.sampled_from(
            [("method", "x"), ("validation", 1.5), ("target", "y"), ("seed", "one"), ("colour", 1)]
        )
    )
    return (name,), lambda learner: learner.set_params(**{name: value})


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(calls())
def test_malformed_input_names_its_argument_and_changes_nothing(call):
    names, act = call
    learner = taught()
    before, parameters = learner._knowledge, dict(learner.get_params())
    weights = {name: vector.clone() for name, vector in before.state.parameters.items()}
    with pytest.raises((ValueError, TypeError)) as caught:
        act(learner)
    assert isinstance(caught.value, PerdureError), caught.value
    said = str(caught.value)
    assert said.partition(":")[0] in names or any(name in said.partition(":")[0] for name in names), said
    assert said.endswith("."), said
    assert learner._knowledge is before
    assert all(torch.equal(before.state.parameters[name], vector) for name, vector in weights.items())
    assert learner._streams == {}
    assert learner.get_params() == parameters


def test_the_same_input_without_the_fault_is_learnt():
    learner = taught()
    x = np.random.RandomState(1).randn(9, 3, FEATURES)
    y = ["up", "down", "up"] * 3
    assert ContinualLearner(**learner.get_params()).learn("known", x, y).tasks == ["known"]
    assert len(learner.predict(TensorDataset(torch.from_numpy(x), torch.zeros(9)), task="known")) == 9
