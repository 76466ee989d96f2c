"""The paper's items: what they run, what they make of records, and all of them end to end."""

from __future__ import annotations

import html
import json
import math
import shutil
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import scipy.stats
import torch

import perdure.paper.plan
import perdure.report.board
from made_data import make_data
from perdure.analysis.supervised import Reduction
from perdure.cli import main
from perdure.commands.arguments import parse
from perdure.config import build
from perdure.experiment import run
from perdure.paper.comparison import ComparisonItem, row
from perdure.paper.findings import FOLDER, from_json
from perdure.paper.item import FinishedRuns, items
from perdure.paper.items.supervised import EWC, NEEDED, _cells
from perdure.paper.pairs import order_summary, pairs_of
from perdure.paper.plan import Plan, estimate, plan
from perdure.paper.results import FIGURES, FORMATS, evaluate, keep
from perdure.report.board import Board

TINY = {"training.iterations": 3, "benchmark.train": 50, "benchmark.val": 10, "benchmark.test": 10}


def table(**published):
    rows = (
        row("Fine-tuning", "permuted-copy", "fine-tuning", options=TINY, **published),
        row("SI", "permuted-copy", "si", options=TINY),
    )
    return ComparisonItem("A table", "Table 0", "It shows nothing.", rows)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """Two settings with two seeds each, at smoke scale."""
    runs = tmp_path_factory.mktemp("runs")
    records = {config.hash: run(config, runs).record for config in table().configs("smoke", 2)}
    return FinishedRuns("smoke", 2, runs, records)


def test_every_item_has_valid_settings_with_distinct_labels():
    known = items()
    assert len(known) >= 17
    for name, item in known.items():
        for scale in ("smoke", "laptop", "paper"):
            settings = item.settings(scale)
            assert len({setting.label for setting in settings}) == len(settings), name
            for setting in settings:
                assert setting.config(scale, 0).method
        assert item.title
        assert item.source
        assert item.about.endswith(".")


def test_the_command_of_a_setting_makes_its_config():
    for name, item in items().items():
        for setting in item.settings("smoke"):
            words = setting.command("smoke", 1).split()
            assert words[:4] == ["perdure", "run", setting.benchmark, setting.method], name
            read = parse(words[8:])
            options = read.values(read.options)
            assert build(*words[2:4], scale=words[5], **options).hash == setting.config("smoke", 0).hash


def test_set_gives_options_to_the_runs_that_have_them():
    given = {"benchmark.unknown": "drop-sentence", "benchmark.embeddings": "polyglot"}
    pos, copied = (items()[name] for name in ("pos", "table-1"))
    changed = pos.configs("paper", 1, given)
    assert {config.benchmark.unknown for config in changed} == {"drop-sentence"}
    assert not {config.hash for config in changed} & {config.hash for config in pos.configs("paper", 1)}
    assert [c.hash for c in copied.configs("paper", 1, given)] == [c.hash for c in copied.configs("paper", 1)]
    results = FinishedRuns("paper", 2, Path("."), {}, given)
    assert results.command("pos").endswith(
        "--set benchmark.unknown=drop-sentence --set benchmark.embeddings=polyglot"
    )
    assert "benchmark.unknown = drop-sentence" in pos.differs("paper", given)


def test_data_that_vary_with_the_seed_are_a_column_of_the_table(finished):
    varied = {"benchmark.data_seed": "seed"}
    configs = table().configs("smoke", 2, varied)
    assert [config.benchmark.data_seed for config in configs] == [0, 1, 0, 1]
    assert len({config.benchmark.build()[0].train.x.tobytes() for config in configs}) == 2
    before, _ = table().evaluate(finished)
    assert {cell.column for cell in before} == {"during", "final"}
    for config in configs[:2]:  # of the first row only
        run(config, finished.runs)
    cells, _ = table().evaluate(finished)
    (extra,) = [cell for cell in cells if cell not in before]
    finals = [run(config, finished.runs).record.final for config in configs[:2]]
    assert (extra.row, extra.column) == ("Fine-tuning", "final, data vary with the seed")
    assert extra.ours.mean == pytest.approx(sum(finals) / 2)
    assert "--benchmark.data_seed seed" in extra.command


