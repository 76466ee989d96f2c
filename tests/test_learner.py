"""The learner for one's own sequences: what comes in, what comes out, and that saving changes nothing."""

from __future__ import annotations

import datetime
import json
from pathlib import Path

import numpy as np
import pandas
import pytest
import torch
from torch.utils.data import DataLoader, Dataset, TensorDataset

from perdure import ContinualLearner, PerdureError
from perdure.errors import Interrupted
from perdure.learner.answers import Format
from perdure.methods import COMBINATIONS, METHODS
from perdure.penalties.hnet_regulariser import HnetRegulariser
from perdure.registry import load_plugin

PLUGINS = Path(__file__).parent.parent / "examples" / "plugins"
SMALL = {"network": {"cell": "lstm", "hidden": 10}, "training": {"iterations": 12, "validate_every": 4}}
LITTLE = {"iterations": 2, "validate_every": 1}


def made(seed: int, count: int = 40, steps: int = 6, features: int = 3):
    random = np.random.RandomState(seed)
    x = random.randn(count, steps, features).astype(np.float32)
    return x, np.where(x[:, :, seed % features].sum(1) > 0, "up", "down")


def made_learner(method: str = "fine-tuning", **more) -> ContinualLearner:
    return ContinualLearner(method, **{**SMALL, "verbose": 0, **more})


def same(one: ContinualLearner, other: ContinualLearner) -> bool:
    first, second = one._knowledge.state, other._knowledge.state
    vectors = [(first.parameters, second.parameters), (first.buffers, second.buffers)]
    vectors += [(first.memories[name], second.memories[name]) for name in first.memories]
    return all(a.keys() == b.keys() and all(torch.equal(a[n], b[n]) for n in a) for a, b in vectors)


def test_it_learns_and_remembers_what_fine_tuning_forgets():
    """Classes in opposite directions: whoever has no protection unlearns the first task."""
    x, y = made(0, 300)
    z, _ = made(0, 300)
    opposite = np.where(y == "up", "down", "up")
    training = {"iterations": 300, "validate_every": 50}
    kept = made_learner("coresets", training=training).learn("march", x, y).learn("april", z, opposite)
    assert min(kept.score({"march": (x, y), "april": (z, opposite)}).values()) > 85
    assert kept.tasks == ["march", "april"]


@pytest.mark.parametrize("method", [*METHODS, *COMBINATIONS, "my-mas", "my-a-gem"])
def test_saving_and_loading_changes_nothing(method, tmp_path):
    """Learn, save, load, learn and return to a known task: bit for bit the same as without saving."""
    if method.startswith("my-"):
        load_plugin(PLUGINS / f"{method.removeprefix('my-').replace('-', '_')}.py")
    lessons = [("march", made(0)), ("april", made(1)), ("march", made(2)), ("may", made(4))]
    straight, saved = made_learner(method), made_learner(method)
    for name, (x, y) in lessons:
        straight.learn(name, x, y)
        saved = ContinualLearner.load(saved.save(tmp_path / "model")).learn(name, x, y)
    assert same(straight, saved)
    x, _ = made(5)
    for task in straight.tasks:
        assert np.array_equal(straight.predict_proba(x, task=task), saved.predict_proba(x, task=task))
    assert saved.get_params()["method"] == method


def test_the_tasks_before_and_the_engine_agree(tmp_path):
    """The learner is the engine: the same tasks through a run of `arrays` end with the same weights."""
    import perdure
    from perdure.learning.engine import begin_phase
    from perdure.learning.learner import init

    learner = made_learner("online-ewc", standardise=False)
    x, y = made(0)
    z, w = made(1)
    learner.learn("a", x[:30], y[:30], validation=(x[30:], y[30:]))
    learner.learn("b", z[:30], w[:30], validation=(z[30:], w[30:]))
    tasks = perdure.tasks_from(
        {
            "a": {"train": (x[:30], y[:30]), "val": (x[30:], y[30:]), "test": (x[30:], y[30:])},
            "b": {"train": (z[:30], w[:30]), "val": (z[30:], w[30:]), "test": (z[30:], w[30:])},
        }
    )
    from perdure.experiment import generators_of, learner_of, on_device

    config = learner._config
    engine, state, data = learner_of(config, 3), None, on_device(tasks, "cpu")
    state = init(engine)
    for number in range(2):
        phase = begin_phase(engine, state, [number], data, config.training, generators_of(config))
        while not phase.done:
            phase.step()
        state = phase.finish()
    ours = learner._knowledge.state.parameters
    assert all(torch.equal(ours[name], state.parameters[name]) for name in ours)


