"""Forms of data that people really have, and what is said where a form has two meanings."""

from __future__ import annotations

import datetime
import uuid

import numpy as np
import pandas
import pytest
import torch
from torch.utils.data import DataLoader

from perdure import ContinualLearner
from perdure.learner import recogniser

LITTLE = {"iterations": 2, "validate_every": 1}
X = np.random.RandomState(0).randn(40, 6, 3).astype(np.float32)
Y = (X[:, :, 0].sum(1) > 0).astype(int)


def small(**more) -> ContinualLearner:
    return ContinualLearner("fine-tuning", network={"hidden": 6}, training=LITTLE, verbose=0, **more)


def weights(learner: ContinualLearner) -> dict[str, torch.Tensor]:
    return learner._knowledge.state.parameters


def test_a_list_of_pairs_is_a_data_set():
    one, other = small().learn("a", list(zip(X, Y, strict=True))), small().learn("a", X, Y)
    assert all(torch.equal(weights(one)[name], value) for name, value in weights(other).items())


def test_a_column_of_classes_is_one_class_per_sequence():
    for column in (Y[:, None], pandas.DataFrame({"y": Y}), pandas.DataFrame({"y": Y.astype(str)})):
        learner = small().learn("a", X, column)
        assert learner._knowledge.formats["a"].kind == "label"
        assert learner.score(X, column, task="a") == learner.score(X, np.ravel(column), task="a")


@pytest.mark.parametrize("y", [Y.astype(float), torch.tensor(Y).float(), Y.astype(float).tolist()])
def test_whole_floating_point_numbers_may_be_classes_or_values(y):
    with pytest.raises(ValueError, match=r"^y: .*\(target='label'\) or target='value'"):
        small().learn("a", X, y)
    assert small(target="label").learn("a", X, y).classes("a") == (0.0, 1.0)
    assert small(target="value").learn("a", X, y).predict(X, task="a").shape == (40,)
    assert small().learn("a", X, X[:, -1, 0].astype(float))._knowledge.formats["a"].kind == "value"


def test_numbers_given_as_classes_are_refused_with_the_reason():
    with pytest.raises(ValueError, match=r"^y: task 'a' has 40 classes in 40 sequences.*target='value'"):
        small().learn("a", X, np.arange(40))
    learner = small().learn("a", X, Y)
    with pytest.raises(ValueError, match=r"^y: task 'b' has 40 classes"):
        learner.learn("b", X, X[:, -1, 0].astype(float))
    with pytest.raises(ValueError, match=r"^y: bits must be 0 or 1 .*; values are \[N\]"):
        small().learn("a", X, X[:, :, :1].astype(float))


def collated(*order: int):
    def collate(batch):
        x, y = (torch.from_numpy(np.stack(part)) for part in zip(*batch, strict=True))
        parts = x, y, torch.full((len(x),), 4)
        return tuple(parts[place] for place in order)

    return collate


def test_lengths_stand_third_in_a_loader():
    pairs = list(zip(X, Y, strict=True))
    learner = small().learn("a", DataLoader(pairs, batch_size=8, collate_fn=collated(0, 1, 2)))
    other = small().learn("a", X[:, :4], Y)
    assert all(torch.equal(weights(learner)[name], value) for name, value in weights(other).items())
    with pytest.raises(ValueError, match=r"^x: batch 0 of the loader must be \(x, y, lengths\), in this"):
        small().learn("a", DataLoader(pairs, batch_size=8, collate_fn=collated(0, 2, 1)))
    with pytest.raises(TypeError, match=r"^x: batch 0 of the loader must be \(x, y\) or"):
        small().learn("a", DataLoader(pairs, batch_size=8, collate_fn=lambda batch: {"x": batch}))


