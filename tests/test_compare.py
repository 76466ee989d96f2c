"""Comparisons: equal trials, the time limit, constraints, and that no test number chooses anything."""

from __future__ import annotations

import ast
import json
import math
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import perdure.compare
from perdure.analysis.statistics import BETTER, NOT_DECIDED, TOO_CLOSE, WORSE, number, paired_verdict
from perdure.cli import main
from perdure.commands.reporting import make_report
from perdure.compare.answer import answers, entries, front, memory, over_the_limit
from perdure.compare.demands import demands
from perdure.compare.question import Constraints, all_comparisons, asked, bytes_of, resumed
from perdure.compare.rounds import Rounds
from perdure.config import build
from perdure.errors import PerdureError
from perdure.report.compared import (
    comparison_json,
    comparison_lines,
    comparison_section,
    comparison_table,
    conclusion,
    no_result,
)
from perdure.report.numbers import size
from perdure.search.clock import Clock
from perdure.search.crew import Crew
from perdure.search.problem import Problem, TaskShape
from perdure.search.state import find_search, place
from perdure.search.study import Budget, Study
from perdure.search.tuning import designed
from perdure.storage.store import all_records
from search_samples import TASKS, Pretend

RATES = {"training.learning_rate": [0.001, 0.002, 0.003, 0.004, 0.005, 0.006, 0.007, 0.008]}
LEVELS = {"si": 90.0, "online-ewc": 85.0, "coresets": 95.0}
SIZES = {"si": 3000, "online-ewc": 2000, "coresets": 5000}


def level(order):
    config = order["config"]
    return LEVELS[config["method"]] + 100 * config["training"]["learning_rate"] + 0.01 * config["seed"] % 0.07


def designs(methods=tuple(LEVELS), **rules):
    given = {"benchmark.tasks": TASKS}
    return [designed("permuted-copy", method, RATES, "smoke", given, **rules) for method in methods]


def rounds(runs, engine, budget, *, constraints=None, made=None, clock=None, left_out=None):
    """A comparison through an engine that pretends."""
    made = made or designs()
    comparison = resumed(runs, asked(made, constraints or Constraints(), left_out or {}, "perdure compare"))

    def search(design, share):
        return Study(design, runs, Crew(engine, place(runs, design.id)), share).run()

    return Rounds(comparison, made, runs, search, budget, engine.width, clock or Clock(budget.hours))


def pretended(**more):
    return Pretend(**({"validation": level, "kept": lambda order: SIZES[order["config"]["method"]]} | more))


def test_without_a_limit_every_method_gets_all_trials_and_seeds(tmp_path):
    one = rounds(tmp_path, pretended(), Budget(trials=5, seeds=3))
    found = one.run()
    assert [len(search.trials) for search in found.values()] == [5, 5, 5]
    assert one.comparison.trials == 5
    ranked = entries(one.comparison, tmp_path)
    assert [each.method for each in ranked] == ["coresets", "si", "online-ewc"]
    assert {each.final.n for each in ranked} == {3}


@pytest.mark.parametrize("hours", [None, 1.0])
def test_a_small_space_leaves_the_others_their_trials(tmp_path, hours):
    """All points of it, and for the others as many as were asked for; in two rounds if there is a limit."""
    few, many = {"training.learning_rate": [0.001, 0.002]}, Budget(trials=7, hours=hours, seeds=1)
    given = {"benchmark.tasks": TASKS}
    spaces = {"online-ewc": few, "si": RATES, "coresets": RATES}
    made = [designed("permuted-copy", name, space, "smoke", given) for name, space in spaces.items()]
    one = rounds(tmp_path, pretended(), many, made=made)
    found = one.run()
    assert {name: len(search.trials) for name, search in found.items()} == {
        "online-ewc": 2,
        "si": 7,
        "coresets": 7,
    }
    assert one.comparison.trials == 7
    best = max(trial.values["training.learning_rate"] for trial in found["si"].trials)
    assert found["si"].values == {"training.learning_rate": best}
    said = "7 trials for each method; online-ewc all 2 points of its space"
    assert said in comparison_section(one.comparison, tmp_path, "c", STYLES, {}).facts
    assert comparison_table(one.comparison, tmp_path).title.endswith(said)
    counts = {row["method"]: row["trials"] for row in comparison_json(one.comparison, tmp_path)["ranking"]}
    assert counts == {"coresets": 7, "si": 7, "online-ewc": 2}
    engine = pretended()
    fewer = rounds(tmp_path, engine, Budget(trials=1, seeds=1), made=made)
    fewer.run()
    assert engine.orders == []
    assert fewer.comparison.trials == 7, "what was done counts"
    all_there_are = rounds(tmp_path, engine, Budget(trials=20, hours=hours, seeds=1), made=made)
    all_there_are.run()
    assert all_there_are.comparison.trials == 8
    assert len([order for order in engine.orders if order["config"]["seed"] >= 1000]) == 2