def test_a_cell_with_varying_data_names_all_options_and_an_oversized_hypernetwork(tmp_path):
    """Its command makes exactly its runs, also where all runs were given an option."""
    given = {"training.batch_size": 4}
    few = TINY | {"weights.hidden": "20", "weights.chunk": 10, "network.hidden": 4}
    item = ComparisonItem(
        "A table", "Table 0", "It shows nothing.", (row("HNET", "copy", "hnet", options=few),)
    )
    records = {config.hash: run(config, tmp_path).record for config in item.configs("smoke", 1, given)}
    varied = item.configs("smoke", 1, {**given, "benchmark.data_seed": "seed"})
    own = [run(config, tmp_path).record for config in varied]
    *usual, extra = item.evaluate(FinishedRuns("smoke", 1, tmp_path, records, given))[0]
    assert extra.column == "final, data vary with the seed"
    words = extra.command.split()
    read = parse(words[8:])
    made = build(*words[2:4], scale=words[5], **read.values(read.options))
    assert (made.hash,) == extra.hashes == (own[0].hash,)
    assert "hypernetwork larger than its" in extra.remark
    assert {cell.remark for cell in usual} == {extra.remark}


def test_dimensions_that_were_not_enough_are_a_lower_bound(tmp_path):
    """Two seeds, of which one does not get there with the two dimensions tried: it needs at least three."""
    reduced = [Reduction(torch.zeros(4, 2), [50.0, each], [1.0, 1.0], 100.0) for each in (99.0, 60.0)]
    names = [config.hash for config in EWC.configs("smoke", 2)]
    records = {name: SimpleNamespace(hash=name) for name in names}
    cells = _cells("2 tasks", reduced, FinishedRuns("smoke", 2, tmp_path, records))
    assert {cell.column: (cell.values, cell.remark) for cell in cells} == {
        NEEDED: ((2.0, 3.0), "at least"),
        "accuracy with 2 dimensions (%)": ((99.0, 60.0), ""),
        "accuracy with all dimensions (%)": ((100.0, 100.0), ""),
    }


def test_findings_with_given_options_have_a_file_of_their_own(finished):
    findings, _ = evaluate("table-0", table(), finished)
    assert findings.file == "table-0-smoke"
    assert replace(findings, given={"benchmark.unknown": "drop-sentence"}).file == (
        "table-0-smoke-unknown-drop-sentence"
    )


def test_reproduce_refuses_options_that_no_run_has(capsys):
    assert main(["reproduce", "table-1", "--set", "benchmark.unknwon=random", "--plan"]) == 2
    assert "benchmark.unknwon" in capsys.readouterr().err
    assert main(["reproduce", "table-1", "--set", "benchmark.unknown", "--plan"]) == 2
    assert "NAME=VALUE" in capsys.readouterr().err


def test_cells_are_the_means_of_the_records(finished):
    cells, drawn = table(final=(50.0, 1.0)).evaluate(finished)
    finals = [record.final for record in finished.of(table().rows[0].setting)]
    cell = next(cell for cell in cells if (cell.row, cell.column) == ("Fine-tuning", "final"))
    assert cell.ours is not None
    assert cell.ours.mean == pytest.approx(sum(finals) / 2)
    assert cell.ours.sem == pytest.approx(abs(finals[0] - finals[1]) / 2)
    assert (cell.ours.n, cell.published.mean, len(cell.hashes)) == (2, 50.0, 2)
    other = next(cell for cell in cells if (cell.row, cell.column) == ("SI", "final"))
    assert other.published is None
    assert other.verdict == ""
    marks = [line for axes in drawn[0].figure.axes for line in axes.get_lines()]
    assert any(mark.get_xdata()[0] == cell.ours.mean for mark in marks)


