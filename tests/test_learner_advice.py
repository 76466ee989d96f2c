"""What errors advise is right for where they happen: heads, validation, and Python rather than a shell."""

from __future__ import annotations

import errno
import os

import numpy as np
import pytest

import perdure
from perdure import ContinualLearner, PerdureError
from perdure.errors import Diverged, Interrupted
from perdure.registry import load_plugin
from test_learner import LITTLE, PLUGINS, made, made_learner

SINGLE = {"hidden": 6, "heads": "single"}


def test_new_classes_for_a_single_head_are_answered_with_the_heads_that_take_them():
    x, y = made(0)
    learner = made_learner(training=LITTLE, network=SINGLE).learn("a", x, y)
    other = np.where(y == "up", "open", "shut")
    with pytest.raises(ValueError, match=r"^y: the class '\w+' of task 'b' is not one of ") as caught:
        learner.learn("b", x, other)
    said = str(caught.value)
    assert "the single head's, which are those of task 'a' ('down', 'up')" in said
    assert "network={'heads': 'multi'}" in said
    assert "as a new task" not in said
    with pytest.raises(ValueError, match=r"heads': 'multi'"):
        learner.learn("a", x, other)
    assert learner.learn("b", x, y).tasks == ["a", "b"]
    multi = made_learner(training=LITTLE, network={"hidden": 6, "heads": "multi"})
    assert multi.learn("a", x, y).learn("b", x, other).tasks == ["a", "b"]  # the advice is right


def test_new_classes_in_a_stream_are_answered_with_what_a_stream_can_do():
    x, y = made(0)
    stream = made_learner(training=LITTLE, network=SINGLE).observe(x, y, every=20)
    with pytest.raises(ValueError, match=r"^y: the class 'open' .*first samples") as caught:
        stream.observe(x, ["open"] * len(x))
    assert "as a new task" not in str(caught.value)


@pytest.mark.parametrize(
    ("wrong", "match"),
    [
        (lambda x, y: (x, ["zz"] * len(y)), "y: the class 'zz'"),
        (lambda x, y: (x, y[:-1]), "y: it has"),
        (lambda x, y: (x, None), "y: it is missing"),
        (lambda x, y: (x[:, :, :2], y), "x: it has"),
        (lambda x, y: (x[0], y), "x: "),
        (lambda x, y: ("x", y), "x: "),
        (lambda x, y: (x, [["up"]] * len(y)), "y: "),
    ],
)
def test_wrong_validation_is_named(wrong, match):
    x, y = made(0)
    for learner in (made_learner(), made_learner(network=SINGLE, training=LITTLE).learn("a", x, y)):
        with pytest.raises((ValueError, TypeError), match=rf"^validation, {match}"):
            learner.learn("b", x, y, validation=wrong(x, y))


def test_wrong_validation_keeps_its_type():
    x, y = made(0)
    with pytest.raises(TypeError, match=r"^validation, y: it is missing"):
        made_learner().learn("a", x, y, validation=(x, None))
    assert ContinualLearner("si", training=LITTLE, verbose=0).learn("a", x, y, validation=(x, y)).tasks == [
        "a"
    ]


def in_python(error: BaseException) -> str:
    """What an error says, which has no option of the command line in it."""
    said = str(error)
    assert "--" not in said
    assert "command" not in said
    return said


@pytest.fixture
def full(monkeypatch):
    """A disk on which nothing fits."""

    def replaced(*paths):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "replace", replaced)


def test_what_cannot_be_written_is_told_to_somebody_in_python(tmp_path):
    learner = made_learner(training=LITTLE).learn("a", *made(0))
    (tmp_path / "file").touch()
    place = tmp_path / "file" / "model"
    for argument, act in (
        ("folder", lambda: learner.save(place)),
        ("path", lambda: learner.export(place.with_suffix(".pt"), task="a")),
        ("checkpoint", lambda: learner.learn("b", *made(1), checkpoint=place)),
    ):
        with pytest.raises(ValueError, match=rf"^{argument}: '.*model.*' cannot be written \(") as caught:
            act()
        assert "choose a folder that you may write to" in in_python(caught.value)
    assert learner.tasks == ["a"]


def test_a_full_disk_is_told_to_somebody_in_python(tmp_path, full):
    learner = made_learner(training=LITTLE).learn("a", *made(0))
    with pytest.raises(ValueError, match=r"^folder: '.*model' cannot be written: the disk is full") as caught:
        learner.save(tmp_path / "model")
    assert "free some space" in in_python(caught.value)


class Stopping:
    def on_progress(self, task, iteration, values):
        return False


