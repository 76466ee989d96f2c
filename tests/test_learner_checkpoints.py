"""A lesson's checkpoint: only its own file is read, written or removed, and every stop leaves one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import warnings

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from perdure import PerdureError
from perdure.errors import Interrupted
from perdure.files import write_tensors
from perdure.learner.checkpoints import lesson_digest
from perdure.learner.forms import read_given
from perdure.learner.knowledge import nothing_learnt, prepare
from test_learner import made, made_learner, same


class StopAt:
    """Asks to stop, or raises, at an iteration."""

    def __init__(self, iteration: int, error: BaseException | None = None) -> None:
        self.iteration, self.error = iteration, error

    def on_progress(self, task, iteration, values):
        if iteration >= self.iteration and self.error is not None:
            raise self.error
        return iteration < self.iteration


def stopped(file, task="march", seed=0, **more):
    """A learner whose lesson was stopped, leaving a checkpoint."""
    learner = made_learner("coresets", callbacks=[StopAt(8)], **more)
    with pytest.raises(Interrupted):
        learner.learn(task, *made(seed), checkpoint=file)
    return learner.set_params(callbacks=())


def is_refused(path, match, learner=None):
    """The file is refused in one sentence and stays as it is."""
    content = path.read_bytes()
    started = []

    class Starting:
        def on_start(self, task, known):
            started.append(task)

    learner = learner or made_learner()
    learner.set_params(callbacks=[Starting()])
    with pytest.raises(ValueError, match=rf"^checkpoint: .*{match}") as caught:
        learner.learn("april", *made(1), checkpoint=path)
    assert isinstance(caught.value, PerdureError)
    assert path.read_bytes() == content
    assert [each.name for each in path.parent.iterdir()] == [path.name]
    assert started == []
    assert learner.tasks == []


def test_a_file_that_is_no_checkpoint_is_refused_and_left_alone(tmp_path):
    script = tmp_path / "l1.py"
    script.write_text("print('mine')\n")
    is_refused(script, "is not the checkpoint of a lesson")


@pytest.mark.parametrize(
    "facts", [None, 3, {"phase": None, "tasks": 1, "results": {}}, {"format": "another"}]
)
def test_tensors_of_another_kind_are_refused_and_left_alone(facts, tmp_path):
    write_tensors(tmp_path / "state.safetensors", {"a": torch.zeros(2)}, facts)
    is_refused(tmp_path / "state.safetensors", "is not the checkpoint of a lesson")


def test_safetensors_of_other_programs_and_empty_files_are_refused(tmp_path):
    save_file({"a": torch.zeros(2)}, str(tmp_path / "weights.safetensors"))
    is_refused(tmp_path / "weights.safetensors", "is not the checkpoint of a lesson")
    empty = tmp_path / "folder" / "empty.safetensors"
    empty.parent.mkdir()
    empty.touch()
    is_refused(empty, "is not the checkpoint of a lesson")


def test_the_checkpoint_of_another_lesson_is_refused_and_can_still_be_resumed(tmp_path):
    file = tmp_path / "les.safetensors"
    march = stopped(file)
    is_refused(file, "belongs to another lesson", made_learner("coresets"))
    march.learn("march", *made(0), checkpoint=file)
    assert not file.exists()
    assert same(march, made_learner("coresets").learn("march", *made(0)))


@pytest.mark.parametrize("name", ["", ".", "..", "folder", "folder/"])
def test_folders_and_empty_names_are_refused(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    with pytest.raises(ValueError, match=r"^checkpoint: .*name a file"):
        made_learner().learn("a", *made(0), checkpoint=name)


@pytest.mark.parametrize("value", [3, b"lesson", ["lesson"], True])
def test_what_is_no_path_is_refused(value):
    with pytest.raises(TypeError, match=r"^checkpoint: .*name a file"):
        made_learner().learn("a", *made(0), checkpoint=value)


def test_what_is_no_regular_file_is_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ValueError, match=r"^checkpoint: .*is not the checkpoint of a lesson"):
        made_learner().learn("a", *made(0), checkpoint=tmp_path / "pipe")


def test_a_place_that_cannot_be_written_is_refused_before_anything_is_learnt(tmp_path):
    (tmp_path / "file").touch()
    seen = []

    class Starting:
        def on_start(self, task, known):
            seen.append(task)

    with pytest.raises(ValueError, match=r"^checkpoint: '.*les' cannot be written \(Not a directory\)"):
        made_learner(callbacks=[Starting()]).learn("a", *made(0), checkpoint=tmp_path / "file" / "les")
    assert seen == []


def test_a_file_that_appears_meanwhile_is_not_replaced(tmp_path):
    file = tmp_path / "les.safetensors"

    class Writing:
        def on_progress(self, task, iteration, values):
            file.write_text("mine")
            return False

    with pytest.raises(ValueError, match=r"^checkpoint: .*appeared while"):
        made_learner(callbacks=[Writing()]).learn("a", *made(0), checkpoint=file)
    assert file.read_text() == "mine"


def test_an_error_at_the_very_end_leaves_a_checkpoint(tmp_path):
    class Failing:
        def on_end(self, task, result):
            raise RuntimeError("the logger's server is away")

    file = tmp_path / "les.safetensors"
    learner = made_learner("si", callbacks=[Failing()])
    with pytest.raises(RuntimeError):
        learner.learn("march", *made(0), checkpoint=file)
    assert learner.tasks == []
    learner.set_params(callbacks=()).learn("march", *made(0), checkpoint=file)
    assert not file.exists()
    assert same(learner, made_learner("si").learn("march", *made(0)))


@pytest.mark.parametrize("damage", ["flipped", "cut"])
def test_a_damaged_checkpoint_of_a_lesson_is_set_aside_with_a_warning(damage, tmp_path):
    file = tmp_path / "les.safetensors"
    learner = stopped(file)
    content = bytearray(file.read_bytes())
    if damage == "flipped":
        content[-3] ^= 1
    else:
        del content[len(content) // 2 :]
    file.write_bytes(bytes(content))
    with pytest.warns(UserWarning, match=r"les.safetensors' is damaged .* set aside as .*damaged-1"):
        learner.learn("march", *made(0), checkpoint=file)
    assert [each.name for each in tmp_path.iterdir()] == ["les.safetensors.damaged-1"]
    assert (tmp_path / "les.safetensors.damaged-1").read_bytes() == bytes(content)
    assert same(learner, made_learner("coresets").learn("march", *made(0)))


@pytest.mark.parametrize("error", [KeyboardInterrupt(), RuntimeError("the logger's server is away")])
def test_an_error_of_a_callback_leaves_a_checkpoint(error, tmp_path):
    file = tmp_path / "les.safetensors"
    learner = made_learner("si", callbacks=[StopAt(8, error)])
    with pytest.raises(type(error)):
        learner.learn("march", *made(0), checkpoint=file)
    assert file.exists()
    seen = []

    class Noting:
        def on_progress(self, task, iteration, values):
            seen.append(iteration)

    learner.set_params(callbacks=[Noting()]).learn("march", *made(0), checkpoint=file)
    assert min(seen) > 8
    assert same(learner, made_learner("si").learn("march", *made(0)))


class SendAt:
    """Sends this process a signal at an iteration."""

    def __init__(self, number: signal.Signals) -> None:
        self.number = number

    def on_progress(self, task, iteration, values):
        if iteration == 8:
            os.kill(os.getpid(), self.number)


def test_an_interrupt_leaves_a_checkpoint_between_two_iterations(tmp_path):
    file = tmp_path / "les.safetensors"
    learner = made_learner("si", callbacks=[SendAt(signal.SIGINT)])
    usual = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt, match=r"les.safetensors"):
        learner.learn("march", *made(0), checkpoint=file)
    assert signal.getsignal(signal.SIGINT) is usual
    assert learner.tasks == []
    assert file.exists()
    learner.set_params(callbacks=()).learn("march", *made(0), checkpoint=file)
    assert not file.exists()
    assert same(learner, made_learner("si").learn("march", *made(0)))
    assert signal.getsignal(signal.SIGINT) is usual


def test_an_interrupt_without_a_checkpoint_is_the_usual_one(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        made_learner(callbacks=[SendAt(signal.SIGINT)]).learn("march", *made(0))
    assert list(tmp_path.iterdir()) == []


def test_an_interrupt_after_training_leaves_a_checkpoint(tmp_path, monkeypatch):
    """What a method computes at the end of a lesson may take long, too."""
    from perdure.learning.phase import Phase

    def interrupted(self):
        raise KeyboardInterrupt

    file = tmp_path / "les.safetensors"
    learner = made_learner("online-ewc")
    with monkeypatch.context() as patched:
        patched.setattr(Phase, "finish", interrupted)
        with pytest.raises(KeyboardInterrupt):
            learner.learn("march", *made(0), checkpoint=file)
    learner.learn("march", *made(0), checkpoint=file)
    assert same(learner, made_learner("online-ewc").learn("march", *made(0)))


TERMINATED = """
import os, signal, sys
import numpy as np
from perdure import ContinualLearner
class Send:
    def on_progress(self, task, iteration, values):
        os.kill(os.getpid(), signal.SIGTERM)