def ranked(*rows):
    """Rows of a table with made records: label, published final, our finals; benchmark options may follow."""
    made = {}
    listed = []
    for label, published, finals, *options in rows:
        # Hidden units keep the settings of the rows apart.
        distinct = {"network.hidden": [3 + len(listed)]} | dict(*options)
        added = row(label, "permuted-copy", "si", None, published, distinct)
        listed.append(added)
        for seed, final in enumerate(finals):
            config = added.setting.config("laptop", seed)
            made[config.hash] = SimpleNamespace(final=final, hash=config.hash)
    return pairs_of(listed, FinishedRuns("laptop", len(rows[0][2]), Path("."), made))


def test_pairs_are_paired_by_seed_and_ordered_by_the_rule():
    best, middle, tied = [91.9, 94.0, 97.1], [89.0, 92.0, 95.0], [89.1, 92.1, 95.2]
    pairs = ranked(
        ("low", (60.0, 1.0), middle),
        ("high", (80.0, 1.0), best),
        ("near", (60.5, None), tied),
        ("wrong", (95.0, 1.0), [50.0, 51.0, 52.0]),
        ("new", None, [99.0, 99.0, 99.0]),
    )
    found = {(pair.first, pair.second): pair for pair in pairs}
    assert len(pairs) == 10
    one = found["high", "low"]
    oracle = scipy.stats.ttest_rel(best, middle)
    differences = [2.9, 2.0, 2.1]
    assert one.ours.mean == pytest.approx(7 / 3)
    assert one.ours.sem == pytest.approx(scipy.stats.sem(differences))
    assert one.p == pytest.approx(oracle.pvalue)
    assert one.p_signs == pytest.approx(2 / 2**3)
    assert (one.published.mean, one.published.sem) == (20.0, pytest.approx(math.sqrt(2)))
    assert one.order == "as published"
    assert found["near", "low"].order == "too close to call"  # 0.13, although the sign is the paper's
    assert found["near", "low"].published.sem is None
    assert found["wrong", "high"].order == "the other way round"
    assert found["new", "high"].order == ""  # nothing published: ours decide who is first
    assert order_summary(pairs) == (
        "Pairs of methods by final accuracy: 2 of 6 ordered as published, "
        "1 too close to call (1 of them in the paper too), "
        "3 the other way round (wrong / low, wrong / high, wrong / near)."
    )


def test_a_small_difference_against_the_paper_is_too_close_to_call():
    (near,) = ranked(("a", (99.9, 0.0), [99.5]), ("b", (99.8, 0.0), [99.9]))
    assert (near.order, near.p, near.ours.sem) == ("not decided", None, None)  # one seed
    (close,) = ranked(("a", (99.9, 0.0), [99.5, 99.6, 99.4]), ("b", (99.8, 0.0), [99.6, 99.6, 99.6]))
    assert close.order == "too close to call"  # -0.1 +- 0.06
    (noisy,) = ranked(("a", (99.0, 0.0), [80.0, 99.0]), ("b", (90.0, 0.0), [95.0, 90.0]))
    assert noisy.order == "not decided"  # -3 ± 12
    assert "1 not decided" in order_summary([noisy])
    (far,) = ranked(("a", (99.0, 0.0), [80.0, 81.0, 80.5]), ("b", (90.0, 0.0), [95.0, 96.5, 96.0]))
    assert far.order == "the other way round"
    (equal,) = ranked(("a", (99.0, 0.0), [80.0, 81.0]), ("b", (99.0, 0.0), [95.0, 96.5]))
    assert equal.order == ""
    assert (equal.first, order_summary([equal])) == ("b", "")


def test_numbers_on_other_data_are_not_judged():
    audio, copied = (items()[name].settings("laptop")[0] for name in ("audioset", "table-1"))
    laptop, paper = (FinishedRuns(scale, 1, Path("."), {}) for scale in ("laptop", "paper"))
    assert not laptop.comparable(audio)
    assert paper.comparable(audio)
    assert laptop.comparable(copied)
    assert not replace(laptop, scale="smoke").comparable(copied)
    assert "balanced and evaluation sets" in items()["audioset"].differs("laptop")
    assert "balanced" not in items()["audioset"].differs("paper")
    assert items()["table-2"].differs("paper").startswith("Padded Copy: tasks are permuted")


