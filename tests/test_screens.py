"""What is shown fits the terminal, down to 80 columns, and nothing in it controls the terminal."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostile import cases, command
from perdure.report.table import Table, wide, wrapped
from perdure.report.tables import LABELS, accuracy_tables, list_table, telling
from report_samples import record
from test_damaged import GOOD

DOCUMENT = Path(__file__).parents[1] / "docs" / "screens.md"


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def many_tasks(count):
    """A record of so many tasks."""
    one = record("online-ewc", 0).json
    rows = [[100.0 - abs(row - column) for column in range(count)] for row in range(count)]
    one |= {"accuracy": rows, "tasks": [f"task {n}" for n in range(1, count + 1)], "f1": [], "validation": []}
    one |= {"during": 100.0, "final": sum(rows[-1]) / count}
    return {name: one[name][:1] if name in ("curves", "timings", "iterations") else one[name] for name in one}


def put(*records):
    for one in records:
        folder = Path("runs", one["hash"])
        folder.mkdir(parents=True)
        (folder / "record.json").write_text(json.dumps(one))


@pytest.mark.parametrize("columns", [80, 120])
def test_screens_fit(columns, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(columns))
    put(many_tasks(12), *(record(method, seed).json for method in ("hnet", "masking+si") for seed in (0, 1)))
    Path("data/north").mkdir(parents=True)
    Path("data/north/walks.csv").write_text(GOOD)
    run = many_tasks(12)["hash"]
    missing = ["run", "permuted-copy", "si", "--training.iteration", "5"]
    for words in (
        ["list"],
        ["list", "pieces"],
        ["show"],
        ["show", run],
        ["reproduce"],
        ["data", "check", "data"],
        missing,
    ):
        done = command(words)
        assert done.out or done.code == 2
        for line in done.out.splitlines():  # sentences are one line, but for in a terminal
            assert wide(line) <= columns, line


def test_the_screens_in_the_documents_fit():
    text = DOCUMENT.read_text(encoding="utf-8")
    parts = re.split(r"^## (\d+) columns$", text, flags=re.M)
    assert parts[1::2] == ["80", "120"]
    for columns, part in zip(parts[1::2], parts[2::2], strict=True):
        blocks = re.findall(r"^```text\n(.*?)^```$", part, flags=re.M | re.S)
        shown = [block.splitlines()[0] for block in blocks]
        for name in ("list", "run", "show", "reproduce", "data check"):
            assert any(line.startswith(f"$ perdure {name}") for line in shown), name
        for line in "".join(blocks).splitlines():
            assert wide(line) <= int(columns), line
            assert not line.startswith("Traceback")


@pytest.mark.parametrize("tasks", [25, 200])
def test_many_tasks_are_summarised(tasks, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    put(many_tasks(tasks))
    done = command(["show", many_tasks(tasks)["hash"]])
    lines = done.out.splitlines()
    assert len(lines) <= 30
    assert f"all {tasks} by {tasks} numbers" in done.out
    first = next(line for line in lines if line.startswith("1 to"))
    assert "100.00" in first


def test_a_matrix_folds_and_keeps_every_number():
    from perdure.storage.record import to_record

    (table,) = accuracy_tables(to_record(many_tasks(20)))
    lines = table.lines(80)
    assert max(map(len, lines)) <= 80
    numbers = [word for line in lines for word in line.split() if re.fullmatch(r"\d+\.\d\d", word)]
    assert sorted(numbers) == sorted(
        f"{100 - abs(row - column):.2f}" for row in range(20) for column in range(20)
    )
    assert len(table.lines(None)) == 22  # a title, names of columns, and a line a phase


def test_short_names_of_runs_are_unique():
    assert telling(["abcdef0000", "abcdef0001"]) == 10
    assert telling(["abcdef0000", "123456abcd"]) == 6
    records = [record("hnet", seed) for seed in range(3)]
    names = [line.split()[0] for line in list_table(records).lines(80)[1:]]
    assert len(set(names)) == 3
    for name in names:
        assert sum(one.hash.startswith(name) for one in records) == 1


TEXTS = st.text(st.sampled_from("ab -/连é\x1b[]\n"), max_size=60)


@cases(150)
@given(
    cells=st.lists(
        st.tuples(TEXTS, TEXTS, st.floats(-1e6, 1e6).map(lambda value: f"{value:.2f}")), max_size=5
    ),
    columns=st.integers(24, 130),
)
def test_any_table_fits_and_loses_nothing(cells, columns):
    table = Table("a title of words that may be longer than a line of the terminal is")
    for name in ("one", "two"):
        table.add_column(name)
    table.add_column("number", justify="right")
    for row in cells:
        table.add_row(*row)
    lines = table.lines(columns)
    assert max(map(wide, lines)) <= columns
    assert "\x1b" not in "".join(lines)
    for _, _, number in cells:
        assert any(number in line for line in lines)


def test_empty_columns_are_left_out_and_long_captions_become_paragraphs():
    table = Table("title", "a caption of several words\nanother")
    for name in ("", "ours", "published"):
        table.add_column(name, justify="right" if name else "left")
    table.add_row("error", "1", "")
    table.add_row("tasks", "2", "")
    assert table.without_empty_columns().lines(14) == [
        "title", "       ours", "error     1", "tasks     2",
        "", "a caption of", "several words", "", "another",
    ]  # fmt: skip
    assert table.lines(80)[-2:] == ["a caption of several words", "another"]


def test_labels_of_the_papers_source_are_not_shown():
    assert LABELS.sub("", "SM text (supp:linear:rnns)") == "SM text"
    assert LABELS.sub("", "Fig. 2 (fig:copy:explained), n = 5 (ours)") == "Fig. 2, n = 5 (ours)"


@cases(100)
@given(text=TEXTS, columns=st.integers(2, 40))
def test_wrapped_texts_keep_their_letters(text, columns):
    lines = wrapped(text, columns)
    assert all(wide(line) <= columns for line in lines)
    assert "".join(lines).replace(" ", "") == text.replace(" ", "")


def test_showing_runs_loads_nothing_heavy():
    """No test asserts a time; what took it were torch, numpy and other imports that a list does not need."""
    put(record("hnet", 0).json)
    code = (
        "import sys; from perdure.cli import main; code = main(['show', '--runs', 'runs']);"
        "heavy = {'torch', 'numpy', 'pydantic', 'rich', 'filelock'} & set(sys.modules);"
        "sys.exit(f'{code} {heavy}' if code or heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert "hnet" in done.stdout