@pytest.mark.parametrize(("hours", "least", "most"), [(0.12, 2, 5), (0.2, 8, 8), (1.0, 8, 8)])
def test_trials_are_equal_and_the_time_is_kept(tmp_path, monkeypatch, hours, least, most):
    """One method is ten times slower than another; all get the same number of trials, and it ends in time."""
    now = [0.0]
    monkeypatch.setattr("perdure.search.clock.time.monotonic", lambda: now[0])
    times = {"si": 4.0, "online-ewc": 40.0, "coresets": 10.0}

    def slow(order):
        now[0] += times[order["config"]["method"]]
        return level(order)

    engine = pretended(validation=slow, seconds=lambda o: times[o["config"]["method"]], width=1)
    one = rounds(tmp_path, engine, Budget(trials=8, hours=hours, seeds=3))
    found = one.run()
    counts = {len(search.trials) for search in found.values()}
    assert len(found) == 3
    assert counts == {one.comparison.trials}
    assert least <= one.comparison.trials <= most
    assert now[0] <= 3600 * hours
    assert all(search.candidates[0].final is not None for search in found.values())


def test_too_little_time_leaves_methods_out_with_a_reason(tmp_path, monkeypatch):
    now = [0.0]

    def clock():
        now[0] += 0.001
        return now[0]

    monkeypatch.setattr("perdure.search.clock.time.monotonic", clock)

    def slow(order):
        now[0] += 50.0
        return level(order)

    engine = pretended(validation=slow, seconds=lambda order: 50.0, width=1)
    one = rounds(tmp_path, engine, Budget(trials=8, hours=1e-9, seeds=1))
    with pytest.raises(PerdureError, match="No method has a result"):
        one.run()
    assert len(one.comparison.left_out) == 3


def test_a_comparison_goes_on_where_it_was(tmp_path):
    first = pretended()
    rounds(tmp_path, first, Budget(trials=3, seeds=2)).run()
    again = pretended()
    same = rounds(tmp_path, again, Budget(trials=3, seeds=2))
    same.run()
    assert again.orders == []
    more = pretended()
    rounds(tmp_path, more, Budget(trials=5, seeds=2)).run()
    tuned = [order for order in more.orders if order["config"]["seed"] >= 1000]
    assert len(tuned) == 3 * 2
    (stored,), warnings = all_comparisons(tmp_path)
    assert warnings == []
    assert stored.complete
    assert stored.trials == 5


def test_a_method_that_always_fails_is_left_out_with_its_reason(tmp_path):
    def upset(order):
        if order["config"]["method"] == "si":
            return {"fault": "failed", "reason": "the loss became NaN"}
        return None

    one = rounds(tmp_path, pretended(upset=upset), Budget(trials=2, seeds=1))
    assert set(one.run()) == {"online-ewc", "coresets"}
    assert "NaN" in one.comparison.left_out["si"]


def test_memory_limits_what_takes_part(tmp_path):
    """Bytes after the last of three tasks: 6000, 9000 and 15000."""
    engine = pretended()
    one = rounds(tmp_path, engine, Budget(trials=4, seeds=2), constraints=Constraints(memory=10_000))
    one.run()
    assert [each.method for each in entries(one.comparison, tmp_path)] == ["si", "online-ewc"]
    assert "15000 bytes" in one.comparison.left_out["coresets"]
    reported = [
        o for o in engine.orders if o["config"]["method"] == "coresets" and o["config"]["seed"] < 1000
    ]
    assert reported == []