def test_methods_are_compared_on_the_same_benchmark_only():
    assert not ranked(("a", None, [1.0], {"benchmark.i": 6}), ("b", None, [2.0], {"benchmark.i": 7}))
    assert len(ranked(("a", None, [1.0], {"benchmark.i": 6}), ("b", None, [2.0], {"benchmark.i": 6}))) == 1


def test_findings_and_figures_are_kept_and_the_same_every_time(finished):
    first = evaluate("table-0", table(), finished)
    paths = keep(*first, finished.runs)
    assert [path.suffix for path in paths] == [f".{format}" for format in FORMATS]
    content = [path.read_bytes() for path in paths]
    assert content[0].startswith(b"%PDF")
    assert b"<svg" in content[1]
    assert content[2].startswith(b"\x89PNG")
    keep(*evaluate("table-0", table(), finished), finished.runs)
    assert [path.read_bytes() for path in paths] == content
    stored = json.loads((finished.runs / FOLDER / "table-0-smoke.json").read_text())
    assert stored == json.loads(json.dumps(first[0].json))
    assert first[0].seconds == pytest.approx(sum(record.seconds for record in finished.records.values()))


def test_a_plan_counts_each_run_once_and_finds_what_is_there(finished):
    both = {"one": table(), "two": table()}
    work = plan(both, "smoke", {"one": 2, "two": 3}, finished.runs)
    assert len(work.configs) == 6  # two settings, three seeds; the first two of each are finished
    assert set(work.found) == set(finished.records)
    assert [config.seed for config in work.missing] == [2, 2]


class Clock:
    """A clock that each reading puts forward by the next of the given times; the last one stays."""

    def __init__(self, *seconds):
        self.now, self.seconds = 0.0, list(seconds)

    def read(self):
        self.now += self.seconds.pop(0) if len(self.seconds) > 1 else self.seconds[0]
        return self.now


def clocked(monkeypatch, module, *seconds):
    clock = Clock(*seconds)
    times = SimpleNamespace(perf_counter=clock.read, process_time=clock.read, monotonic=clock.read)
    monkeypatch.setattr(module, "time", times)


def test_an_estimate_grows_with_the_iterations(monkeypatch):
    """Seconds of an iteration times iterations, and the end, of each task.

    The first iteration, which is slow, is left out; the third task takes as long as the second.
    """
    config = build("permuted-copy", "fine-tuning", scale="smoke", **TINY)
    longer = replace(config, training=config.training.model_copy(update={"iterations": 3000}))
    first, end, second = [0.0, 500.0] + 6 * [2.0], [0.0, 7.0], [0.0, 500.0] + 6 * [3.0]
    for each in (config, longer):
        clocked(monkeypatch, perdure.paper.plan, *first, *end, *second)
        iterations = each.training.iterations
        assert estimate(Plan([each], {})) == {each.hash: (2 + 2 * 3) * iterations + 3 * 7}


def test_an_estimate_includes_the_tests_of_all_tasks_after_each(monkeypatch):
    config = build("permuted-copy", "fine-tuning", scale="smoke", **TINY)
    clock = Clock(0.0)
    monkeypatch.setattr(perdure.paper.plan, "time", SimpleNamespace(process_time=clock.read))

    def tested(learner, state, data, generators):
        clock.now += 5.0
        return [], []

    monkeypatch.setattr(perdure.paper.plan, "scores_of_all_tasks", tested)
    assert estimate(Plan([config], {})) == {config.hash: 3 * 5.0}


def test_an_estimate_goes_by_finished_seeds(finished):
    work = plan({"one": table()}, "smoke", {"one": 5}, finished.runs)
    spent = [record.seconds for record in finished.records.values()]
    # Three more seeds after two of each setting.
    assert sum(estimate(work).values()) == pytest.approx(3 * sum(spent) / 2)


