"""The report page: its structure, its numbers, what it refuses to let in, and the command that writes it."""

from __future__ import annotations

import base64
import gzip
import json
import math
import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from page_tree import Tree
from perdure.cli import main
from perdure.files import Damaged, write_json
from perdure.methods import METHODS
from perdure.paper.findings import all_findings, from_json
from perdure.report.numbers import MINUS, SPACE, size
from perdure.report.page import packed, page
from perdure.report.runs import comparisons
from perdure.report.sections import NONE
from report_samples import NASTY, SCRIPT, findings, record, records

LIMIT = 3_000_000
"""Bytes of a page with a hundred runs and twenty items."""


@pytest.fixture(scope="module")
def runs():
    return records()


@pytest.fixture(scope="module")
def text(runs):
    return page(runs, findings(runs), "Report & <b>title</b>")


@pytest.fixture(scope="module")
def tree(text):
    return Tree(text)


def test_is_well_formed_and_every_reference_has_its_target(tree):
    assert len(tree.ids) == len(set(tree.ids))
    for _, name, value in tree.attributes:
        if name == "href" and value.startswith("#"):
            assert value[1:] in tree.ids
        for target in re.findall(r"url\(#([^)]+)\)", value or ""):
            assert target in tree.ids
        if name in ("aria-labelledby", "aria-controls"):
            assert value in tree.ids
    steps = [after - before for before, after in zip(tree.headings, tree.headings[1:], strict=False)]
    assert tree.headings.count(1) == 1
    assert max(steps) == 1


def test_asks_the_network_for_nothing(text, tree):
    for tag, name, value in tree.attributes:
        if name in ("src", "href", "xlink:href", "data", "action", "poster", "srcset"):
            assert value.startswith(("#", "data:image/svg+xml;base64,")), (tag, name, value)
    assert not re.search(r"@import|url\(\s*['\"]?(?!#)", text)
    (policy,) = [value for tag, _, value in tree.attributes if tag == "meta" and "default-src" in value]
    assert policy.startswith("default-src 'none'; script-src 'sha256-")


def test_names_are_text_and_nothing_else(text, tree):
    assert tree.tags.count("script") == 3
    images = [value for tag, name, value in tree.attributes if (tag, name) == ("img", "alt")]
    assert images == ["Lines", "More", "Hostile"]  # those that can be read, and none that a name would make
    assert not [name for _, name, _ in tree.attributes if name.startswith("on")]
    assert SCRIPT not in text
    cells = [cell for row in tree.rows for cell in row]
    for name in NASTY:
        assert name in cells
    assert "<title>Report &amp; &lt;b&gt;title&lt;/b&gt;</title>" in text


@settings(max_examples=50)
@given(some.recursive(some.text() | some.integers() | some.none(), lambda inner: some.lists(inner)))
def test_packed_data_cannot_end_its_script_and_say_the_same(data):
    written = packed(data)
    assert re.fullmatch(r"[A-Za-z0-9+/=]+", written)
    assert json.loads(gzip.decompress(base64.b64decode(written))) == data
    assert packed(data) == written


def test_run_lines_hold_their_numbers(runs, tree):
    rows = {row[0]: row for row in tree.rows if len(row) == 10}
    assert len(rows) == len(runs) + 1  # and the head
    for run in runs:
        row = rows[run.hash[:8]]
        matrix = np.array(run.accuracy)
        lost = np.mean(np.diag(matrix)[:-1] - matrix[-1, :-1])
        assert row[1:4] == [run.benchmark.strip(), run.method.strip(), str(run.seed)]
        assert [float(cell.replace(MINUS, "-")) for cell in row[4:7]] == pytest.approx(
            [np.diag(matrix).mean(), matrix[-1].mean(), lost], abs=0.00501
        )


def test_methods_are_means_over_seeds(runs, tree):
    (row,) = [row for row in tree.rows if len(row) == 9 and row[0] == "hnet"]
    finals = np.array([run.final for run in runs if run.method == "hnet"])
    assert row[1] == "3"
    assert row[3] == f"{finals.mean():.2f} ± {finals.std(ddof=1) / math.sqrt(3):.2f}"
    trained = np.mean([run.parameters["trained"] for run in runs if run.method == "hnet"])
    assert int(re.sub(r"\D", "", row[6])) == round(trained)
    kept = np.mean([run.kept_bytes[-1] for run in runs if run.method == "hnet"])
    assert row[7] == " ".join(size(kept).split())


def test_what_was_run_most_comes_first(runs):
    rare = record("si", 0, benchmark="a rare one")
    ids = [name for name in Tree(page([rare, *runs], [], "T")).ids if name.startswith("run-")]
    assert rare.hash not in ids[0]
    assert comparisons([rare, *runs])[0].benchmark == "permuted-copy"


def test_methods_are_compared_on_the_same_problem_only():
    made = [record(method, 0, benchmark="smnist") for method in ("si", "hnet")]
    for run, digits in zip(made, (1, 4), strict=True):
        run.config["benchmark"]["digits"] = digits
    one, other = comparisons(made)
    assert [one.settings, other.settings] == [f"digits{SPACE}1", f"digits{SPACE}4"]
    assert [[line.method for line in each.summaries] for each in (one, other)] == [["si"], ["hnet"]]