def test_the_best_setting_within_the_memory_is_chosen(tmp_path):
    """The larger the rate, the better and the larger; what the search itself chose is the best of all."""
    (si,), rates = designs(["si"]), RATES["training.learning_rate"]

    def kept(order):
        return round(1e6 * order["config"]["training"]["learning_rate"])

    engine, budget = pretended(kept=kept), Budget(trials=8, seeds=2)
    limit = TASKS * kept({"config": {"training": {"learning_rate": rates[2]}}})
    made = rounds(tmp_path, engine, budget, constraints=Constraints(memory=limit), made=[si])
    found = made.run()["si"]
    assert found.values == {"training.learning_rate": rates[2]}
    (entry,) = entries(made.comparison, tmp_path)
    assert entry.kept[-1] == limit
    assert over_the_limit(made.comparison, tmp_path) == {} == made.comparison.left_out
    assert {each.values["training.learning_rate"] for each in found.trials} == set(rates)
    reported = {o["config"]["training"]["learning_rate"] for o in engine.orders if o["config"]["seed"] < 9}
    assert reported == {rates[2]}, "nothing else was run with reporting seeds"
    stored = find_search(tmp_path, si.id)
    assert stored.values == {"training.learning_rate": rates[-1]}
    noted = [record.searches[si.id]["comparison"] for record in entry.records]
    assert noted == [{"trials": 8, "memory": limit}] * 2
    free = rounds(tmp_path, engine, budget, made=[si])
    assert free.run()["si"].values == stored.values
    again = rounds(tmp_path, pretended(kept=kept), budget, constraints=Constraints(memory=limit), made=[si])
    assert again.run()["si"].values == found.values
    assert find_search(tmp_path, si.id).values == stored.values


def test_answers_under_conditions(tmp_path):
    one = rounds(tmp_path, pretended(), Budget(trials=3, seeds=3))
    one.run()
    ranked = entries(one.comparison, tmp_path)
    found = {each.condition: each for each in answers(ranked, size)}
    no_data = found["no sample of an old task may be stored"]
    assert no_data.entry.method == "si"
    assert no_data.changes
    assert found["the task is not known at test time"].entry is None
    (nine,) = [each for words, each in found.items() if size(9000) in words]
    (six,) = [each for words, each in found.items() if size(6000) in words]
    assert nine.entry.method == "si"
    assert six.entry.method == "online-ewc"
    assert len(found) == 4


def test_the_front_by_hand(tmp_path):
    one = rounds(tmp_path, pretended(test=lambda o: LEVELS[o["config"]["method"]]), Budget(trials=2, seeds=2))
    one.run()
    ranked = entries(one.comparison, tmp_path)
    assert [each.method for each in front(ranked, memory)] == ["online-ewc", "si", "coresets"]
    assert [each.method for each in front(ranked, lambda entry: -memory(entry))] == ["coresets"]


def test_test_numbers_change_neither_order_nor_choice(tmp_path):
    """The same comparison with test numbers that rank the other way round."""
    found = []
    for name, test in (("one", level), ("two", lambda order: 100 - level(order))):
        made = rounds(tmp_path / name, pretended(test=test), Budget(trials=4, seeds=3))
        made.run()
        ranked = entries(made.comparison, tmp_path / name)
        chosen = [(each.method, each.search.chosen, each.validation) for each in ranked]
        said = [(each.condition, each.entry and each.entry.method) for each in answers(ranked, size)]
        found.append((chosen, said))
    assert found[0] == found[1]


def test_only_the_answer_reads_test_numbers_and_never_to_sort():
    folder = Path(perdure.compare.__file__).parent
    for path in folder.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Attribute) and node.attr in {"accuracy", "f1", "error"}:
                assert path.name == "answer.py"
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("sorted", "max", "min"):
                keys = [word.value for word in node.keywords if word.arg == "key"]
                read = {n.attr for key in keys for n in ast.walk(key) if isinstance(n, ast.Attribute)}
                inside = next(
                    f.name
                    for f in ast.walk(ast.parse(path.read_text()))
                    if isinstance(f, ast.FunctionDef) and f.lineno <= node.lineno <= (f.end_lineno or 0)
                )
                assert "final" not in read or inside == "front", (path.name, inside)