def test_an_estimate_grows_with_the_tasks_that_a_benchmark_really_has(monkeypatch):
    clocked(monkeypatch, perdure.paper.plan, 1.0)
    once, often = (
        build("permuted-copy", "si", scale="smoke", **(TINY | {"benchmark.repeats": repeats}))
        for repeats in (1, 7)
    )
    seconds = estimate(Plan([once, often], {}))
    iterations = once.training.iterations
    assert list(seconds.values()) == [3 * (iterations + 1), 3 * (iterations + 1) * 7]


def test_whoever_waits_for_an_estimate_does_not_wait_long(monkeypatch):
    """When time is up, settings last as long as others of their benchmark and method, or as all others."""
    quick, slow, *same, alone = (
        build("permuted-copy", method, scale="smoke", **TINY, training__learning_rate=rate)
        for method, rate in (("si", 0.1), ("hnet", 0.1), ("hnet", 0.2), ("hnet", 0.3), ("masking", 0.1))
    )
    last = replace(slow, seed=1)
    timed = []

    def measured(config, device):
        timed.append(config)
        clock.now += 20.0
        return {"si": 10.0, "hnet": 40.0}[config.method]

    clock = Clock(0.0)
    monkeypatch.setattr(perdure.paper.plan, "monotonic", clock.read)
    monkeypatch.setattr(perdure.paper.plan, "_measured", measured)
    seconds = estimate(Plan([quick, slow, *same, alone, last], {}))
    assert timed == [quick, slow]
    expected = [(quick, 10.0), (slow, 40.0), (last, 40.0), *((each, 40.0) for each in same), (alone, 25.0)]
    assert seconds == {config.hash: each for config, each in expected}


def test_an_estimate_times_each_kind_of_run_first(monkeypatch):
    first, second = (
        build("permuted-copy", "si", scale="smoke", **TINY, training__learning_rate=rate)
        for rate in (0.1, 0.2)
    )
    other = build("permuted-copy", "masking", scale="smoke", **TINY)
    timed = []
    monkeypatch.setattr(
        perdure.paper.plan, "_measured", lambda config, device: float(timed.append(config.hash) or 1)
    )
    estimate(Plan([first, second, other], {}))
    assert timed == [first.hash, other.hash, second.hash]


def test_damaged_records_are_named(finished, tmp_path, capsys):
    shutil.copytree(finished.runs, tmp_path / "runs")
    name = next(iter(finished.records))
    (tmp_path / "runs" / name / "record.json").write_text("{")
    work = plan({"one": table()}, "smoke", {"one": 2}, tmp_path / "runs")
    assert [config.hash for config in work.missing] == [name]
    assert name in work.warnings[0]


def test_an_item_whose_files_are_gone_does_not_take_the_others_with_it(tmp_path, capsys):
    words = ["--scale", "smoke", "--runs", str(tmp_path)]
    assert main(["reproduce", "supervised", *words]) == 0
    for path in tmp_path.glob("*/after-*.safetensors"):
        path.unlink()
    capsys.readouterr()
    assert main(["reproduce", "supervised", "theory", *words]) == 2
    said = capsys.readouterr()
    assert "supervised is left out" in said.err
    assert "Report: " in said.out
    assert (tmp_path / FOLDER / "theory-smoke.json").exists()


def test_the_board_counts(finished, monkeypatch):
    clocked(monkeypatch, perdure.report.board, 90.0)
    records = list(finished.records.values())
    board = Board([f"run {number}" for number in range(3)])
    board.done(0, records[0])
    assert board.table().title == "1 of 3 runs finished, 1.5 min"


def test_names_that_do_not_exist_are_named(capsys):
    assert main(["reproduce", "table-11"]) == 2
    assert "did you mean 'table-1'" in capsys.readouterr().err


