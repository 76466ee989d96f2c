"""Notebook display, callbacks and loggers, and the habits of scikit-learn."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest

from perdure import ContinualLearner
from perdure.learner.display import forgetting, matrix
from perdure.learner.loggers import TensorBoard, WandbLogger

LITTLE = {"iterations": 4, "validate_every": 2}
X = np.random.RandomState(0).randn(30, 4, 2)
Y = ["<b>", "q"] * 15


def small(**more) -> ContinualLearner:
    return ContinualLearner("fine-tuning", network={"hidden": 6}, training=LITTLE, verbose=0, **more)


def test_the_notebook_shows_the_accuracy_matrix_and_forgetting():
    learner = small()
    assert "Nothing learnt yet" in learner._repr_html_()
    learner.learn("<march>", X, Y)
    first = learner.score(X, Y, task="<march>")
    learner.learn("april", X, Y)
    later = learner.score({"<march>": (X, Y), "april": (X, Y)})
    tasks, rows = matrix(learner._knowledge)
    assert tasks == ["<march>", "april"]
    assert rows == [("<march>", [first, None]), ("april", [later["<march>"], later["april"]])]
    assert forgetting(learner._knowledge) == {"<march>": pytest.approx(first - later["<march>"])}
    text = learner._repr_html_()
    assert "&lt;march&gt;" in text
    assert "<march>" not in text
    assert f"{later['april']:.1f}" in text
    assert "forgotten" in text


class Heard:
    def __init__(self):
        self.calls = []

    def on_start(self, task, known):
        self.calls.append(("start", task, list(known)))

    def on_end(self, task, result):
        self.calls.append(("end", task, result["iterations"]))


def test_callbacks_hear_of_every_lesson():
    heard = Heard()
    small(callbacks=[heard]).learn("a", X, Y).learn("b", X, Y)
    assert heard.calls == [("start", "a", []), ("end", "a", 4), ("start", "b", ["a"]), ("end", "b", 4)]


def test_loggers_like_wandb_get_every_number():
    logged = []

    class Run:
        def log(self, values):
            logged.append(values)

    small(callbacks=[WandbLogger(Run())]).learn("a", X, Y).learn("b", X, Y)
    assert any("a/loss/task" in values and "a/validation/accuracy" in values for values in logged)
    assert [values["iteration"] for values in logged if "iteration" in values][-1] == 8
    assert any("b/end/validation" in values for values in logged)


@pytest.mark.skipif(importlib.util.find_spec("tensorboard") is None, reason="tensorboard is not installed")
def test_tensorboard_files_are_written(tmp_path):
    small(callbacks=[TensorBoard(tmp_path)]).learn("a", X, Y)
    assert list(tmp_path.glob("events*"))


def test_a_progress_line_is_told_unless_silent(capsys):
    ContinualLearner("fine-tuning", network={"hidden": 6}, training=LITTLE).learn("a", X, Y)
    assert "a: 4 iterations" in capsys.readouterr().err
    small().learn("a", X, Y)
    assert capsys.readouterr() == ("", "")


def test_scikit_learn_can_clone_it():
    sklearn = pytest.importorskip("sklearn.base", reason="scikit-learn is not installed")
    learner = small(seed=5)
    assert sklearn.clone(learner).get_params() == learner.get_params()