class Pairs(Dataset):
    def __init__(self, x, y):
        self.x, self.y = x, y

    def __len__(self):
        return len(self.x)

    def __getitem__(self, number):
        return self.x[number], self.y[number]


def test_all_forms_of_the_same_data_teach_the_same():
    x, _ = made(0)
    y = (x[:, :, 0].sum(1) > 0).astype(np.int64)
    rows = [
        {"sequence": n, "label": int(y[n]), **dict(zip("abc", step, strict=True))}
        for n in range(len(x))
        for step in x[n]
    ]
    tensors = torch.from_numpy(x), torch.from_numpy(y)
    forms = [
        (x, y),
        tensors,
        (list(x), y.tolist()),
        ([torch.from_numpy(one) for one in x], torch.from_numpy(y)),
        (x.tolist(), list(y)),
        (TensorDataset(*tensors), None),
        (Pairs(x, y), None),
        (DataLoader(TensorDataset(*tensors), batch_size=7), None),
        (pandas.DataFrame(rows), None),
        (pandas.DataFrame(rows).rename(columns={"label": "class"}), "class"),
        (x.astype(np.float64), pandas.Series(y)),
    ]
    learners = [made_learner(training=LITTLE).learn("march", *form) for form in forms]
    for learner in learners[1:]:
        assert same(learners[0], learner)
    frame = pandas.DataFrame(rows)
    assert learners[8].predict(frame, task="march").tolist() == learners[0].predict(x, task="march").tolist()
    shuffled = frame[["c", "sequence", "a", "b"]]  # features go by name
    assert (
        learners[8].predict(shuffled, task="march").tolist() == learners[0].predict(x, task="march").tolist()
    )


def test_ragged_sequences_are_the_same_padded_and_listed():
    x, y = made(0)
    lengths = np.random.RandomState(1).randint(2, 7, len(x))
    padded = x.copy()
    padded[np.arange(6) >= lengths[:, None]] = np.nan  # not read
    listed = [one[:length] for one, length in zip(x, lengths, strict=True)]
    one = made_learner(training=LITTLE).learn("a", padded, y, lengths=lengths)
    other = made_learner(training=LITTLE).learn("a", listed, y)
    assert same(one, other)
    assert one.predict(padded, task="a", lengths=lengths).tolist() == other.predict(listed, task="a").tolist()


CLASSES = [
    ("a", "b", "c"),
    (3, -7, 10**12),
    (True, False),
    (1.5, 2.5),
    (datetime.date(2026, 3, 1), datetime.date(2026, 4, 1)),
    (datetime.datetime(2026, 3, 1, 5), datetime.datetime(2026, 4, 1)),
    (("a", 1), ("b", 2)),
    (1, "1", b"1"),
]


@pytest.mark.parametrize("classes", CLASSES, ids=str)
def test_classes_of_any_type_come_back_as_they_were(classes, tmp_path):
    x, _ = made(0, 60)
    y = [classes[n % len(classes)] for n in range(60)]
    learner = made_learner(training=LITTLE, target="label").learn("a", x, y)
    learner = ContinualLearner.load(learner.save(tmp_path / "m"))
    assert {(type(each), each) for each in learner.classes("a")} == {(type(each), each) for each in classes}
    found = learner.predict(x, task="a").tolist()
    chosen = learner.predict_proba(x, task="a").argmax(1)
    assert found == [learner.classes("a")[n] for n in chosen]
    assert type(found[0]) in {type(each) for each in classes}


def test_new_classes_in_a_known_head_are_refused_but_a_new_task_has_its_own():
    x, y = made(0)
    learner = made_learner(training=LITTLE).learn("a", x, y)
    before = learner._knowledge
    with pytest.raises(ValueError, match=r"y: the class 'sideways' is not one of task 'a'.*new task"):
        learner.learn("a", x, [*y[:-1], "sideways"])
    assert learner._knowledge is before
    learner.learn("b", x, [*y[:-1], "sideways"])
    assert learner.classes("b") == ("down", "sideways", "up")
    assert learner.classes("a") == ("down", "up")


