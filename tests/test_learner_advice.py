"""What errors advise is right for where they happen: heads, validation, and Python rather than a shell."""

from __future__ import annotations

import numpy as np
import pytest

from perdure import ContinualLearner
from test_learner import LITTLE, made, made_learner

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
