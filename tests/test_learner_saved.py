"""A saved learner is loaded as it was written, or refused: whatever was changed in its files is noticed."""

from __future__ import annotations

import hashlib
import json

import pytest
import torch

from perdure import ContinualLearner, PerdureError
from perdure.files import read_tensors
from test_learner import LITTLE, made, made_learner, same


@pytest.fixture
def folder(tmp_path):
    """Two tasks, saved; the folder's name says nothing of damage."""
    learner = made_learner("online-ewc", training=LITTLE).learn("a", *made(0)).learn("b", *made(1))
    learner.score({"a": made(0)})
    return learner.save(tmp_path / "model")


def read(folder):
    return json.loads((folder / "learner.json").read_text())


def write(folder, said):
    (folder / "learner.json").write_text(json.dumps(said))


def write_consistently(folder, said):
    """Write JSON with the digest that belongs to it, by the format's definition."""
    tensors, _ = read_tensors(folder / said["tensors"])
    text = json.dumps({key: value for key, value in said.items() if key != "tensors"}, sort_keys=True)
    digest = hashlib.sha256(text.encode())
    for name, tensor in sorted(tensors.items()):
        digest.update(name.encode() + tensor.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
    name = f"state-{digest.hexdigest()[:12]}.safetensors"
    (folder / said["tensors"]).rename(folder / name)
    write(folder, said | {"tensors": name})


def reversed_classes(said):
    said["tasks"]["a"]["classes"].reverse()


def without_a_task(said):
    del said["tasks"]["b"]


def reordered(said):
    said["tasks"] = dict(reversed(said["tasks"].items()))


CHANGES = [
    lambda said: said["scaling"].__setitem__(0, [100, 0, 0]),
    lambda said: said["scaling"].__setitem__(0, [None, 0, 0]),
    reversed_classes,
    without_a_task,
    reordered,
    lambda said: said["parameters"].update(metod=3),
    lambda said: said["parameters"].update(validation=0.2),
    lambda said: said["config"].update(seed=5),
    lambda said: said["config"]["training"].update(iterations=7),
    lambda said: said["visits"].pop(),
    lambda said: said["scores"].clear(),
    lambda said: said["looks"]["a"].update(count=3),
    lambda said: said.update(extra=1),
    lambda said: said.update(tensors="../model"),
    lambda said: said.update(tensors=3),
    lambda said: said.pop("tensors"),
    lambda said: said.update(tasks=[]),
]


@pytest.mark.parametrize("number", range(len(CHANGES)))
def test_a_change_of_the_readable_file_is_noticed(number, folder):
    said = read(folder)
    CHANGES[number](said)
    write(folder, said)
    with pytest.raises(ValueError, match=r"^folder: '.*model(/learner.json)?' is damaged \(") as caught:
        ContinualLearner.load(folder)
    assert isinstance(caught.value, PerdureError)
    assert "load another copy" in str(caught.value)


def test_the_tensors_of_another_learner_are_noticed(folder, tmp_path):
    other = made_learner("online-ewc", training=LITTLE, seed=1).learn("a", *made(2)).learn("b", *made(1))
    other.save(tmp_path / "other")
    (tmp_path / "other" / read(tmp_path / "other")["tensors"]).rename(folder / read(folder)["tensors"])
    with pytest.raises(ValueError, match=r"^folder: '.*model' is damaged \("):
        ContinualLearner.load(folder)


def test_layout_and_order_of_keys_do_not_matter(folder):
    """A person may have indented it otherwise."""
    before = ContinualLearner.load(folder)
    said = read(folder)
    (folder / "learner.json").write_text(json.dumps(dict(reversed(said.items())), indent=4))
    assert same(ContinualLearner.load(folder), before)


def test_a_learner_of_before_is_loaded(folder):
    """It has the digest, but not the order of its tasks."""
    before, said = ContinualLearner.load(folder), read(folder)
    said.pop("order")
    write_consistently(folder, said)
    assert same(ContinualLearner.load(folder), before)


@pytest.mark.parametrize(
    ("scaling", "match"),
    [
        ([[float("inf"), 0, 0], [1, 1, 1]], "scaling"),
        ([[None, 0, 0], [1, 1, 1]], "scaling"),
        ([[0, 0, 0], [1, 1, float("nan")]], "scaling"),
        ([[0, 0, 0], [1, 1]], "scaling"),
        ([[0], [1]], "scaling"),
        ([["a", 0, 0], [1, 1, 1]], "could not convert"),
    ],
)
def test_scaling_that_no_learner_has_is_refused(scaling, match, folder):
    write_consistently(folder, read(folder) | {"scaling": scaling})
    with pytest.raises(ValueError, match=rf"^folder: .*model.* is damaged.*{match}"):
        ContinualLearner.load(folder)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"metod": 3}, r"^folder: .*learner.json' has the parameter 'metod', which there is not"),
        ({"validation": 7}, r"^folder: .*learner.json' has a wrong parameter \(validation: "),
        ({"verbose": "loud"}, r"^folder: .*learner.json' has a wrong parameter \(verbose: "),
        ({"network": {"hiden": 3}}, r"^folder: .*learner.json' has a wrong parameter \(network: "),
    ],
)
def test_wrong_parameters_are_named(change, match, folder):
    said = read(folder)
    said["parameters"] |= change
    write_consistently(folder, said)
    with pytest.raises(ValueError, match=match):
        ContinualLearner.load(folder)


@pytest.mark.parametrize("parameters", [3, None, [], "hnet"])
def test_parameters_that_are_no_mapping_are_named(parameters, folder):
    write_consistently(folder, read(folder) | {"parameters": parameters})
    with pytest.raises(ValueError, match=r"^folder: .*is damaged"):
        ContinualLearner.load(folder)
