"""Records, configs and tensors that are not what Perdure wrote: said in a line, and never believed."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from hostile import ODD_TEXTS, ODD_VALUES, cases, changed, command, odd_values, places
from perdure.errors import Interrupted
from perdure.experiment import run
from perdure.files import read_tensors, write_tensors
from perdure.learning.engine import RunOptions
from perdure.testing import small

METHOD = "online-ewc"
VALUES = {"benchmark.tasks": 2, "training.iterations": 3, "training.validate_every": 1}


class Made:
    """A folder of runs, and which of them is good, to be spoilt, and interrupted."""

    def __init__(self, *parts):
        self.parts = parts

    def __getitem__(self, number):
        return self.parts[number]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Two finished runs, one of them to be spoilt, and one that was interrupted within its second phase."""
    folder = tmp_path_factory.mktemp("made")
    good = run(small("fine-tuning", **VALUES), folder / "runs").folder
    spoilt = run(small(METHOD, **VALUES), folder / "runs").folder
    calls = iter([False] * 4)
    with pytest.raises(Interrupted):
        run(small("si", **VALUES), folder / "runs", RunOptions(stop=lambda: next(calls, True)))
    interrupted = folder / "runs" / small("si", **VALUES).hash
    whole = run(small("si", **VALUES), folder / "whole").record
    return Made(folder, good.name, spoilt.name, interrupted.name, whole)


