"""perdure search, ranges in place of values, and --from-search, as people use and misuse them."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from io import StringIO

import pytest
from rich.console import Console

from perdure.cli import main
from perdure.commands.ranges import domain_in
from perdure.config import sections
from perdure.report.search_board import SearchBoard
from perdure.search.spaces import Range
from perdure.search.tuning import designed
from search_samples import SPACE, Pretend, quality

HELD = ["--scale", "smoke", "--benchmark.tasks", "3"]
FREE = ["--training.learning_rate", "1e-4..1e-1", "--penalties.si.strength", "0.01,0.1,1"]


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGINT, before[0])
    signal.signal(signal.SIGTERM, before[1])


@pytest.fixture
def engine(monkeypatch):
    pretend = Pretend()
    monkeypatch.setattr("perdure.commands.executing.engine_of", lambda options, runs, workers: pretend)
    return pretend


def test_a_search_from_its_trials_to_its_use(engine, capsys):
    words = ["permuted-copy", "si", *HELD, *FREE, "--trials", "6", "--seeds", "2", "--plot", "s.svg"]
    assert main(["search", *words]) == 0
    out, err = capsys.readouterr()
    assert err.count("validation final") == 6
    assert "[6/6] si trial" in err
    assert "chosen" in out
    assert "on test data: during 50.00" in out
    identity = out.rpartition("--from-search ")[2].split()[0]
    with open("s.svg") as file:
        assert file.read().count('<g id="axes_') >= 2
    assert main(["search"]) == 0
    assert identity in capsys.readouterr().out
    count = len(engine.orders)
    assert main(["search", *words, "--json"]) == 0
    search = json.loads(capsys.readouterr().out)
    assert len(engine.orders) == count
    assert search["id"] == identity
    best = max(search["trials"], key=lambda trial: trial["final"])
    assert search["chosen"] == best["number"]
    quick = ["--training.iterations", "4", "--training.validate_every", "2", "--benchmark.train", "60"]
    assert main(["run", "permuted-copy", "si", "--from-search", identity[:6], "--json", *quick]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["config"]["training"]["learning_rate"] == best["values"]["training.learning_rate"]
    assert record["config"]["benchmark"]["tasks"] == 3
    assert record["searches"][identity]["values"] == best["values"]
    assert record["searches"][identity]["trials"] == 6
    with open(f"runs/{record['hash']}/record.json") as file:
        assert json.load(file) == record
    for wrong, words in (
        (["run", "permuted-copy", "online-ewc", "--from-search", identity], "is about permuted-copy si"),
        (["run", "permuted-copy", "si", "--from-search", "zzz"], f"known are: {identity}"),
        (
            ["run", "permuted-copy", "si", "--from-search", identity, "--training.learning_rate", "1"],
            "among the values that search",
        ),
    ):
        assert main(wrong) == 2
        assert words in capsys.readouterr().err


def test_the_papers_table_is_searched_unless_something_else_is_said(engine, capsys):
    words = ["--trials", "3", "--training.learning_rate", "1e-3,1e-2", "--training.clip", "1"]
    assert main(["search", "permuted-copy", "si", "masking+si", *HELD, "--seeds", "0", "--json", *words]) == 0
    first, second = (json.loads(line) for line in capsys.readouterr().out.splitlines())
    names = [each["name"] for each in first["design"]["space"]["dimensions"]]
    assert "penalties.si.strength" in names
    assert "training.clip" not in names  # it is held
    assert "weights.fraction" not in names
    assert "weights.fraction" in [each["name"] for each in second["design"]["space"]["dimensions"]]
    for trial in [*first["trials"], *second["trials"]]:
        assert trial["values"]["training.learning_rate"] in (1e-3, 1e-2)
    with open("mine.toml", "w") as file:
        file.write("[si]\npenalties.si.strength = [0.1, 1.0]\n")
    assert (
        main(["search", "permuted-copy", "si", *HELD, "--space", "mine.toml", "--seeds", "0", "--json"]) == 0
    )
    search = json.loads(capsys.readouterr().out)
    assert [trial["values"] for trial in search["trials"]] in (
        [{"penalties.si.strength": 0.1}, {"penalties.si.strength": 1.0}],
        [{"penalties.si.strength": 1.0}, {"penalties.si.strength": 0.1}],
    )


def test_a_range_turns_a_run_into_a_search(engine, capsys):
    assert (
        main(
            [
                "run",
                "permuted-copy",
                "si",
                *HELD,
                "--penalties.si.strength",
                "0.1,1",
                "--seeds",
                "0",
                "--json",
            ]
        )
        == 0
    )
    search = json.loads(capsys.readouterr().out)
    assert [set(trial["values"]) for trial in search["trials"]] == [{"penalties.si.strength"}] * 2
    assert search["trials"][search["chosen"] - 1]["values"] == {"penalties.si.strength": 0.1}


def test_a_range_of_layer_sizes(engine, capsys):
    words = ["--network.hidden", "8..16", "--trials", "3", "--seeds", "1", "--json"]
    assert main(["search", "permuted-copy", "si", *HELD, *FREE, *words]) == 0
    search = json.loads(capsys.readouterr().out)
    sizes = [trial["values"]["network.hidden"] for trial in search["trials"]]
    assert len(sizes) == 3
    assert all(isinstance(size, int) and 8 <= size <= 16 for size in sizes)
    assert {str(order["config"]["network"]["hidden"]) for order in engine.orders} == {f"[{s}]" for s in sizes}


def test_failed_trials_are_listed(engine, capsys):
    engine.upset = lambda order: (
        {"fault": "failed", "reason": "The loss became nan."} if quality(order) < 75 else None
    )
    assert main(["run", "permuted-copy", "si", *HELD, *FREE, "--trials", "9", "--seeds", "0"]) == 0
    out = capsys.readouterr().out
    assert "failed: The loss became nan. (--training.learning_rate" in out


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("training.learning_rate", "1e-3", None),
        ("training.learning_rate", "1e-4..1e-2", Range(1e-4, 1e-2)),
        ("training.learning_rate", ".1..1.", Range(0.1, 1.0)),
        ("weights.fraction", "0..0.5:linear", Range(0.0, 0.5, "linear")),
        ("training.clip", "none,1,100", (None, 1.0, 100.0)),
        ("network.hidden", "64,32", None),
        ("network.hidden", "64,32|128", ([64, 32], [128])),
        ("network.cell", "elman,lstm", ("elman", "lstm")),
        ("network.orthogonal", "true,false", (True, False)),
        ("training.optimiser", "Adam|SGD", ("Adam", "SGD")),
        ("training.optimiser", "Adam,SGD", ("Adam", "SGD")),
    ],
)
def test_what_is_free_and_what_is_a_value(name, text, expected):
    kinds = sections("permuted-copy", "masking")
    assert domain_in(kinds, name, text) == expected


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["permuted-copy"], "needs a BENCHMARK and a METHOD"),
        (["permuted-copy", "six"], "did you mean 'si'"),
        (["permuted-copy", "si", "--trial", "3"], "did you mean '--trials'"),
        (["permuted-copy", "si", "--hours", "never"], "--hours must be a number above 0"),
        (["permuted-copy", "si", "--trials", "0"], "--trials must be a whole number"),
        (["permuted-copy", "si", "--sampler", "tpee"], "did you mean 'tpe'"),
        (["permuted-copy", "si", "--cluster", "everywhere"], "not an address of a Dask scheduler"),
        (["permuted-copy", "si", "--cluster", "slurm-local", "--slurm", "fast"], "name=value"),
        (["permuted-copy", "si", "--cluster", "slurm-local", "--slurm", "speed=9"], "does not take these"),
        (["permuted-copy", "si", "--training.learning_rate", "1..-1"], "from the lower to the higher"),
        (["permuted-copy", "si", "--training.learning_rate", "1e-3,fast"], "training.learning_rate"),
        (["permuted-copy", "si", "--space", "nowhere.toml"], "cannot be read as TOML"),
        (["permuted-copy", "si", "--plot", "s.doc"], "must end in"),
        ([], "No searches in 'runs'"),
    ],
)
def test_mistakes_are_one_sentence(words, sentence, capsys):
    assert main(["search", *words]) == 2
    out, err = capsys.readouterr()
    assert sentence in err
    assert err.count("\n") == 1
    assert out == ""


def test_slurm_must_be_there(capsys, monkeypatch):
    monkeypatch.setenv("PATH", "")
    assert main(["search", "permuted-copy", "si", "--cluster", "slurm"]) == 2
    assert "this machine has no Slurm" in capsys.readouterr().err


def test_help_shows_the_space_and_needs_no_torch(capsys):
    assert main(["search", "permuted-copy", "hnet", "--scale", "paper", "--help"]) == 0
    out = capsys.readouterr().out
    assert "--weights.hidden 25,25 | 50,50" in out
    assert "hyperparameter search for the Permuted Copy Task" in out
    code = (
        "import sys; from perdure.cli import main; main(['search', '--help']); main(['cluster', '--help']);"
        "sys.exit(3 if 'torch' in sys.modules else 0)"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True).returncode == 0


def test_one_trial_is_one_trial(engine, capsys):
    assert main(["search", "permuted-copy", "si", *HELD, *FREE, "--trials", "1", "--seeds", "1"]) == 0
    out, err = capsys.readouterr()
    assert "at most 1 trial\n" in err
    assert "permuted-copy, benchmark.tasks 3, si: 1 trial (search" in out
    assert main(["report"]) == 0
    with open("runs/report.html") as file:
        page = file.read()
    assert "1 trial: 1 finished" in page
    assert "with 1 reporting seed:" in page
    assert "1 trials" not in out + err + page
    assert "1 reporting seeds" not in out + err + page


def test_fewer_trials_leave_a_search_as_it_is_and_say_so(engine, capsys):
    words = ["search", "permuted-copy", "si", *HELD, *FREE, "--seeds", "2", "--json", "--trials"]
    assert main([*words, "6"]) == 0
    before = json.loads(capsys.readouterr().out)
    count = len(engine.orders)
    assert main([*words, "2"]) == 0
    out, err = capsys.readouterr()
    after = json.loads(out)
    assert len(engine.orders) == count
    assert err.count("it counts: 6 trials and 2 reporting seeds") == 1
    assert {**after, "seconds": 0} == {**before, "seconds": 0}


def test_remarks_are_seen_beside_a_live_table(tmp_path):
    design = designed("permuted-copy", "si", SPACE, "smoke", {})
    board = SearchBoard(design, 3)
    shown = StringIO()
    board.console = Console(file=shown, force_terminal=True, width=80)
    with board:
        board.say("progress")
        board.remark("more counts")
    assert "more counts" in shown.getvalue()
    assert "progress" not in shown.getvalue()
