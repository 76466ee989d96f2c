"""Sentences that say what would be right, closed streams, and little files that unpack to very much."""

from __future__ import annotations

import gzip
import io
import json
import os
import struct
import subprocess
import sys
import zipfile
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest

from hostile import command
from test_trust_data import checked
from test_trust_options import shell, small


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("PERDURE_DATA", raising=False)


@pytest.mark.skipif(os.name == "nt", reason="only where shells can close streams")
@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&-", "<&- >&- 2>&-"])
def test_streams_that_the_shell_has_closed(closed):
    """They neither end a command nor give their numbers, and so their words, to a file that it writes."""
    assert shell(f"perdure list {closed}").code == 0
    if closed.count("&-") == 1:
        return
    words = " ".join(f"--{name}={value}" for name, value in small("fine-tuning").items())
    run = f"perdure run permuted-copy fine-tuning --scale smoke --runs runs --json {words} {closed}"
    assert shell(run).code == 0
    (record,) = Path("runs").glob("*/record.json")
    assert json.loads(record.read_text())["method"] == "fine-tuning"


def test_a_closed_standard_error_changes_no_exit_code():
    done = subprocess.run(
        f"{sys.executable} -m perdure foo 2>&-", shell=True, capture_output=True, timeout=300
    )
    assert (done.returncode, done.stdout) == (2, b"")


RUN = ["run", "permuted-copy", "si", "--scale", "smoke"]
UNHELPFUL = [
    (["--version", "x"], "'x'"),
    (["run", "permuted-copy", "SI"], "did you mean 'si'?"),
    (["run", "permuted-copy", "si", "--scale", "SMOKE"], "did you mean 'smoke'?"),
    (["run", "permuted-copy", "si", "--scale"], "--scale needs a value"),
    (["run", "permuted-copy", "si+"], "nothing to join"),
    (["run", "permuted-copy", "ewc"], "did you mean 'online-ewc' or"),
    (["run", "permuted-copy", "si", "--scenario", "class"], "permuted-copy has no scenarios"),
    ([*RUN, "--benchmark.zzz", "1"], "choose from"),
    ([*RUN, "--network.hiden", "1"], "did you mean '--network.hidden'?"),
    ([*RUN, "--hidden", "1"], "did you mean '--network.hidden'?"),
    ([*RUN, "--lr", "1"], "did you mean '--training.learning_rate'?"),
    ([*RUN, "--training.epochs", "1"], "did you mean '--training.iterations'?"),
    ([*RUN, "--training.zzz", "1"], "choose from --training.batch_size, --training.clip"),
    ([*RUN, "--penalties.online-ewc.strength", "1"], "belongs to online-ewc, which is not used here"),
    ([*RUN, "--network.cell.forget_offset", "1"], "belongs to lstm, which is not used here"),
    ([*RUN, "--penalties.strength", "1"], "did you mean '--penalties.si.strength'?"),
    ([*RUN, "--seeds", "1000000", "--plot", "plots/x.png"], "--plot draws one run"),
    ([*RUN, "--slurm", "mem_gb=1"], "--cluster slurm"),
    ([*RUN, "--network.hidden", "1e3"], "network.hidden: it must be a whole number, written in digits"),
    ([*RUN, "--benchmark.tasks", "0"], "benchmark.tasks: it must be greater than 0"),
    ([*RUN, "--training.learning_rate", "fast"], "it must be a number"),
    ([*RUN, "--training.criterion", "luck"], "it must be 'score' or 'loss'"),
    ([*RUN, "--plot", "nowhere/x.png"], "make the folder 'nowhere' first"),
    ([*RUN, "--plot", "nowhere/x.jpg"], "(given: 'nowhere/x.jpg')"),
    ([*RUN, "--runs", "file"], "'file' is not a folder"),
    (["show", "--runs", "file"], "'file' is not a folder"),
    (["results", "collect", ".", "--results", "file"], "'file' is not a folder"),
    (["compare", "permuted-copy", "--methods", ","], "--methods names no method"),
    (["report", "--runs", "file"], "'file' is not a folder"),
]


@pytest.mark.parametrize(("words", "said"), UNHELPFUL)
def test_sentences_say_what_would_be_right(words, said):
    Path("file").touch()
    Path("plots").mkdir()
    done = command(words)
    assert done.code == 2
    assert said in done.sentences[0]


@pytest.mark.parametrize("code", ["0", "'bye'", ""])
def test_a_plugin_that_ends_the_process_is_told(code):
    Path("script.py").write_text(f"raise SystemExit({code})")
    done = command(["list", "--plugin", "script.py"])
    assert (done.code, done.out) == (2, "")
    assert "The plugin 'script.py' cannot be loaded" in done.sentences[0]


@pytest.mark.parametrize("name", ["perdure", "scipy"])
def test_what_is_not_installed_is_named(name, monkeypatch):
    """A tree that is run without being installed has no version to write into records."""

    def missing(_):
        raise PackageNotFoundError(name) if name == "perdure" else ModuleNotFoundError("no", name=name)

    monkeypatch.setattr("importlib.metadata.version", missing)
    done = command(["--version"])
    assert f"The package '{name}' is not installed" in done.sentences[0]


def test_the_figure_of_an_analysis_is_tried_before_the_work():
    done = command(["analyse", "theory", "--plot", "nowhere/x.png"])
    assert (done.code, done.out) == (2, "")


def test_figures_may_have_names_in_capitals():
    words = [*RUN, "--runs", "runs", *(f"--{name}={value}" for name, value in small("si").items())]
    Path("plots").mkdir()
    assert command([*words, "--plot", "plots/X.PNG"]).code == 0
    assert Path("plots/X.PNG").read_bytes().startswith(b"\x89PNG")


def test_a_search_in_a_log_says_at_once_what_it_does():
    few = small("si") | {"training.learning_rate": "0.001,0.01"}
    words = ["search", "permuted-copy", "si", "--scale", "smoke", "--runs", "runs", "--trials", "2"]
    done = command([*words, *(f"--{name}={value}" for name, value in few.items())], bound=300)
    assert done.code == 0, done.err
    assert done.err.splitlines()[0] == "permuted-copy si: at most 2 trials"


@pytest.mark.parametrize("letter", [b"0", b"\n"])
def test_a_little_file_that_unpacks_to_very_much_is_refused_early(letter):
    content = gzip.compress(letter * 2**28)
    assert len(content) < 2**19
    done = checked("a.csv.gz", content)
    assert done.code == 2
    assert "unpacked" in done.sentences[0]


def test_text_that_packs_well_is_read():
    rows = "".join(f"s{n // 8},{'ab'[n // 8 % 2]},0,0,0,0\n" for n in range(8000))
    assert checked("a.csv.gz", gzip.compress(b"sequence,label,a,b,c,d\n" + rows.encode())).code == 0


@pytest.mark.parametrize("shape", ["(True, 5, 3)", f"({'9' * 400}, 5, 3)", "f(1)", "__import__('os')"])
def test_headers_of_arrays_that_numpy_never_wrote_are_named_so(shape):
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    member = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + bytes(60)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("x.npy", member)
    done = checked("a.npz", buffer.getvalue())
    assert "is not one that numpy writes" in done.sentences[0]