def test_a_lesson_that_a_callback_stops_says_what_is_left(tmp_path):
    learner = made_learner(callbacks=[Stopping()])
    with pytest.raises(Interrupted, match="Learning 'a' was stopped by a callback") as caught:
        learner.learn("a", *made(0))
    assert "the learner is as it was before" in in_python(caught.value)
    assert "goes on" not in str(caught.value)
    file = tmp_path / "les.safetensors"
    with pytest.raises(Interrupted, match="Learning 'a' was stopped by a callback") as caught:
        learner.learn("a", *made(0), checkpoint=file)
    assert f"goes on from '{file}'" in in_python(caught.value)


def test_a_plugin_that_is_missing_is_asked_for_in_python(tmp_path, monkeypatch):
    load_plugin(PLUGINS / "mas.py")
    folder = made_learner("my-mas", training=LITTLE).learn("a", *made(0)).save(tmp_path / "model")
    with monkeypatch.context() as patched:
        patched.setattr("perdure.config.origins", list)
        with pytest.raises(ValueError, match=r"^folder: .*uses the plugin 'mas.py'") as caught:
            ContinualLearner.load(folder)
    assert "perdure.load_plugin(FILE)" in in_python(caught.value)
    assert callable(perdure.load_plugin)
    assert ContinualLearner.load(folder).tasks == ["a"]


def test_learning_that_diverges_is_told_to_somebody_in_python():
    x, _ = made(0)
    learner = made_learner(training={"iterations": 50, "learning_rate": 1e38, "clip": None})
    with pytest.raises(Diverged, match=r"became (nan|inf)") as caught:
        learner.learn("a", x, 1e3 * x[:, 0, 0].astype(float))
    assert "training={'learning_rate': ...}" in in_python(caught.value)
    assert "training={'clip': 1}" in str(caught.value)


@pytest.mark.parametrize(
    ("given", "match"),
    [
        ({"training": {"optimiser": "Rprop", "weight_decay": 0.1}}, r"training={'weight_decay': 0}"),
        ({"network": {"hidden": 6, "heads": "growing"}}, r"use {'heads': 'multi'}"),
    ],
)
def test_settings_that_do_not_go_together_are_told_in_python(given, match):
    with pytest.raises(PerdureError, match=match) as caught:
        made_learner(**{"training": LITTLE, **given}).learn("a", *made(0)).learn("b", *made(1))
    in_python(caught.value)


def test_the_order_of_arguments_is_told_without_printing_the_data():
    x, y = made(0)
    with pytest.raises(TypeError, match=r"order is learn\(task, x, y\)") as caught:
        made_learner().learn(x, y, "a")
    assert len(str(caught.value)) < 150
    assert "(40, 6, 3)" in str(caught.value)


@pytest.mark.parametrize(
    ("given", "match"),
    [
        ({"options": {"seed": 3}}, r"options: 'seed' is an argument of its own: ContinualLearner\(seed="),
        ({"options": {"training.iterations": 5}}, "options: 'training.iterations' is given twice"),
    ],
)
def test_options_are_given_once_and_in_their_place(given, match):
    with pytest.raises(ValueError, match=match):
        made_learner(training=LITTLE, **given)


def test_one_hot_rows_may_be_classes_or_values():
    x, y = made(0)
    rows = np.eye(2)[(y == "up").astype(int)]
    with pytest.raises(ValueError, match=r"a single 1, .*\(y\.argmax\(1\)\)"):
        made_learner(training=LITTLE).learn("a", x, rows)
    assert made_learner(training=LITTLE, target="value").learn("a", x, rows).predict(x).shape == (40, 2)


def test_a_single_task_needs_no_name_whatever_its_targets_are():
    x, _ = made(0)
    learner = made_learner(training=LITTLE).learn("a", x, x[:, :, 0].sum(1))
    assert np.array_equal(learner.predict(x), learner.predict(x, task="a"))
    learner.learn("b", x + 1, x[:, :, 0].sum(1))
    with pytest.raises(ValueError, match="values have no predictive entropy"):
        learner.predict(x)


def test_one_sequence_by_itself_is_told_how_to_become_a_batch():
    x, y = made(0)
    learner = made_learner(training=LITTLE).learn("a", x, y)
    with pytest.raises(ValueError, match=r"for one sequence write x\[None\]"):
        learner.predict(x[0])
    with pytest.raises(ValueError, match=r"for one feature write x\[:, :, None\]"):
        learner.predict(x[0, :, :2])


def test_a_growing_head_is_refused_before_anything_is_learnt():
    """Its classes would be counted from 0 in every task."""
    with pytest.raises(PerdureError, match=r"network: a learner has no growing head; use .*'multi'"):
        perdure.ContinualLearner(method="er", network={"heads": "growing"})


@pytest.mark.parametrize("name", ["scenario", "val_fraction", "standardise", "data_seed", "folder"])
def test_options_of_files_are_refused_since_they_would_do_nothing(name):
    with pytest.raises(PerdureError, match=f"options: 'benchmark.{name}' is for data from files"):
        perdure.ContinualLearner(method="er", options={f"benchmark.{name}": "class"})
