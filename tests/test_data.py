"""perdure data: what is told agrees with what lies on disk, and nothing of it needs torch."""

from __future__ import annotations

import json
import subprocess
import sys
from statistics import median

import numpy as np
import pytest

from perdure.benchmarks.audioset import Audioset
from perdure.benchmarks.sources.cache import built, kept, place
from perdure.cli import main

NEEDED = [need.path for need in Audioset.needs]


@pytest.fixture(autouse=True)
def _apart(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PERDURE_DATA", str(tmp_path / "raw"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "raw" / "audioset").mkdir(parents=True)
    (tmp_path / "mine").mkdir()


def listed(capsys):
    assert main(["data", "list", "--json"]) == 0
    return {each["benchmark"]: each for each in json.loads(capsys.readouterr().out)}


def states(capsys):
    return {need["path"]: need["state"] for need in listed(capsys)["audioset"]["needs"]}


def test_list_tells_what_is_there_and_intact(tmp_path, capsys, monkeypatch):
    before = states(capsys)
    assert list(before) == NEEDED
    assert [before[path] for path in NEEDED] == ["missing"] * 5 + ["absent"]
    (tmp_path / "raw" / "audioset" / "ontology.json").write_text("[]")
    (tmp_path / "raw" / "audioset" / "eval").mkdir()
    now = states(capsys)
    assert now["audioset/ontology.json"] == "differs"
    assert now["audioset/eval.npz"] == "there"
    assert now["audioset/bal_train.npz"] == "missing"
    from dataclasses import replace
    from hashlib import sha256

    right = replace(Audioset.needs[0], sha256=sha256(b"[]").hexdigest())
    monkeypatch.setattr(Audioset, "needs", (right,))
    assert states(capsys) == {"audioset/ontology.json": "intact"}


def test_list_tells_what_was_built(tmp_path, capsys):
    assert listed(capsys)["audioset"]["built"] == {"files": 0, "bytes": 0}
    for number in (1, 2):
        kept("audioset", {"n": number}, lambda: {"x": np.arange(100)})
    sizes = [place("audioset", {"n": number}).stat().st_size for number in (1, 2)]
    assert len(built("audioset")) == 2
    assert listed(capsys)["audioset"]["built"] == {"files": 2, "bytes": sum(sizes)}
    assert listed(capsys)["copy"]["built"]["files"] == 0
    assert main(["data", "list"]) == 0
    out = capsys.readouterr().out
    for words in ("2 built", "missing", "audioset/ontology.json", "made from a seed", "your own"):
        assert words in out


def test_where_tells_the_folders_and_who_chose_them(tmp_path, capsys, monkeypatch):
    assert main(["data", "where", "--json"]) == 0
    folders = json.loads(capsys.readouterr().out)
    assert folders == {"data": str(tmp_path / "raw"), "built": str(tmp_path / "cache" / "perdure" / "built")}
    assert main(["data", "where"]) == 0
    assert "PERDURE_DATA" in capsys.readouterr().out
    assert main(["data", "where", "--data", "mine"]) == 0
    assert "mine  (--data)" in capsys.readouterr().out
    monkeypatch.delenv("PERDURE_DATA")
    assert main(["data", "where"]) == 0
    assert f"{tmp_path / 'cache' / 'perdure' / 'data'}  (the default" in capsys.readouterr().out


def write_mine(folder):
    """Two tasks: one csv with splits of its own, one npz without; some test sequences are copies."""
    source = np.random.default_rng(0)
    lengths = {"train": [2, 3, 4, 5, 2, 3, 4, 5], "val": [1, 2], "test": [9, 7, 4]}
    rows = ["sequence\tsplit\twide\tlabel"]
    for split, each in lengths.items():
        for n, steps in enumerate(each):
            for t in range(steps):
                rows.append(f"{split}{n}\t{split}\t{1000 + n + t}\t{'ab'[n % 2]}")
    (folder / "one.tsv").write_text("\n".join(rows))
    np.savez(folder / "two.npz", x=source.random((50, 6, 1)), y=np.arange(50) % 5)
    (folder / "readme.md").write_text("not read")
    return [steps for each in lengths.values() for steps in each]


def test_check_tells_what_was_written(tmp_path, capsys):
    lengths = write_mine(tmp_path / "mine")
    assert main(["data", "check", "mine", "--json"]) == 0
    out, err = capsys.readouterr()
    found = json.loads(out)
    assert err == ""
    assert (found["kind"], found["faults"], found["failed"]) == ("label", [], [])
    one, two = found["tasks"]
    assert one["sequences"] == {"train": 8, "val": 2, "test": 3}
    assert one["lengths"] == {"min": min(lengths), "median": median(lengths), "max": max(lengths)}
    assert one["classes"] == {"a": 4, "b": 4}
    assert (one["features"], one["drawn"], two["drawn"]) == (1, [], ["val", "test"])
    assert two["sequences"] == {"train": 35, "val": 5, "test": 10}
    assert two["classes"] == {str(n): 7 for n in range(5)}
    notes = " ".join(found["notes"])
    assert "'one': 1 test sequences are also in training" in notes  # test2 is train2
    least = np.load(tmp_path / "mine" / "two.npz")["x"].min()
    assert f"from {least:.4g}"[:9] in notes
    assert "to 1011" in notes
    assert "--benchmark.standardise" in notes
    assert "readme.md" in notes
    assert main(["data", "check", "mine", "--benchmark.standardise", "--benchmark.tasks", "two,one"]) == 0
    out = capsys.readouterr().out
    for words in ("Targets: label; 1 features", "No faults", "--benchmark.folder mine", "5*", "a: 4, b: 4"):
        assert words in out
    assert out.index("two") < out.index("one")
    assert "Features range" not in out


def test_build_shows_the_tasks_of_any_benchmark(tmp_path, capsys):
    write_mine(tmp_path / "mine")
    assert main(["data", "build", "arrays", "--benchmark.folder", "mine"]) == 0
    out = capsys.readouterr().out
    assert "1 / 4 / 9" in out
    words = ["data", "build", "permuted-copy", "--scale", "smoke", "--benchmark.train", "77"]
    assert main(words) == 0
    out = capsys.readouterr().out
    assert out.count(" 77 ") == 3


def test_no_torch_is_needed(tmp_path):
    write_mine(tmp_path / "mine")
    code = (
        "import sys; from perdure.cli import main; code = main(sys.argv[1:]);"
        "sys.exit(3 if 'torch' in sys.modules else code)"
    )
    for words in (["list"], ["where"], ["check", "mine"], ["--help"]):
        run = subprocess.run([sys.executable, "-c", code, "data", *words], stdout=subprocess.DEVNULL)
        assert run.returncode == 0, words


def test_arrays_that_cannot_be_cached_are_returned_all_the_same(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.warns(UserWarning, match=r"built again each time.*XDG_CACHE_HOME") as caught:
        found = kept("audioset", {"n": 1}, lambda: {"x": np.arange(3)})
    assert found["x"].tolist() == [0, 1, 2]
    assert "--runs" not in str(caught[0].message)
