"""The command line as people use and misuse it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import pytest

from perdure.cli import main

QUICK = ["--scale", "smoke", "--training.iterations", "4", "--training.validate_every", "2"]


def command(*words):
    return [sys.executable, "-m", "perdure", *words]


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGINT, before[0])
    signal.signal(signal.SIGTERM, before[1])


def test_json_has_what_is_promised(capsys):
    assert main(["run", "permuted-copy", "fine-tuning", "--seed", "3", "--json", *QUICK]) == 0
    out, err = capsys.readouterr()
    record = json.loads(out)
    assert record["benchmark"] == "permuted-copy"
    assert record["method"] == "fine-tuning"
    assert record["seed"] == 3
    rows = record["accuracy"]
    assert len(rows) == len(rows[0]) == 3
    assert record["during"] == pytest.approx(sum(rows[k][k] for k in range(3)) / 3)
    assert record["final"] == pytest.approx(sum(rows[-1]) / 3)
    assert record["iterations"] == [4, 4, 4]
    assert record["seconds"] > 0
    assert record["memory"] == {"orthogonal": 0}
    assert os.path.exists(f"runs/{record['hash']}/record.json")
    assert "test accuracy" in err


def test_multitask_has_a_square_matrix_too(capsys):
    assert main(["run", "permuted-copy", "multitask", "--json", *QUICK]) == 0
    record = json.loads(capsys.readouterr().out)
    assert len(record["accuracy"]) == 3
    assert record["during"] == pytest.approx(record["final"])


def test_tables_lists_and_plots(capsys):
    assert main(["run", "permuted-copy", "si", "--plot", "r.png", *QUICK]) == 0
    out, _ = capsys.readouterr()
    assert "after task" in out
    assert "final" in out
    with open("r.png", "rb") as file:
        assert file.read(4) == b"\x89PNG"
    run = os.listdir("runs")[0]
    assert main(["show"]) == 0
    assert run[:6] in capsys.readouterr().out
    assert main(["show", run[:5], "--plot", "m.svg"]) == 0
    assert "task 3" in capsys.readouterr().out
    with open("m.svg") as file:
        assert file.read().count("<path") > 20
    assert main(["show", run, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["hash"] == run


@pytest.mark.parametrize("method", ["coresets", "rtf", "hnet+r"])
def test_rehearsed_sequences_can_be_looked_at(method, capsys):
    small = ["--rehearsal.hidden", "8"] if method != "coresets" else []
    assert main(["run", "permuted-copy", method, *small, *QUICK]) == 0
    run = os.listdir("runs")[0]
    assert main(["show", run, "--replay", "replay.svg"]) == 0
    with open("replay.svg") as file:
        assert file.read().count("<image") == 3 * (2 if method == "coresets" else 3) * 4
    capsys.readouterr()


def test_a_run_without_rehearsal_has_nothing_to_draw(capsys):
    assert main(["run", "permuted-copy", "si", *QUICK]) == 0
    assert main(["show", os.listdir("runs")[0], "--replay", "replay.png"]) == 2
    assert "rehearses nothing" in capsys.readouterr().err


def test_seeds_in_one_process_and_in_two_are_the_same(capsys):
    base = ["run", "permuted-copy", "masking", "--seeds", "3", "--json", *QUICK]
    assert main([*base, "--runs", "a"]) == 0
    one = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    done = subprocess.run(
        command(*base, "--runs", "b", "--workers", "2"), capture_output=True, text=True, check=True
    )
    two = [json.loads(line) for line in done.stdout.splitlines()]
    assert [r["seed"] for r in one] == [r["seed"] for r in two] == [0, 1, 2]
    assert [r["accuracy"] for r in one] == [r["accuracy"] for r in two]
    assert one[0]["accuracy"] != one[1]["accuracy"]


def test_list_and_help_name_everything(capsys):
    assert main(["list"]) == 0
    out = capsys.readouterr().out
    for word in ("permuted-copy", "pattern-manipulation", "fine-tuning", "masking+si", "laptop"):
        assert word in out
    assert main([]) == 0
    assert main(["--help"]) == 0
    assert "perdure run" in capsys.readouterr().out
    for name in ("run", "show", "list"):
        assert main([name, "--help"]) == 0
        assert f"perdure {name}" in capsys.readouterr().out
    assert main(["run", "permuted-copy", "online-ewc", "--help", "--scale", "paper"]) == 0
    out = capsys.readouterr().out
    for word in (
        "--penalties.online-ewc.strength 100.0",
        "--benchmark.i 5",
        "--network.hidden 256",
        "call 6",
    ):
        assert word in out
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("perdure ")


def test_help_shows_what_a_run_with_these_options_would_use(capsys):
    """The options of the chosen cell too, whether it is given or the preset's."""
    assert (
        main(["run", "copy", "online-ewc", "--network.cell", "lstm", "--training.clip", "none", "--help"])
        == 0
    )
    out = capsys.readouterr().out
    for word in ("--network.cell lstm", "--network.cell.forget_offset 2.0", "--training.clip none"):
        assert word in out
    assert main(["run", "smnist", "si", "--help"]) == 0
    out = capsys.readouterr().out
    assert (
        out.index("\nbenchmark:") < out.index("\nnetwork:") < out.index("  --network.cell.forget_offset 2.0")
    )
    assert main(["run", "copy", "si", "--help"]) == 0
    assert "forget_offset" not in capsys.readouterr().out