def test_a_plan_alone_runs_nothing(tmp_path, capsys):
    assert main(["reproduce", "table-1", "--scale", "smoke", "--plan", "--runs", str(tmp_path)]) == 0
    assert "10 runs, 0 of them finished" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_items_without_their_data_are_left_out_or_refused(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("PERDURE_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert main(["reproduce", "audioset", "--scale", "smoke", "--plan", "--runs", str(tmp_path / "r")]) == 2
    assert "audioset" in capsys.readouterr().err
    assert main(["reproduce", "all", "--scale", "smoke", "--plan", "--runs", str(tmp_path / "r")]) == 0
    said = capsys.readouterr().err
    assert "audioset is left out" in said
    assert "pos is left out" in said
    assert "table-1 is left out" not in said


def test_a_plan_builds_no_data(tmp_path, monkeypatch, capsys):
    """Whether files are there is asked without reading them: empty ones will do for that."""
    folder = tmp_path / "data" / "audioset"
    folder.mkdir(parents=True)
    for name in (
        "ontology.json",
        "class_labels_indices.csv",
        "confidence_data.csv",
        "bal_train.npz",
        "eval.npz",
    ):
        (folder / name).touch()
    monkeypatch.setenv("PERDURE_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    words = ["--scale", "smoke", "--plan", "--runs", str(tmp_path / "r")]
    assert main(["reproduce", "audioset", *words]) == 0
    assert "0 of them finished" in capsys.readouterr().err
    (folder / "eval.npz").unlink()
    assert main(["reproduce", "audioset", *words]) == 2
    assert "lacks clips" in capsys.readouterr().err
    (tmp_path / "data" / "ud" / "ud-treebanks-v2.6").mkdir(parents=True)
    assert main(["reproduce", "pos", *words]) == 2
    assert "has no treebank" in capsys.readouterr().err


BEYOND = ("dsa", "newer-methods", "recurrences", "plasticity")
SAME = {"upsampling": {("m = 1", "u = 1")}}
"""Rows that are one run by definition."""


@pytest.mark.parametrize("scale", ["laptop", "paper"])
@pytest.mark.parametrize("name", items())
def test_rows_of_an_item_are_different_runs(name, scale):
    """Else a change of presets could make a finding compare a run with itself."""
    labels: dict[str, str] = {}
    for setting in items()[name].settings(scale):
        first = labels.setdefault(setting.config(scale, 0).hash, setting.label)
        assert first == setting.label or (first, setting.label) in SAME.get(name, ())


WITHOUT_FIGURES = ("data-sets",)


def test_everything_is_reproduced_at_smoke_scale(tmp_path, capfd, monkeypatch):
    """Every item end to end: its runs, its numbers, its figures in three formats, and the report.

    Items that the paper does not have are in test_measures.py.
    """
    names = [name for name in items() if name not in BEYOND]
    monkeypatch.setenv("PERDURE_DATA", str(make_data(tmp_path / "data")))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    runs = tmp_path / "runs"
    assert main(["reproduce", *names, "--scale", "smoke", "--workers", "2", "--runs", str(runs)]) == 0
    out, err = capfd.readouterr()
    assert "left out" not in err
    page = html.unescape((runs / "report.html").read_text(encoding="utf-8"))
    for name in names:
        findings = from_json(json.loads((runs / FOLDER / f"{name}-smoke.json").read_text()))
        assert findings.cells or findings.drawings, name
        for cell in findings.cells:
            assert cell.ours is not None
            assert math.isfinite(cell.ours.mean), f"{name}: {cell}"
            assert cell.command.startswith("perdure ")
        assert findings.drawings or name in WITHOUT_FIGURES, name
        for drawing in findings.drawings:
            assert drawing.svg.count("<path") > 10, f"{name} is an empty figure"
        for format in FORMATS if findings.drawings else ():
            assert list((runs / FIGURES).glob(f"{name}-*.{format}")), f"{name}.{format}"
        assert findings.title in page, name
    pairs = from_json(json.loads((runs / FOLDER / "table-1-smoke.json").read_text())).pairs
    assert len(pairs) == 45
    assert not any(pair.order for pair in pairs)  # at this scale there is nothing to judge
    # Nothing is run twice.
    assert main(["reproduce", "table-1", "--scale", "smoke", "--runs", str(runs)]) == 0
    assert "10 runs, 10 of them finished already." in capfd.readouterr().err
    assert Path(out.strip().splitlines()[-1].removeprefix("Report: ")).name == "report.html"