def test_differences_are_paired_by_seed(tmp_path):
    """Seeds differ by much, methods by little: only a paired comparison can see it."""

    def test(order):
        config = order["config"]
        return 50 + 7.0 * config["seed"] + {"si": 0.0, "online-ewc": -3.0, "coresets": 0.1}[config["method"]]

    one = rounds(tmp_path, pretended(test=test), Budget(trials=2, seeds=5))
    one.run()
    best, si, ewc = entries(one.comparison, tmp_path)
    assert best.method == "coresets"
    assert best.difference is None
    assert si.difference.mean == pytest.approx(-0.1)
    assert (si.verdict, ewc.verdict) == (TOO_CLOSE, WORSE)
    said = " ".join(conclusion([best, si, ewc]))
    assert "Too close to call against it (less than 1 point apart): si." in said
    assert f"si keeps the least ({size(9000)})" in said
    tied = conclusion([best, replace(si, validation=best.validation), ewc])
    assert tied[0].startswith("coresets and si are the best by validation accuracy")
    assert tied[1] == "Of equally good ones, coresets keeps no more than the others."


def test_signs_of_differences():
    spread = np.array([-0.1, 0.0, 0.1, 0.05, -0.05])
    assert paired_verdict(number((5 + spread).tolist())) == BETTER
    assert paired_verdict(number((-5 + spread).tolist())) == WORSE
    assert paired_verdict(number((0.2 + spread).tolist())) == TOO_CLOSE
    assert paired_verdict(number((0.2 + 100 * spread).tolist())) == NOT_DECIDED
    assert paired_verdict(number([3.0])) == NOT_DECIDED


SHAPE = TaskShape(3, (3, 3, 3))


@pytest.mark.parametrize(
    ("method", "options", "stored", "task"),
    [
        ("si", {}, False, True),
        ("si", {"network.heads": "single"}, False, False),
        ("si", {"network.heads": "single", "network.task_identity": True}, False, True),
        ("coresets", {"network.heads": "single"}, True, False),
        ("multitask", {"network.heads": "single"}, True, False),
        ("masking", {"network.heads": "single"}, False, True),
        ("hnet", {"network.heads": "single"}, False, True),
        ("from-scratch", {"network.heads": "single"}, False, True),
        ("rtf", {"network.heads": "single"}, False, False),
        ("hnet+coresets", {}, True, True),
    ],
)
def test_demands_of_methods(method, options, stored, task):
    config = build("permuted-copy", method, scale="smoke", **options)
    assert demands(config, Problem("permuted-copy", method, "smoke", options).shape) == (stored, task)


@pytest.mark.parametrize(
    ("text", "count"), [("1MB", 10**6), ("500 kB", 500_000), ("1.5MiB", 1572864), ("20", 20)]
)
def test_sizes_are_read(text, count):
    assert bytes_of(text) == count