def test_options_of_the_cell_that_a_preset_chooses_can_be_given(tmp_path, capsys):
    words = ["--scale", "smoke", "--network.cell.forget_offset", "1", "--json", "--runs", str(tmp_path)]
    assert main(["run", "smnist", "fine-tuning", *words]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["config"]["network"]["cell"] == {"name": "lstm", "forget_offset": 1.0}
    assert main(["run", "permuted-copy", "fine-tuning", *words]) == 2
    assert "Option '--network.cell.forget_offset' belongs to lstm" in capsys.readouterr().err


def test_tasks_with_names_are_named_below_the_matrix(tmp_path, capsys):
    assert main(["run", "smnist", "fine-tuning", "--scale", "smoke", "--runs", str(tmp_path)]) == 0
    assert "Tasks: 1 digits 0 and 1, 2 digits 2 and 3\n" in capsys.readouterr().out
    assert main(["run", "permuted-copy", "fine-tuning", "--scale", "smoke", "--runs", str(tmp_path)]) == 0
    assert "Tasks:" not in capsys.readouterr().out  # they are just numbered


def test_help_needs_no_torch():
    for words in (
        ["--help"],
        ["--version"],
        ["list"],
        ["list", "-h"],
        *([name, "--help"] for name in ("run", "show", "reproduce", "report", "data")),
    ):
        code = (
            "import sys; from perdure.cli import main; main(sys.argv[1:]);"
            "sys.exit(3 if 'torch' in sys.modules else 0)"
        )
        assert subprocess.run([sys.executable, "-c", code, *words], stdout=subprocess.DEVNULL).returncode == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["rum"], "did you mean 'run'"),
        (["run"], "needs a BENCHMARK and a METHOD"),
        (["run", "permuted-copy"], "needs a BENCHMARK and a METHOD"),
        (["run", "permuted-copi", "si"], "did you mean 'permuted-copy'"),
        (["run", "permuted-copy", "fine-tunning"], "did you mean 'fine-tuning'"),
        (["run", "permuted-copy", "si", "more"], "a third, 'more'"),
        (["run", "permuted-copy", "si", "--trainin.iterations", "5"], "did you mean '--training.iterations'"),
        (["run", "permuted-copy", "si", "--sed", "5"], "did you mean '--seed'"),
        (["run", "permuted-copy", "si", "--training.iterations"], "needs a value"),
        (["run", "permuted-copy", "si", "--training.iterations", "-5"], "training.iterations"),
        (["run", "permuted-copy", "si", "--training.iterations", "0"], "training.iterations"),
        (["run", "permuted-copy", "si", "--network.hidden", "0"], "network.hidden"),
        (["run", "permuted-copy", "si", "--benchmark.p", "9"], "does not fit"),
        (["run", "permuted-copy", "si", "--benchmark.width", "-1"], "benchmark.width"),
        (["run", "permuted-copy", "si", "--seed", "-1"], "--seed must be"),
        (["run", "permuted-copy", "si", "--seed", "1", "--seeds", "2"], "not both"),
        (["run", "permuted-copy", "si", "--seed", "1", "--seed", "2"], "given twice"),
        (["run", "permuted-copy", "si", "--seeds", "x"], "--seeds must be"),
        (["run", "permuted-copy", "si", "--workers", "0"], "--workers must be"),
        (["run", "permuted-copy", "si", "--save-every", "abc"], "--save-every must be"),
        (["run", "permuted-copy", "si", "--penalties.si.strength", "abc"], "penalties.si.strength"),
        (["run", "permuted-copy", "si", "--network.before", "0"], "network.before"),
        (["run", "permuted-copy", "online-ewc", "--penalties.online-ewc.samples", "0"], "samples"),
        (["run", "permuted-copy", "si", "--scale", "papper"], "did you mean 'paper'"),
        (["run", "permuted-copy", "si", "--device", "tpu"], "--device"),
        (["run", "permuted-copy", "si", "-x"], "two dashes"),
        (["run", "permuted-copy", "multitask+si"], "no old task"),
        (["run", "permuted-copy", "si", "--seeds", "2", "--plot", "x.png"], "--plot draws one run"),
        (["run", "permuted-copy", "si", "--runs", "/proc/nowhere", *QUICK], "--runs DIR"),
        (["run", "permuted-copy", "fine-tuning", "--plot", "x.jpeg", *QUICK], ".png, .pdf or .svg"),
        (["show", "abc"], "No run 'abc'"),
        (["show"], "No finished runs"),
        (["show", "a", "b"], "one run"),
        (["show", "--fun"], "Unknown option"),
        (["show", "--runs", ""], "--runs needs a path"),
        (["run", "permuted-copy", "si", "--runs", ""], "--runs needs a path"),
        (["run", "permuted-copy", "si", "--plot="], "--plot needs a path"),
        (["run", "permuted-copy", "si", "--data", ""], "--data needs a path"),
        (["list", "x"], "Unknown argument 'x'"),
        (["reproduce", "all", "x"], "Unknown item"),
        (["reproduce", "all", "table-1"], "leave out either it or 'table-1'"),
    ],
)
def test_mistakes_get_one_sentence_and_exit_code_2(words, message, capsys):
    assert main(words) == 2
    _, err = capsys.readouterr()
    sentences = [line for line in err.splitlines() if line.startswith("perdure: ")]
    assert len(sentences) == 1
    assert message in sentences[0]
    assert "Traceback" not in err


