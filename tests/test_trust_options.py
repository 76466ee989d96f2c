"""Options and paths as nobody should give them, and what the shell may do to a command."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostile import ODD_TEXTS, Outcome, cases, check, command, odd_texts
from perdure.config import every_option, option_names, sections
from perdure.testing.methods import SMALL

METHODS = ["fine-tuning", "online-ewc", "si", "masking+si", "coresets", "hnet", "rtf", "hnet+r"]
VALUES = [
    "",
    "0",
    "-1",
    "1",
    "0.5",
    "1e308",
    "-1e308",
    "1e-320",
    "nan",
    "inf",
    "true",
    "false",
    "none",
    "yes",
    "()",
    "[]",
    ",",
    "1,2",
    "1,,2",
    "3,2,1",
    "1..",
    "..",
    "a",
    "elman",
    "lstm",
    "9" * 400,
    "1e400",
    "½",
    "bernoulli",
    "gaussian",
    "0.999999",
    "2",
    "3",
]


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("PERDURE_DATA", raising=False)


def small(method):
    """Options of a very small run."""
    known = option_names(sections("permuted-copy", method))
    few = SMALL | {"benchmark.tasks": 2, "training.iterations": 2}
    return {name: str(value).lower() for name, value in few.items() if name in known}


def options_of(method):
    kinds = sections("permuted-copy", method)
    return [name for name in option_names(kinds) if not name.startswith("benchmark.")]


SLOW = {"training.iterations", "training.validate_every", "training.batch_size"}
"""Where a large number is honest work for a day."""


@cases(140)
@given(data=st.data())
def test_every_option_with_odd_values(data):
    method = data.draw(st.sampled_from(METHODS))
    name = data.draw(st.sampled_from([each for each in options_of(method) if each not in SLOW]))
    value = data.draw(st.one_of(st.sampled_from(VALUES), st.sampled_from(VALUES), odd_texts))
    if "," in value and not name.endswith(("hidden", "layers")):
        value = value.replace(",", "")  # alternatives would be a search
    words = ["run", "permuted-copy", method, "--scale", "smoke", "--runs", "runs"]
    done = command([*words, *(f"--{key}={text}" for key, text in (small(method) | {name: value}).items())])
    shutil.rmtree("runs", ignore_errors=True)
    assert done.code in (0, 2)


@pytest.mark.parametrize(
    ("method", "option", "value"),
    [
        ("rtf", "rehearsal.hidden", ""),
        ("hnet+r", "rehearsal.hidden", ""),
        ("hnet+r", "rehearsal.hyper_hidden", ""),
        ("rtf", "rehearsal.temperature", "1e308"),
        ("rtf", "rehearsal.prior_sd", "1e308"),
        ("hnet+r", "rehearsal.prior_sd", "1e308"),
        ("coresets", "rehearsal.temperature", "1e308"),
        ("fine-tuning", "network.bidirectional", "yes"),
        ("fine-tuning", "network.hidden", ""),
    ],
)
def test_options_that_were_tracebacks(method, option, value):
    given = small(method) | {option: value}
    words = ["run", "permuted-copy", method, "--scale", "smoke", "--runs", "runs"]
    done = command([*words, *(word for key, text in given.items() for word in (f"--{key}", text))])
    assert done.code == 2
    assert option in done.sentences[0]


NAMES = [
    "list",
    "run",
    "show",
    "reproduce",
    "report",
    "analyse",
    "data",
    "search",
    "cluster",
    "help",
    "--version",
]
WORDS = st.one_of(
    st.sampled_from(NAMES),
    odd_texts,
    st.sampled_from(
        ["pieces", "all", "table-1", "check", "where", "build", "permuted-copy", "si", "none", "--", "-"]
    ),
    st.sampled_from(
        ["--json", "--runs", "--plot", "--seed", "--seeds=", "--scale=x", "--help", "--plan", "--=", "---"]
    ),
    st.text(max_size=6),
)


@cases(260)
@given(data=st.data())
def test_words_in_any_order(data):
    words = [data.draw(st.sampled_from([*NAMES, "", "x"])), *data.draw(st.lists(WORDS, max_size=4))]
    if words[0] in ("cluster", "search") or (
        words[0] == "reproduce" and len(words) > 1 and "--plan" not in words
    ):
        words = [words[0], "--help", *words[1:]]
    if words[0] == "run" and "--help" not in words:
        words = ["run", "--scale=x", *words[1:]]  # only to see what is said, not to run
    command([word.replace("\x00", "") for word in words])


PATHS = [
    "n" * 5000,
    "a/" * 3000,
    "/dev/full",
    "/dev/null",
    "/dev/null/x",
    "/proc/nowhere/x",
    "no\x1b[31mred",
    "\udcff",
    "file",
    "file/inside",
    "link",
    "loop",
    "pipe",
    "none",
    ".",
    "a b",
    "ünï",
    "[bold]",
    "~nobody/x",
    "plots",
]


def furnish():
    for name in ("plots", "none"):
        Path(name).mkdir(exist_ok=True)
    Path("file").write_text("x")
    if not Path("loop").is_symlink():
        Path("loop").symlink_to("loop")
        Path("link").symlink_to("/dev/full")
        os.mkfifo("pipe")


COMMANDS = [
    ["show", "PATH"],
    ["show", "--runs", "PATH"],
    ["report", "--runs", "PATH"],
    ["data", "check", "PATH"],
    ["data", "list", "--data", "PATH"],
    ["analyse", "forgetting", "PATH"],
    ["list", "--plugin", "PATH"],
    ["data", "check", "none", "--benchmark.tasks", "PATH"],
    ["run", "arrays", "si", "--benchmark.folder", "PATH"],
    ["show", "x", "--runs", "PATH"],
    ["search", "--list", "--runs", "PATH"],
    ["run", "permuted-copy", "si", "--data", "PATH"],
    ["run", "permuted-copy", "si", "--from-search", "PATH"],
    ["search", "permuted-copy", "si", "--space", "PATH", "--plan"],
]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="only where there are pipes")
@cases(160)
@given(words=st.sampled_from(COMMANDS), path=st.sampled_from(PATHS))
def test_paths_that_lead_nowhere(words, path):
    furnish()
    words = [path if word == "PATH" else word for word in words]
    if words[-2:] == ["--data", path] and Path(path[:200]).is_dir():
        words.append("--scale=x")
    done = command(words, bound=20, most=9)
    assert done.code in (0, 2)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="only where there are pipes")
@pytest.mark.parametrize("path", [*PATHS[:7], "file/inside/m.png", "loop/m.png", "plots", "n" * 300 + ".png"])
def test_a_figure_that_cannot_be_written_is_told_before_the_run(path):
    furnish()
    if not path.endswith(".png"):
        path += "/m.png" if path != "plots" else ""
    words = ["run", "permuted-copy", "si", "--scale", "smoke", "--runs", "runs", "--plot", path]
    done = command([*words, *(f"--{key}={text}" for key, text in small("si").items())])
    assert done.code == 2
    assert not Path("runs").exists()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="only where there are pipes")
@pytest.mark.parametrize(
    "path", ["/dev/full", "/proc/x", "file", "pipe", "loop", "n" * 300, "file/x", "no\x1b[31m"]
)
def test_folders_of_runs_that_cannot_be(path):
    furnish()
    words = ["run", "permuted-copy", "si", "--scale", "smoke", "--runs", path]
    done = (
        command([*words, *(f"--{key}={text}" for key, text in small("si").items())])
        if path[:3] != "no\x1b"
        else None
    )
    assert done is None or done.code == 2


def test_a_folder_may_be_called_none():
    Path("data").mkdir()
    Path("data/none").mkdir()
    from test_damaged import GOOD

    Path("data/none/task.csv").write_text(GOOD)
    os.chdir("data")
    assert command(["data", "check", "none"]).code == 0
    words = [
        "run",
        "arrays",
        "fine-tuning",
        "--scale",
        "smoke",
        "--benchmark.folder",
        "none",
        "--runs",
        "runs",
    ]
    assert command([*words, "--training.iterations", "2", "--network.hidden", "4"]).code == 0


def shell(line, **environment):
    """A command as a shell runs it."""
    python = f"{sys.executable} -m perdure"
    done = subprocess.run(
        line.replace("perdure", python),
        shell=True,
        capture_output=True,
        text=True,
        timeout=300,
        env=os.environ | environment,
    )
    outcome = Outcome(done.returncode, done.stdout, done.stderr)
    check([line], outcome)
    return outcome


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only where there is /dev/full")
def test_a_full_output_is_a_sentence():
    done = shell("perdure list > /dev/full")
    assert done.code == 2
    assert "cannot be written" in done.err


def test_a_closed_output_is_silent():
    done = shell("perdure list | head -1")
    assert done.err == ""


def test_a_terminal_that_knows_ascii_alone():
    done = shell("perdure show ± --runs ±", PYTHONIOENCODING="ascii")
    assert done.code == 2
    assert "\\xb1" in done.err


def test_options_that_are_on_or_off_are_named():
    done = command(["run", "permuted-copy", "si", "--network.bidirectional", "yes"])
    assert "network.bidirectional" in done.sentences[0]


def test_hints_only_where_they_are_near():
    assert "did you mean" not in command(["run", "weather", "si"]).err
    assert "Unknown benchmark 'weather'" in command(["run", "weather", "si"]).err
    assert "did you mean 'permuted-copy'" in command(["run", "permuted-cop", "si"]).err
    many = command(["run", "permuted-copy", "si", "--zzz", "1"]).sentences[0]
    assert len(many) < 500


def test_every_option_has_a_short_name_for_errors():
    assert len(list(every_option())) > 50
    assert ODD_TEXTS