@pytest.mark.parametrize("text", ["", "many", "0", "-1MB", "3 parsecs"])
def test_sizes_that_are_none_are_refused(text):
    with pytest.raises(PerdureError, match="--memory: write a number of bytes"):
        bytes_of(text)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "needs a BENCHMARK"),
        (["permuted-copy", "si"], "methods are named by --methods si"),
        (["permuted-copy", "--method", "si"], "did you mean"),
        (["permuted-copy", "--methods", "sy"], "'sy'"),
        (["permuted-copy", "--methods", "coresets", "--no-stored-data"], "it stores samples of old tasks"),
        (["permuted-copy", "--methods", "hnet", "--task-unknown"], "must be told the task"),
        (["permuted-copy", "--memory", "much"], "such as 500kB or 1MB"),
        (["permuted-copy", "--hours", "0"], "--hours must be a number above 0"),
        (["permuted-copy", "--out", "page.pdf"], "must end in .html"),
        (["permuted-copy", "--out", "/proc/page.html"], "Cannot write to '/proc'"),
    ],
)
def test_mistakes_are_told_in_a_sentence(words, said, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    scale = ["--scale", "smoke"] if words else []
    assert main(["compare", *words, *scale]) == 2
    err = capsys.readouterr().err
    assert said in err
    assert err.count("\n") == 1
    assert not (tmp_path / "runs").exists()


def own_data(folder):
    """Three tasks in tables, as docs/own-data.md describes them."""
    source = np.random.default_rng(0)
    folder.mkdir()
    for name in ("first", "second", "third"):
        centre = source.normal(size=(2, 2))
        lines = ["sequence,x,y,label"]
        for number_ in range(40):
            for _ in range(source.integers(2, 5)):
                values = centre[number_ % 2] + 0.3 * source.normal(size=2)
                lines.append(f"s{number_},{values[0]:.3f},{values[1]:.3f},{'up' if number_ % 2 else 'down'}")
        (folder / f"{name}.csv").write_text("\n".join(lines) + "\n")


def test_own_data_from_the_command_line(tmp_path, monkeypatch, capsys):
    """A real comparison of two methods, its page, its table, and the report that holds it as well."""
    monkeypatch.chdir(tmp_path)
    own_data(tmp_path / "mine")
    words = ["--benchmark.folder", "mine", "--methods", "si,coresets", "--trials", "2", "--seeds", "2"]
    words += ["--scale", "smoke", "--training.iterations", "10", "--workers", "1", "--hours", "1"]
    assert main(["compare", *words, "--out", "page.html"]) == 0
    out = capsys.readouterr().out
    assert "2 trials for each method" in out
    assert "To train it: perdure run arrays" in out
    text = (tmp_path / "page.html").read_text()
    for part in ("Which method for mine?", "What would change the answer", "Accuracy against memory"):
        assert part in text
    assert main(["compare", *words, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["trials"] == 2
    assert {row["method"] for row in found["ranking"]} == {"si", "coresets"}
    assert all(len(row["kept_bytes"]) == 3 for row in found["ranking"])
    assert main(["report"]) == 0
    assert "Which method for mine?" in (tmp_path / "runs" / "report.html").read_text()
    records, _ = all_records(tmp_path / "runs")
    assert {record.seed for record in records} == {0, 1}


def test_the_section_has_all_that_was_left_out(tmp_path):
    made = designs(["si", "online-ewc"])
    one = rounds(tmp_path, pretended(), Budget(trials=2, seeds=2), made=made, left_out={"hnet": "told"})
    one.run()
    styles = {method: "method-0" for method in LEVELS}
    section = comparison_section(one.comparison, tmp_path, "c", styles, {})
    assert section.left_out == [("hnet", "told")]
    assert [row.method for row in section.rows] == ["si", "online-ewc"]
    assert section.command.startswith("perdure run permuted-copy si")
    assert "Left out: hnet: told." in comparison_lines(one.comparison, tmp_path)
    assert comparison_json(one.comparison, tmp_path)["left_out"] == {"hnet": "told"}
    assert find_search(tmp_path, made[0].id).complete


@pytest.mark.parametrize(("hours", "free"), [(0.1, 18.0), (2.0, 30.0), (None, None)])
def test_a_limit_includes_stopping_and_the_page(hours, free, monkeypatch):
    monkeypatch.setattr("perdure.search.clock.time.monotonic", lambda: 1100.0)
    clock = Clock(hours, earlier=20.0, begun=1000.0)
    assert clock.left == (math.inf if hours is None else pytest.approx(3600 * hours - 120.0 - free))


def test_a_smaller_budget_takes_nothing_from_searches(tmp_path):
    """Two trials are there for all methods, eight for one: what is asked for is one, what is compared two."""
    rounds(tmp_path, pretended(), Budget(trials=2, seeds=2)).run()
    (si,) = designs(["si"])
    wide = Study(si, tmp_path, Crew(pretended(), place(tmp_path, si.id)), Budget(trials=8, seeds=3)).run()
    engine, said = pretended(), []
    one = rounds(tmp_path, engine, Budget(trials=1, seeds=1))
    one.say, one.comparison.command = said.append, "perdure compare --trials 1"
    found = one.run()
    assert one.comparison.command == "perdure compare", "that made the two trials"
    assert engine.orders == []
    assert {len(search.trials) for search in found.values()} == {2} == {one.comparison.trials}
    assert len(said) == 1
    assert "2 trials and 2 reporting seeds" in said[0]
    stored = find_search(tmp_path, si.id)
    assert len(stored.trials) == 8
    assert stored.values == wide.values
    assert stored.complete


def test_time_that_was_up_before_leaves_all_trials(tmp_path, monkeypatch):
    now = [0.0]
    monkeypatch.setattr("perdure.search.clock.time.monotonic", lambda: now[0])

    def slow(order):
        now[0] += 20.0
        return level(order)

    counts = []
    for _ in range(2):
        engine = pretended(validation=slow, seconds=lambda order: 20.0, width=1)
        one = rounds(tmp_path, engine, Budget(trials=8, hours=0.2, seeds=2))
        one.clock.earlier = one.comparison.seconds
        one.run()
        counts.append(one.comparison.trials)
    assert counts[0] == counts[1] > 1


STYLES = {method: "method-0" for method in LEVELS}


def told(runs):
    """The comparisons of a folder as its page shows them."""
    found, warnings = all_comparisons(runs)
    assert warnings == []
    return [(one.complete, comparison_section(one, runs, "c", STYLES, {})) for one in found]


def test_later_searches_do_not_change_a_finished_comparison(tmp_path):
    """A larger search chooses another setting, and one is lost; the answer stays what it was."""
    one = rounds(tmp_path, pretended(), Budget(trials=2, seeds=2))
    one.run()
    before = told(tmp_path)
    assert len(before[0][1].rows) == 3
    si, ewc, _ = one.designs
    chosen = find_search(tmp_path, si.id).values
    Study(si, tmp_path, Crew(pretended(), place(tmp_path, si.id)), Budget(trials=8, seeds=3)).run()
    assert find_search(tmp_path, si.id).values != chosen
    (place(tmp_path, ewc.id) / "search.json").unlink()
    assert told(tmp_path) == before
    (stored,), _ = all_comparisons(tmp_path)
    assert stored.concluded["si"].search.values == chosen
    assert [each.final.n for each in entries(stored, tmp_path)] == [2, 2, 2]


def test_a_comparison_that_is_refused_leaves_the_first_as_it_was(tmp_path):
    rounds(tmp_path, pretended(), Budget(trials=2, seeds=2)).run()
    before = told(tmp_path)
    with pytest.raises(PerdureError, match="No method has a result"):
        rounds(tmp_path, pretended(), Budget(trials=2, seeds=2), constraints=Constraints(memory=1)).run()
    found, _ = all_comparisons(tmp_path)
    (first,) = [each for each in found if each.constraints.memory is None]
    assert comparison_section(first, tmp_path, "c", STYLES, {}) == before[0][1]
    (refused,) = [each for each in found if each.constraints.memory == 1]
    said = no_result(refused, tmp_path)
    assert "has no result" in said
    assert "at most 1 are allowed" in said
    page = make_report(tmp_path).read_text()
    assert page.count("Which method for permuted-copy?") >= 1
    assert f"Comparison {refused.id}" in page


def test_an_interruption_leaves_the_answer_of_a_finished_comparison(tmp_path):
    class Killed(BaseException):
        pass

    def upset(order):
        if order["config"]["method"] == "coresets":
            raise Killed

    rounds(tmp_path, pretended(), Budget(trials=2, seeds=2)).run()
    before = told(tmp_path)
    with pytest.raises(Killed):
        rounds(tmp_path, pretended(upset=upset), Budget(trials=4, seeds=2)).run()
    (after,) = told(tmp_path)
    assert after[0]
    assert after[1].rows == before[0][1].rows
    assert "2 trials for each method" in after[1].facts


def test_records_that_are_missing_are_named(tmp_path):
    one = rounds(tmp_path, pretended(), Budget(trials=2, seeds=3))
    one.run()
    (stored,), _ = all_comparisons(tmp_path)
    gone = {"si": 1, "coresets": 3}
    for method, count in gone.items():
        search = stored.concluded[method].search
        (hashes,) = [each.hashes for each in search.candidates if each.trial == search.chosen]
        for name in hashes[:count]:
            (tmp_path / name / "record.json").unlink()
    ((complete, section),) = told(tmp_path)
    assert complete
    assert [row.method for row in section.rows] == ["si", "online-ewc"]
    assert dict(section.missing) == {
        "si": "1 of its 3 runs with reporting seeds is missing",
        "coresets": "3 of its 3 runs with reporting seeds are missing",
    }
    assert "Missing: <b>si</b>, 1 of its 3 runs" in make_report(tmp_path).read_text()
    assert "Missing: coresets: 3 of its 3 runs with reporting seeds are missing." in comparison_lines(
        stored, tmp_path
    )


def test_comparisons_of_earlier_versions_are_read_from_their_searches(tmp_path):
    one = rounds(tmp_path, pretended(), Budget(trials=2, seeds=2))
    one.run()
    before = told(tmp_path)
    path = tmp_path / "comparisons" / one.comparison.id / "comparison.json"
    data = json.loads(path.read_text())
    assert set(data.pop("concluded")) == set(LEVELS)
    path.write_text(json.dumps(data))
    assert told(tmp_path) == before
    (place(tmp_path, one.comparison.searches["si"]) / "search.json").unlink()
    ((_, section),) = told(tmp_path)
    assert [row.method for row in section.rows] == ["coresets", "online-ewc"]
    assert section.missing == [("si", "its search is missing")]


def test_a_conclusion_that_is_damaged_is_named(tmp_path):
    one = rounds(tmp_path, pretended(), Budget(trials=2, seeds=2))
    one.run()
    path = tmp_path / "comparisons" / one.comparison.id / "comparison.json"
    data, whole = (json.loads(path.read_text()) for _ in range(2))
    del data["concluded"]["si"]["search"]["trials"]
    path.write_text(json.dumps(data))
    found, warnings = all_comparisons(tmp_path)
    assert found == []
    assert "cannot be used" in warnings[0]
    path.write_text(json.dumps({name: value for name, value in whole.items() if name != "id"}))
    found, warnings = all_comparisons(tmp_path)
    assert found == []
    assert "'id'" in warnings[0]


def test_the_comparison_itself_looks_at_equal_budgets(tmp_path):
    """One search has more trials and seeds than the others; what is compared is equal."""
    (si,) = designs(["si"])
    Study(si, tmp_path, Crew(pretended(), place(tmp_path, si.id)), Budget(trials=8, seeds=4)).run()
    one = rounds(tmp_path, pretended(), Budget(trials=2, seeds=2))
    one.run()
    found = entries(one.comparison, tmp_path)
    assert {each.final.n for each in found} == {2}
    assert {len(each.search.trials) for each in found} == {2}


def test_settings_that_keep_more_with_reporting_seeds_are_told_in_a_sentence(tmp_path, monkeypatch, capsys):
    """With tuning seeds they fit into the limit, as those of methods may that keep what they find."""
    monkeypatch.chdir(tmp_path)
    engine = pretended(kept=lambda order: 1 if order["config"]["seed"] >= 1000 else 9)
    monkeypatch.setattr("perdure.commands.executing.engine_of", lambda options, runs, workers: engine)
    (tmp_path / "space.toml").write_text("[all]\ntraining.learning_rate = [0.001, 0.005]\n")
    words = ["permuted-copy", "--methods", "si", "--scale", "smoke", "--space", "space.toml"]
    words += ["--memory", "10B", "--benchmark.tasks", str(TASKS), "--seeds", "1"]
    assert main(["compare", *words]) == 2
    assert "si: its chosen setting keeps 27 B" in capsys.readouterr().err


def test_each_trial_is_told_once_and_counts_are_in_words(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    engine = pretended()
    monkeypatch.setattr("perdure.commands.executing.engine_of", lambda options, runs, workers: engine)
    (tmp_path / "space.toml").write_text("[all]\ntraining.learning_rate = [0.001, 0.005, 0.006]\n")
    words = ["permuted-copy", "--methods", "si,online-ewc", "--scale", "smoke", "--space", "space.toml"]
    words += ["--benchmark.tasks", str(TASKS), "--seeds", "1"]
    for trials in (1, 3):
        assert main(["compare", *words, "--trials", str(trials), "--out", "page.html"]) == 0
        out, err = capsys.readouterr()
        for method in ("si", "online-ewc"):
            for number_ in range(1, trials + 1):
                assert err.count(f"{method} trial {number_}: validation final") == 1
            assert err.count(f"permuted-copy {method}: at most") == 1
            assert len(re.findall(rf"{method} trial \d with reporting seeds", err)) == 1
        shown = out + err + (tmp_path / "page.html").read_text()
        assert ("1 trial for each method" if trials == 1 else "3 trials for each method") in shown
        assert "1 reporting seed<" in shown
        assert not re.findall(r"\b1 (?:trials|reporting seeds)\b", shown)


def test_rounds_tell_each_trial_once(tmp_path, monkeypatch, capsys):
    """With a time limit there are several rounds."""
    monkeypatch.chdir(tmp_path)
    engine = pretended(width=2)
    monkeypatch.setattr("perdure.commands.executing.engine_of", lambda options, runs, workers: engine)
    (tmp_path / "space.toml").write_text(
        f"[all]\ntraining.learning_rate = {RATES['training.learning_rate']}\n"
    )
    words = ["permuted-copy", "--methods", "si", "--scale", "smoke", "--space", "space.toml", "--hours", "1"]
    words += ["--benchmark.tasks", str(TASKS), "--seeds", "2"]
    assert main(["compare", *words, "--trials", "8"]) == 0
    err = capsys.readouterr().err
    assert sorted(re.findall(r"si trial (\d): validation final", err)) == list("12345678")