@pytest.mark.parametrize(
    "words",
    [
        ["run", "permuted-copy", "si", "--network.hidden", "()"],
        ["run", "permuted-copy", "hnet", "--weights.hidden", "()", "--weights.ratio", "1"],
        ["run", "permuted-copy", "si", "--seed", "²"],
        ["run", "permuted-copy", "si", "--seed=--5"],
        ["run", "permuted-copy", "si", "--force=perhaps"],
        ["run", "permuted-copy", "hnet+online-ewc"],
        ["run", "permuted-copy", "si", "--training.optimiser", "Rprop", "--training.weight_decay", "0.1"],
        [
            "run",
            "permuted-copy",
            "si",
            "--training.optimiser",
            "SGD",
            "--training.learning_rate",
            "1e39",
            *QUICK,
        ],
        ["show", "/no/such/path"],
        ["show", "**"],
        ["show", "--plot", "x.png"],
    ],
)
def test_odd_input_gets_a_sentence_too(words, capsys):
    assert main(words) == 2
    err = capsys.readouterr().err
    assert sum(line.startswith("perdure: ") for line in err.splitlines()) == 1
    assert not os.path.exists("x.png")


def test_switches_can_be_switched_off(capsys):
    words = ["run", "permuted-copy", "fine-tuning", "--json", *QUICK]
    assert main(words) == 0
    assert main([*words, "--force=false"]) == 0
    first, again = (json.loads(line) for line in capsys.readouterr().out.splitlines())
    assert first["seconds"] == again["seconds"]  # the finished record, not a new one


def test_many_tasks_are_readable(capsys):
    words = ["run", "permuted-copy", "fine-tuning", "--benchmark.repeats", "4", *QUICK]
    assert main(words) == 0
    table = capsys.readouterr().out
    assert "…" not in table
    assert "task 12" in table


def test_on_off_options_may_stand_alone(capsys):
    words = ["run", "permuted-copy", "fine-tuning", "--network.bidirectional", "--json", *QUICK]
    assert main(words) == 0
    assert json.loads(capsys.readouterr().out)["config"]["network"]["bidirectional"] is True
    words = ["run", "--seed", "1", "permuted-copy", "--network.bidirectional", "si", "--json", *QUICK]
    assert main(words) == 0
    record = json.loads(capsys.readouterr().out)
    assert (record["seed"], record["method"]) == (1, "si")
    words = ["run", "permuted-copy", "fine-tuning", "--network.bidirectional=false", "--json", *QUICK]
    assert main(words) == 0
    assert json.loads(capsys.readouterr().out)["config"]["network"]["bidirectional"] is False