def test_dates_of_numpy_and_pandas_are_dates(tmp_path):
    days = np.array(["2026-03-01", "2026-04-01"], dtype="datetime64[ns]")
    wanted = (datetime.datetime(2026, 3, 1), datetime.datetime(2026, 4, 1))
    for y in (days[Y], pandas.Series(days[Y]), [pandas.Timestamp(day) for day in days[Y]]):
        learner = ContinualLearner.load(small().learn("a", X, y).save(tmp_path / "m"))
        assert learner.classes("a") == wanted
        assert learner.score(X, y, task="a") == learner.score(X, np.array(wanted)[Y], task="a")
    for one, other in (
        (datetime.time(1, 2), datetime.time(3)),
        (uuid.UUID(int=1), uuid.UUID(int=2)),
    ):
        learner = small().learn("a", X, [other if each else one for each in Y])
        assert ContinualLearner.load(learner.save(tmp_path / "m")).classes("a") == (one, other)


def test_steps_that_torch_ignores_are_ignored():
    tags = np.where(X[:, :, 0] > 0, 1, 0)
    tags[:, 4:] = -100
    learner = small().learn("a", X, tags)
    assert learner.classes("a") == (0, 1)
    assert learner.score(X, tags, task="a") == learner.score(X[:, :4], tags[:, :4], task="a")


def test_a_score_of_nothing_is_refused():
    learner = small().learn("a", X, np.where(X[:, :, 0] > 0, "N", "V"))
    with pytest.raises(ValueError, match=r"^y: every target is to be ignored"):
        learner.score({"a": (X, np.full((40, 6), -1))})


def test_what_is_missing_or_wrong_is_named():
    learner = small().learn("a", X, Y).learn("b", X, Y)
    with pytest.raises(TypeError, match=r"^task: it is missing; name one of a, b"):
        learner.step(X[:, 0])
    with pytest.raises(TypeError, match=r"^steps: it is a int; give a list"):
        learner.inference_curve({"a": X}, 5)
    for wrong, said in (
        ({"network": {"hiden": 3}}, "^network: "),
        ({"network": {"cell": "lstmm"}}, "^network: cell: "),
        ({"training": {"iterations": "many"}}, "^training: iterations: "),
        ({"options": {"penalties.si.strength": 3}}, "^options: "),
        ({"seed": 1.5}, "^seed: must be"),
        ({"verbose": "yes"}, "^verbose: "),
        ({"standardise": "no"}, "^standardise: "),
        ({"callbacks": print}, "^callbacks: it is a builtin_function_or_method"),
        ({"callbacks": [3]}, "^callbacks: a int has none of on_start"),
    ):
        with pytest.raises((ValueError, TypeError), match=said):
            ContinualLearner(**wrong)
    assert ContinualLearner(seed=np.int64(3))._config == ContinualLearner(seed=3)._config


def test_inference_takes_what_score_takes_and_needs_one_thread(monkeypatch):
    learner = ContinualLearner("coresets", network={"hidden": 6}, training=LITTLE, verbose=0)
    learner.learn("a", X, Y).learn("b", X + 5, Y)
    counts = []
    solve = recogniser._ridge
    monkeypatch.setattr(
        recogniser, "_ridge", lambda *given: counts.append(torch.get_num_threads()) or solve(*given)
    )
    both = {"a": (X, Y), "b": (X + 5, Y)}
    curve = learner.inference_curve(both, [2, 6])
    assert curve == learner.inference_curve({name: x for name, (x, _) in both.items()}, [2, 6])
    assert set(counts) == {1}


def test_a_stream_that_breaks_off_leaves_no_trace():
    class Stopper:
        lessons = 0

        def on_start(self, task, known):
            Stopper.lessons += 1
            if Stopper.lessons == 2:
                raise RuntimeError("power cut")

    learner = ContinualLearner(
        "online-ewc",
        network={"hidden": 6, "heads": "single"},
        training=LITTLE,
        verbose=0,
        callbacks=[Stopper()],
    )
    with pytest.raises(RuntimeError, match="power cut"):
        learner.observe(X, Y, every=10)
    assert (learner.tasks, learner.prequential["samples"]) == ([], 0)
    assert learner.observe(X, Y, every=10).prequential["samples"] == 40
    before = learner._knowledge
    for wrong in (X[:, -1, 0].astype(float), Y[:, None], np.zeros((40, 6), int), Y[:-1], None):
        with pytest.raises((ValueError, TypeError), match=r"^y: "):
            learner.observe(X, wrong, every=10)
    assert learner._knowledge is before