def test_tags_bits_and_values_in_and_out():
    x, _ = made(0)
    lengths = [3 + n % 4 for n in range(len(x))]
    listed = [one[:length] for one, length in zip(x, lengths, strict=True)]
    tags = [["N" if step[0] > 0 else "V" for step in one] for one in listed]
    tagger = made_learner(training={"iterations": 150, "validate_every": 50}).learn("english", listed, tags)
    found = tagger.predict(listed, task="english")
    assert [len(one) for one in found] == lengths
    assert [len(one) for one in tagger.predict_proba(listed, task="english")] == lengths
    right = np.mean(
        [a == b for one, other in zip(found, tags, strict=True) for a, b in zip(one, other, strict=True)]
    )
    assert tagger.score(listed, tags, task="english") == pytest.approx(100 * right)
    assert right > 0.8

    bits = (x[:, -2:, :2] > 0).astype(int)
    copier = made_learner(training=LITTLE).learn("a", x, bits)
    assert copier.predict(x, task="a").shape == bits.shape
    assert np.isin(copier.predict(x, task="a"), (0, 1)).all()

    values = 1000 + 50 * x[:, -1, 0].astype(float)
    meter = made_learner(training={"iterations": 300, "validate_every": 50}).learn("a", x, values)
    assert abs(meter.predict(x, task="a") - values).mean() < 20
    assert meter.predict(x, task="a").shape == values.shape
    with pytest.raises(ValueError, match="no probabilities"):
        meter.predict_proba(x, task="a")


def test_one_kind_of_target_for_all_tasks():
    x, y = made(0)
    learner = made_learner(training=LITTLE).learn("a", x, y)
    with pytest.raises(ValueError, match="y: "):
        learner.learn("b", x, [["N"] * 6] * len(x))


def test_scaling_is_the_first_tasks():
    x, y = made(0)
    learner = made_learner(training=LITTLE).learn("a", 100 * x + 7, y)
    offset, factor = (part.copy() for part in learner._knowledge.scaling)
    learner.learn("b", x, y)
    assert np.array_equal(learner._knowledge.scaling[0], offset)
    assert np.allclose(factor, 0.01, rtol=0.2)


def test_learning_that_was_interrupted_goes_on(tmp_path):
    x, y = made(0)
    calls = []

    class Stopper:
        def on_progress(self, task, iteration, values):
            calls.append((task, iteration, values))
            return iteration < 8

    file = tmp_path / "lesson.safetensors"
    stopped = made_learner("coresets", callbacks=[Stopper()])
    with pytest.raises(Interrupted):
        stopped.learn("a", x, y, checkpoint=file)
    assert stopped.tasks == []
    assert file.exists()
    stopped.set_params(callbacks=())
    stopped.learn("a", x, y, checkpoint=file)
    assert not file.exists()
    assert same(stopped, made_learner("coresets").learn("a", x, y))
    assert calls[0][0] == "a"
    assert {"loss/task", "validation/accuracy"} <= set(calls[-1][2])


def test_damaged_and_foreign_folders_are_named(tmp_path):
    x, y = made(0)
    learner = made_learner(training=LITTLE).learn("a", x, y)
    folder = learner.save(tmp_path / "model")
    assert not list(folder.glob("*.pkl"))
    said = json.loads((folder / "learner.json").read_text())
    assert said["tasks"]["a"]["classes"] == ["down", "up"]
    with pytest.raises(ValueError, match=r"folder: .*nowhere.* is not a saved learner"):
        ContinualLearner.load(tmp_path / "nowhere")
    (tensors,) = folder.glob("*.safetensors")
    good = tensors.read_bytes()
    bad = bytearray(good)
    bad[-3] ^= 1
    tensors.write_bytes(bytes(bad))
    with pytest.raises(ValueError, match=r"folder: .*model' is damaged"):
        ContinualLearner.load(folder)
    tensors.write_bytes(good)
    for key, value, match in (
        ("format", "another", "belongs to something else"),
        ("version", 99, "version 99"),
        ("tasks", {"a": 3}, "damaged"),
        ("config", {}, "damaged"),
    ):
        (folder / "learner.json").write_text(json.dumps({**said, key: value}))
        with pytest.raises(ValueError, match=f"folder: .*{match}"):
            ContinualLearner.load(folder)
    other = tmp_path / "other"
    other.mkdir()
    (other / "precious.txt").write_text("mine")
    with pytest.raises(ValueError, match=r"folder: .*other files"):
        learner.save(other)