def test_items_hold_ours_published_difference_and_verdict(tree):
    lines = {tuple(row[:2]): row for row in tree.rows if len(row) == 8}
    ours = "97.91 ± 0.50n = 3, 95 % interval of the mean: 96.90 to 98.80"
    assert lines["hnet", "final"][2:5] == [ours, "99.96 ± 0.01", f"{MINUS}2.05"]
    assert lines["si", "final"][4] == "+4.27"
    assert [lines[name, "final"][6].split()[-1] for name in ("hnet", "si", "fine-tuning")] == [
        "agrees",
        "higher",
        "lower",
    ]
    assert lines["rtf", "final"][2:5] == [NONE, "100.00 ± 0.00", NONE]
    assert lines["hnet", "final"][7] == "commandperdure run permuted-copy hnet --seeds 3seeds 0 1 2"


def test_pairs_hold_their_differences_and_orders(tree, text):
    lines = {tuple(row[:2]): row[2:] for row in tree.rows if len(row) == 6}
    assert lines["hnet", "si"] == [
        "3.64 ± 0.60",
        "0.03, by the sign-flip test 0.25",
        "9.96 ± 0.24",
        "✓ as published",
    ]
    assert lines["rtf", "hnet"][0] == f"{MINUS}0.20 ± 0.30"
    assert lines["rtf", "hnet"][3] == "• too close to call"
    assert lines["si", "fine-tuning"][1:] == [
        "< 0.0001, by the sign-flip test 0.06",
        "19.00",
        "⇅ the other way round",
    ]
    assert lines["masking+si", "hnet"] == ["1.73", NONE, NONE, NONE]
    assert lines["si", "masking"][3] == "? not decided"
    said = (
        "1 too close to call (1 of them in the paper too), 1 not decided, 1 the other way round (si / fine-"
    )
    assert said in text
    assert 'title="not decided: 12 seeds would suffice"' in text


def test_same_input_same_page(runs, text):
    assert page(list(reversed(runs)), findings(runs), "Report & <b>title</b>") == text


@pytest.mark.parametrize("present", ["runs", "findings"])
def test_either_part_may_be_missing(present, runs):
    text = page(runs if present == "runs" else [], findings(runs) if present == "findings" else [], "T")
    tree = Tree(text)
    assert len(tree.ids) == len(set(tree.ids))
    assert ("runs" in tree.ids) == (present == "runs")


def test_a_large_report_is_small():
    many = [record(method, seed, checks=60) for method in list(METHODS)[:10] for seed in range(10)]
    one = findings(many)[0]
    items = [replace(one, name=f"item-{n}") for n in range(20)]
    text = page(many, items, "Large")
    assert len(Tree(text).ids) > 100
    assert len(text.encode()) < LIMIT


def test_findings_come_back_from_their_files(runs, tmp_path):
    wanted = findings(runs)
    for place, one in enumerate(wanted):
        write_json(tmp_path / "findings" / f"{place}.json", one.json)
        assert from_json(json.loads(json.dumps(one.json))) == one
    (tmp_path / "findings" / "torn.json").write_text('{"name": "to')
    (tmp_path / "findings" / "odd.json").write_text('{"name": 3}')
    (tmp_path / "findings" / "nan.json").write_text(json.dumps(wanted[2].json | {"seconds": math.nan}))
    found, warnings = all_findings(tmp_path)
    assert [one.name for one in found] == ["table-1", "empty", SCRIPT]  # tables, figures, the rest
    assert len(warnings) == 3
    for name, warning in zip(("nan", "odd", "torn"), warnings, strict=True):
        assert f"{name}.json" in warning
    with pytest.raises(Damaged, match="cells"):
        from_json(wanted[2].json | {"cells": [{"row": "x"}]})


def test_the_command_writes_a_page(runs, tmp_path, capsys):
    for run in runs[:3]:
        write_json(tmp_path / run.hash / "record.json", run.json)
    (tmp_path / "findings").mkdir()
    (tmp_path / "findings" / "bad.json").write_text("{}")
    assert main(["report", "--runs", str(tmp_path), "--title", "Mine"]) == 0
    out, err = capsys.readouterr()
    assert out == f"Report: {tmp_path / 'report.html'}\n"
    assert "bad.json" in err
    first = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert '<h1 id="overview-title">Mine</h1>' in first
    assert (
        main(["report", "--runs", str(tmp_path), "--title", "Mine", "--out", str(tmp_path / "a" / "b.htm")])
        == 0
    )
    assert (tmp_path / "a" / "b.htm").read_text(encoding="utf-8") == first


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--runs", "{}/nowhere"], "perdure run"),
        (["somewhere"], "--runs somewhere"),
        (["--out", "page.pdf"], ".html"),
        (["--outt", "page.html"], "--out"),
        (["--runs", "{}", "--out", "{}/file/page.html"], "--out FILE"),
    ],
)
def test_mistakes_are_explained(words, said, runs, tmp_path, capsys):
    write_json(tmp_path / runs[0].hash / "record.json", runs[0].json)
    (tmp_path / "file").write_text("not a folder")
    assert main(["report", *(word.replace("{}", str(tmp_path)) for word in words)]) == 2
    out, err = capsys.readouterr()
    assert said in err
    assert not out
    assert len(err.strip().splitlines()) == 1


def test_a_search_that_was_stopped_before_its_first_trial_ended_has_a_page(tmp_path):
    """Its chart has no marks, and an axis from a value to itself."""
    from perdure.report.plots import Scale
    from search_samples import Pretend, study

    search = study(tmp_path, Pretend()).run()
    waiting = [replace(trial, final=None, during=None, rank=None) for trial in search.trials]
    stopped = replace(search, trials=waiting, candidates=[], chosen=None, complete=False)
    assert f"Validation accuracy of 0 trials of {search.design.method}" in page([], [], "t", [stopped])
    assert Scale(0.5, 0.5, []).share(0.5) == 0.5