x = np.random.default_rng(0).normal(size=(40, 5, 2))
settings = {"network": {"hidden": 4}, "training": {"validate_every": 2}}
learner = ContinualLearner("si", **settings, verbose=0, callbacks=[Send()])
learner.learn("a", x, x[:, :, 0].mean(1) > 0, checkpoint=sys.argv[1])
"""


def test_termination_leaves_a_checkpoint_and_ends_the_process(tmp_path):
    done = subprocess.run([sys.executable, "-c", TERMINATED, str(tmp_path / "les")], check=False)
    assert done.returncode == -signal.SIGTERM
    assert (tmp_path / "les").exists()


def test_a_handler_of_the_users_own_is_left_in_place(tmp_path):
    received = []
    usual = signal.signal(signal.SIGINT, lambda number, frame: received.append(number))
    try:
        learner = made_learner(callbacks=[SendAt(signal.SIGINT)])
        learner.learn("march", *made(0), checkpoint=tmp_path / "les")
    finally:
        signal.signal(signal.SIGINT, usual)
    assert received == [signal.SIGINT]
    assert learner.tasks == ["march"]


def test_nothing_is_warned_of_and_nothing_left_behind_usually(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made_learner().learn("a", *made(0), checkpoint=tmp_path / "new" / "les.safetensors")
    assert list((tmp_path / "new").iterdir()) == []


def test_lessons_differ_by_lengths_scaling_and_memory():
    x, y = made(0)
    learner = made_learner("coresets")

    def digest(rules=None, lengths=None, taught=learner):
        given = read_given(x, y, lengths, None, None)
        lesson = prepare(taught._knowledge, "march", given, None, rules or taught._rules)
        known = taught._knowledge or nothing_learnt(taught._config, 3, lesson.scaling)
        return lesson_digest(taught._config, known, lesson)

    lengths = np.full(len(x), 6)
    shorter = np.where(np.arange(len(x)) == 5, 4, lengths)
    padded = x.copy()
    x[5, 4:] = 0  # so that only the lengths differ
    found = [digest(), digest(lengths=shorter), digest(made_learner(standardise=False)._rules)]
    assert digest(lengths=lengths) == digest()
    assert len(set(found)) == 3
    x[:] = padded
    taught = made_learner("coresets").learn("a", x, y)
    before = digest(taught=taught)
    memory = taught._knowledge.state.memories["rehearsal"]
    next(iter(memory.values())).view(-1)[:1] += 1
    assert digest(taught=taught) != before


def test_a_lesson_of_more_steps_than_its_numbers_can_count_has_a_digest(tmp_path):
    x = np.random.RandomState(0).randint(0, 2, (20, 300, 1)).astype(np.uint8)
    learner = made_learner(standardise=False, network={"cell": "diagonal", "hidden": 2})
    learner.learn("a", x, ["p", "q"] * 10, checkpoint=tmp_path / "lesson.safetensors")
    assert learner.predict(x[:2], task="a").shape == (2,)