def test_saving_again_replaces_the_old_model(tmp_path):
    x, y = made(0)
    learner = made_learner(training=LITTLE).learn("a", x, y)
    learner.save(tmp_path / "model")
    learner.learn("b", x, y).save(tmp_path / "model")
    assert len(list((tmp_path / "model").iterdir())) == 2
    assert ContinualLearner.load(tmp_path / "model").tasks == ["a", "b"]


def test_parameters_as_in_scikit_learn():
    learner = ContinualLearner("si", network={"hidden": 8}, verbose=0)
    params = learner.get_params()
    twin = ContinualLearner(**params)
    assert all(twin.get_params()[name] is params[name] for name in params)  # what sklearn.clone asks for
    assert learner.set_params(method="hnet", seed=3) is learner
    assert learner._config.method == "hnet"
    assert repr(learner).startswith(
        "ContinualLearner(method='hnet', network={'hidden': 8}, seed=3, verbose=0)"
    )
    with pytest.raises(ValueError, match="colour: there is no such parameter"):
        learner.set_params(colour="red")
    learner.set_params(training=LITTLE).learn("a", *made(0))
    with pytest.raises(ValueError, match="method: it cannot change"):
        learner.set_params(method="si")
    for wrong, name in (
        ({"method": "hnett"}, "method"),
        ({"method": 3}, "method"),
        ({"network": {"hiden": 3}}, "network"),
        ({"network": [3]}, "network"),
        ({"validation": 2.0}, "validation"),
        ({"target": "colour"}, "target"),
        ({"seed": -1}, "seed"),
        ({"method": "masking+coresets"}, "method"),
    ):
        with pytest.raises((ValueError, TypeError), match=name) as caught:
            ContinualLearner(**wrong)
        assert isinstance(caught.value, PerdureError)


def test_the_lines_of_its_docstring_work():
    import doctest

    from perdure.learner import continual

    found = doctest.testmod(continual)
    assert found.attempted >= 9
    assert found.failed == 0


def test_formats_survive_json():
    form = Format("value", 2, flat=False, offset=(1.5, 2.0), factor=(0.1, 3.0))
    assert Format.from_json(json.loads(json.dumps(form.json()))) == form


@pytest.mark.parametrize("method", ["from-scratch", "hnet"])
def test_a_task_can_be_forgotten_where_it_has_its_own_part(method, tmp_path):
    x, y = made(0, 200)
    learner = made_learner(method, training={"iterations": 150, "validate_every": 50})
    learner.learn("a", x, y).learn("b", *made(1))
    others = learner.predict_proba(x, task="b")
    old = {name: vector.clone() for name, vector in learner._knowledge.state.parameters.items()}
    learner.forget("a")
    now = learner._knowledge.state.parameters
    changed = {name for name in now if not torch.equal(now[name], old[name])}
    assert changed in ({"network.0"}, {"embedding.0"})
    assert np.array_equal(learner.predict_proba(x, task="b"), others)
    assert learner.tasks == ["b"]
    with pytest.raises(ValueError, match="task: 'a' was forgotten"):
        learner.predict(x, task="a")
    learner = ContinualLearner.load(learner.save(tmp_path / "m"))
    assert learner.tasks == ["b"]
    assert learner.learn("a", x, y).score(x, y, task="a") > 70


def test_what_was_forgotten_is_not_protected(monkeypatch):
    """The hypernetwork's penalty holds the tasks that are left; a forgotten one again once relearnt."""
    protected = []
    begin = HnetRegulariser.begin

    def noting(self, memory, context):
        protected.append(list(context.known))
        return begin(self, memory, context)

    monkeypatch.setattr(HnetRegulariser, "begin", noting)
    learner = made_learner("hnet", training=LITTLE).learn("a", *made(0)).learn("b", *made(1))
    learner.forget("a")
    learner.learn("c", *made(2)).learn("a", *made(0)).learn("b", *made(1))
    assert protected == [[], [0], [1], [1, 2], [0, 2]]


@pytest.mark.parametrize("method", ["si", "coresets", "multitask", "masking", "hnet+coresets", "rtf"])
def test_forgetting_is_refused_with_a_reason_where_tasks_share(method):
    learner = made_learner(method, training=LITTLE).learn("a", *made(0)).learn("b", *made(1))
    before = learner._knowledge
    with pytest.raises(ValueError, match="task: 'a' cannot be forgotten by"):
        learner.forget("a")
    assert learner._knowledge is before