@pytest.fixture
def place(made, tmp_path, monkeypatch):
    """The names of the runs, in a copy of their folder that is the current one."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(made[0] / "runs", "runs")
    return made


def hash_of(config):
    text = json.dumps(config, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def spoil(made, content, name=None):
    """Write a record in the place of the one that is to be spoilt."""
    path = Path("runs", name or made[2], "record.json")
    path.parent.mkdir(exist_ok=True)
    text = content if isinstance(content, (str, bytes)) else json.dumps(content)
    path.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass"))
    return path


def untouched(folder):
    return sorted((str(path), path.lstat().st_mtime_ns) for path in Path(folder).rglob("*"))


def shown_all_the_same(made, words):
    """A spoilt record is named in at most a line, the other one is shown, and nothing is renamed."""
    before = untouched("runs")
    done = command(words)
    if words[0] == "show" and len(words) == 1:
        assert done.code == 0
        assert made[1][:6] in done.out
        assert made[2][:6] in done.out + done.err
    assert untouched("runs") == before or words[0] == "report"


COMMANDS = st.sampled_from(
    [["show"]] * 6 + [["show", "--json"], ["RUN"], ["RUN"], ["RUN", "--json"], ["analyse", "forgetting"]]
)


def filled(words, name):
    """`RUN` stands for `show NAME`; analyse gets the name too."""
    if words[0] == "RUN":
        return ["show", name, *words[1:]]
    return [*words, name] if words[0] == "analyse" else words


@pytest.fixture(scope="module")
def nodes(made):
    record = json.loads((made[0] / "runs" / made[2] / "record.json").read_text())
    return Made(record, places(record))


@cases(500)
@given(data=st.data())
def test_one_wrong_value_in_a_record(data, place, nodes):
    record, paths = nodes.parts
    where = data.draw(st.sampled_from(paths))
    new = data.draw(st.one_of(odd_values, st.just(changed)))
    if new is changed and not where:
        new = []
    spoil(place, changed(record, where, new))
    shown_all_the_same(place, filled(data.draw(COMMANDS), place[2]))


@cases(20)
@given(data=st.data())
def test_one_wrong_value_in_a_report(data, place, nodes):
    record, paths = nodes.parts
    spoil(place, changed(record, data.draw(st.sampled_from(paths[1:])), data.draw(odd_values)))
    done = command(["report", "--runs", "runs"])
    assert done.code == 0
    assert Path("runs/report.html").stat().st_size > 10_000


DEEP = 100_000
CONTENTS = {
    "empty": b"",
    "no JSON": b"{",
    "not UTF-8": b'{"hash": "\xff"}',
    "a raw surrogate": b'{"hash": "\xed\xa0\x80"}',
    "deep lists": b"[" * DEEP + b"]" * DEEP,
    "deep mappings": b'{"a":' * DEEP + b"1" + b"}" * DEEP,
    "deep and open": b"[" * DEEP,
    "a number of many digits": b'{"seed": ' + b"9" * 50_000 + b"}",
    "zeros": bytes(1000),
    "a number": b"7",
    "a text": b'"record"',
    "null": b"null",
    "UTF-16": '{"a": 1}'.encode("utf-16"),
}


@pytest.mark.parametrize("name", CONTENTS)
@pytest.mark.parametrize("words", [["show"], ["RUN"], ["report"]], ids=lambda words: words[0])
def test_odd_contents(name, words, place):
    spoil(place, CONTENTS[name])
    shown_all_the_same(place, filled(words, place[2]))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"{", "it is not JSON (line 1, column 2)"),
        (b"\xef\xbb\xbf{}", "it is not JSON"),
        (None, "it is a folder"),
    ],
)
def test_what_is_wrong_with_a_record_is_said_in_our_words(content, said, place):
    path = spoil(place, content or b"")
    if content is None:
        path.unlink()
        path.mkdir()
    assert said in command(["show"]).sentences[0]


def folder(path):
    path.mkdir()


def pipe(path):
    os.mkfifo(path)


def endless(path):
    path.symlink_to("/dev/zero")


def loop(path):
    path.symlink_to(path.name)


def nowhere(path):
    path.symlink_to("nowhere")


def huge(path):
    with path.open("wb") as file:
        file.truncate(2**40)


NO_FILES = [folder, pipe, endless, loop, nowhere, huge]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="only where there are pipes")
@pytest.mark.parametrize("make", NO_FILES)
@pytest.mark.parametrize("words", [["show"], ["RUN"], ["report"]], ids=lambda words: words[0])
def test_what_is_no_file(make, words, place):
    path = Path("runs", place[2], "record.json")
    path.unlink()
    make(path)
    done = command(filled(words, place[2]), bound=20)
    assert done.code == (2 if words == ["RUN"] else 0)


@cases(150)
@given(data=st.data())
def test_unknown_keys_are_kept_and_shown(data, place, nodes):
    record = dict(nodes[0])
    named = st.text("abcdef_", min_size=1, max_size=6).map(lambda name: f"new_{name}")
    new = data.draw(
        st.dictionaries(named, st.sampled_from([1, "x", [1, 2], {"a": None}, 0.5]), min_size=1, max_size=3)
    )
    path = spoil(place, {**record, **new})
    before = path.read_bytes()
    done = command(["show", place[2], "--json"])
    assert done.code == 0
    assert json.loads(done.out) == record | new
    assert path.read_bytes() == before
    assert not done.sentences


@pytest.mark.parametrize("words", [["show"], ["RUN"], ["report"], ["analyse", "forgetting"]])
def test_a_newer_format_is_named_with_its_version(words, place, nodes):
    record = nodes[0]
    path = spoil(place, {**record, "format": 2, "versions": record["versions"] | {"perdure": "7.1"}})
    done = command(filled(words, place[2]))
    assert "7.1" in done.sentences[0]
    assert path.exists()
    assert {each.name for each in path.parent.glob("*.damaged-*")} == set()


@pytest.mark.parametrize(
    "where", [("seed",), ("penalties", METHOD, "strength"), ("training", "learning_rate")]
)
@pytest.mark.parametrize("words", [["RUN"], ["analyse", "importance"]], ids=lambda words: words[0])
def test_a_config_that_is_not_the_one_of_its_hash(where, words, place, nodes):
    spoil(place, changed(nodes[0], ("config", *where), 3))
    done = command(filled(words, place[2]))
    assert done.code == 2
    assert "config" in done.sentences[0]


@cases(330)
@given(data=st.data())
def test_wrong_configs_under_their_own_hash(data, place, nodes):
    """Whoever changes a config can change its hash too; what it says must still make sense."""
    record = nodes[0]
    where = data.draw(st.sampled_from(places(record["config"])))
    # Sizes that would be honest work for a day are left out.
    new = data.draw(st.one_of(odd_values.filter(lambda value: value != 2**31), st.just(changed)))
    config = {} if new is changed and not where else changed(record["config"], where, new)
    try:
        name = hash_of(config)
    except (UnicodeEncodeError, ValueError):
        name = "0" * 16
    spoil(place, {**record, "config": config, "hash": name}, name)
    for path in Path("runs", place[2]).glob("after-*"):
        if not Path("runs", name, path.name).exists():
            os.link(path, Path("runs", name, path.name))
    words = data.draw(st.sampled_from([["show"], ["analyse", "forgetting"], ["analyse", "importance"]]))
    command(filled(words, name))
    if name != place[2]:
        shutil.rmtree(Path("runs", name))


DTYPES = [torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.uint8, torch.bool]


def spoilt(data, tensors):
    """The same tensors, but for one that is renamed, left out, or of another shape, type or content."""
    name = data.draw(st.sampled_from(sorted(tensors)))
    tensor = tensors[name]
    kind = data.draw(st.sampled_from(["name", "gone", "shape", "empty", "scalar", "type", "value", "extra"]))
    rest = {key: value for key, value in tensors.items() if key != name}
    if kind == "name":
        return rest | {data.draw(st.sampled_from(ODD_TEXTS[1:6])) + name: tensor}
    if kind == "gone":
        return rest
    if kind == "extra":
        return tensors | {name + "x": tensor}
    if kind == "value":
        odd = data.draw(st.sampled_from([float("nan"), float("inf")]))
        return rest | {name: torch.full_like(tensor, odd) if tensor.is_floating_point() else tensor + 1}
    if kind == "type":
        return rest | {name: tensor.to(data.draw(st.sampled_from(DTYPES)))}
    flat = tensor.reshape(-1)
    return rest | {
        name: {"shape": torch.cat([flat, flat[:1]]), "empty": flat[:0], "scalar": flat[:1].reshape(())}[kind]
    }


@cases(150)
@given(data=st.data())
def test_tensors_with_a_right_digest_around_wrong_content(data, place):
    for each in (1, 2):
        path = Path("runs", place[2], f"after-{each}.safetensors")
        good = path.read_bytes()
        tensors = read_tensors(path)[0]
        odd = spoilt(data, tensors)
        write_tensors(path, odd)
        name = data.draw(st.sampled_from(["dimensionality", "importance", "readout"]))
        try:
            done = command(["analyse", name, place[2]])
        finally:
            path.write_bytes(good)
        # What a memory lacks shows when it is used; everything else must show at once.
        noticed = any(not name.startswith("memory") for name in tensors.keys() ^ odd.keys())
        noticed |= any(odd[name].shape != tensors[name].shape for name in tensors.keys() & odd.keys())
        if noticed and each == 2:
            assert done.code == 2


@cases(60)
@given(
    places=st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 255)), max_size=4),
    cut=st.integers(0, 9000),
)
def test_tensors_with_changed_bytes(places, cut, place):
    path = Path("runs", place[2], "after-2.safetensors")
    good = path.read_bytes()
    content = bytearray(good)
    for where, value in places:
        content[where % len(content)] = value
    path.write_bytes(content[: len(content) - cut % len(content)])
    done = command(["analyse", "readout", place[2]])
    assert (done.code == 0) == (path.read_bytes() == good)
    path.write_bytes(good)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="only where there are pipes")
@pytest.mark.parametrize("make", NO_FILES)
def test_tensors_that_are_no_file(make, place):
    path = Path("runs", place[2], "after-2.safetensors")
    path.unlink()
    make(path)
    assert command(["analyse", "readout", place[2]], bound=20).code == 2


@cases(50)
@given(data=st.data())
def test_a_checkpoint_that_is_not_one_is_set_aside(data, place):
    """The run starts again, says so, and ends with the record of an undisturbed one."""
    name, whole = place[3], place[4]
    path = Path("runs", name, "checkpoint.safetensors")
    good = path.read_bytes()
    tensors, facts = read_tensors(path)
    if data.draw(st.booleans()):
        tensors = spoilt(data, tensors)
    else:
        new = data.draw(st.one_of(st.sampled_from(ODD_VALUES), st.just(changed)))
        where = data.draw(st.sampled_from(places(facts)))
        facts = None if not where else changed(facts, where, new)
    write_tensors(path, tensors, facts)
    states = [each.read_bytes() for each in sorted(path.parent.glob("after-*"))]
    try:
        result = run(small("si", **VALUES), "runs")
        assert result.record.tasks == whole.tasks
        if result.warnings:
            assert len(result.warnings) == 1
            assert result.record.accuracy == whole.accuracy
            assert result.record.curves == whole.curves
    finally:
        shutil.rmtree(path.parent)
        path.parent.mkdir()
        path.write_bytes(good)
        for number, content in enumerate(states):
            (path.parent / f"after-{number + 1}.safetensors").write_bytes(content)
