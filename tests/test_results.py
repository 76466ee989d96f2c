"""Committed results: records become tables again without a run, and the page in docs/ is current."""

from __future__ import annotations

import html
import json
from dataclasses import replace
from pathlib import Path

import pytest

from perdure.analysis.statistics import number
from perdure.cli import main
from perdure.files import write_json
from perdure.paper import committed
from perdure.paper.claims import THEMES, Theme
from perdure.paper.committed import compact, kept_findings
from perdure.paper.conclusions import Claim, asked, conclusions_of, difference
from perdure.paper.findings import WEAKER, Conclusion, Findings, TableCell, in_paper
from perdure.paper.item import FinishedRuns, items
from perdure.paper.lacking import ESTIMATES, Lacking, _lacking, estimate_missing, missing
from perdure.paper.results import evaluate, keep
from perdure.report.item_page import _answers, item_pages
from perdure.report.notes import Notes
from perdure.report.page import page
from perdure.report.results_text import _overview, _section, results_text
from perdure.report.tables import findings_table
from perdure.search.state import all_searches
from perdure.search.study import Budget
from perdure.storage.store import RunFolder, all_records
from report_samples import record as sample
from search_samples import SPACE, Pretend, study

ROOT = Path(__file__).parent.parent
CONTRASTED = {"high": (90.0, 90.1, 89.9), "low": (80.0, 80.0, 80.0), "odd": (60.0, 99.0, 85.0)}
NUMBERS = {"HNET": 99.9, "Online EWC": 98.7, "SI": 94.0, "Fine-tuning": 66.0}


def made(setting, scale, seed, final):
    """A record of a setting that was never run."""
    config = setting.config(scale, seed)
    base = sample(setting.method, seed, benchmark=setting.benchmark)
    tasks = len(base.tasks)
    long = [[{"iteration": float(k), "val accuracy": 50 + k / 7} for k in range(100)]] * tasks
    accuracy = [*([99.9] * tasks for _ in range(tasks - 1)), [final] * tasks]
    during = (99.9 * (tasks - 1) + final) / tasks
    known = {"hash": config.hash, "config": config.json, "accuracy": accuracy, "curves": long}
    return replace(base, final=final, during=during, **known)


@pytest.fixture
def runs(tmp_path):
    """A folder of runs with a part of Table 1 at laptop scale, and a run that no item needs."""
    folder = tmp_path / "runs"
    item = items()["table-1"]
    for setting in item.settings("laptop"):
        for seed in range(3 if setting.label != "SI" else 2):
            if setting.label in NUMBERS:
                record = made(setting, "laptop", seed, NUMBERS[setting.label] + 0.05 * seed)
                write_json(folder / record.hash / "record.json", record.json)
    other = sample("si", 77)
    write_json(folder / other.hash / "record.json", other.json)
    return folder


def test_records_are_collected_without_what_no_item_needs(runs, tmp_path, capsys):
    results = tmp_path / "results"
    assert main(["results", "collect", str(runs), "--results", str(results)]) == 0
    assert "11 new records" in capsys.readouterr().out
    before, after = ({r.hash: r for r in all_records(folder)[0]} for folder in (runs, results))
    assert len(after) == 11
    for name, record in after.items():
        assert replace(record, curves=[]) == replace(before[name], curves=[])
        assert sum(len(curve) for curve in record.curves) <= committed.POINTS
        assert record.curves[0][-1]["iteration"] == 99.0
    assert max(path.stat().st_size for path in results.glob("*/record.json")) < 20_000


def test_a_record_that_is_there_keeps_its_times_until_its_numbers_change(runs, tmp_path):
    results = tmp_path / "results"
    assert committed.collect(runs, results).records == 11
    before = {record.hash: record for record in all_records(results)[0]}
    first, second, *_ = sorted(before)
    for path in runs.glob("*/record.json"):
        record = json.loads(path.read_text())
        busy = {"seconds": 2 * record["seconds"], "machine": record["machine"] | {"kernels": "others"}}
        write_json(path, record | busy)
    path = runs / second / "record.json"
    record = json.loads(path.read_text())
    write_json(path, record | {"untrained": [3.0] * len(record["tasks"])})
    assert committed.collect(runs, results).records == 1
    after = {record.hash: record for record in all_records(results)[0]}
    assert after[first] == before[first]
    assert after[second].untrained[0] == 3.0
    assert after[second].seconds == 2 * before[second].seconds


def test_what_searches_note_in_a_record_is_brought_up_to_date_alone(tmp_path):
    """Its times stay, and so does what a search noted that is not among these runs."""
    runs, results = tmp_path / "runs", tmp_path / "results"
    search = study(runs, Pretend(), Budget(trials=2, seeds=1), scale="laptop").run()
    assert committed.collect(runs, results).records == 1
    (name,) = search.reported
    folders = [RunFolder(folder, name) for folder in (runs, results)]
    before = folders[1].finished()
    assert before.searches == {search.id: search.note}
    write_json(runs / name / "record.json", folders[0].finished().json | {"seconds": 99.0, "searches": {}})
    folders[0].note_search(folders[0].finished(), "a new one", {"trial": 1})
    folders[1].note_search(before, "elsewhere", {"trial": 2})
    assert committed.collect(runs, results).records == 1
    noted = {"elsewhere": {"trial": 2}, "a new one": {"trial": 1}}
    assert folders[1].finished() == replace(before, searches=noted)
    assert committed.collect(runs, results).records == 0


def test_records_of_many_tasks_stay_small_and_keep_what_their_means_are_of():
    base = sample("si", 0)
    tasks = 30
    accuracy = [[50 + 0.123 * task + 0.01 * phase for task in range(tasks)] for phase in range(tasks)]
    whole = replace(
        base, tasks=[f"task {n}" for n in range(tasks)], accuracy=accuracy, f1=accuracy, validation=accuracy
    )
    small = compact(whole)
    assert small.accuracy[-1] == accuracy[-1]
    assert [small.accuracy[n][n] for n in range(tasks)] == [accuracy[n][n] for n in range(tasks)]
    assert small.accuracy[3][7] == round(accuracy[3][7]) != accuracy[3][7]
    assert (small.f1, small.validation) == ([], [])
    assert compact(small) == small
    few = replace(whole, tasks=whole.tasks[:20])
    assert compact(few).accuracy == few.accuracy


def test_tables_come_back_from_records_alone(runs, tmp_path):
    results = tmp_path / "results"
    committed.collect(runs, results)
    (found,) = [one for one in kept_findings(results) if one.name == "table-1"]
    finals = {cell.row: cell for cell in found.cells if cell.column == "final"}
    assert set(finals) == set(NUMBERS)
    assert finals["HNET"].ours.mean == pytest.approx(99.95)
    assert (finals["HNET"].ours.n, finals["SI"].ours.n) == (3, 2)
    assert "--seeds 2" in finals["SI"].command
    assert finals["HNET"].verdict == "agrees"
    verdicts = {each.paper: each.verdict for each in found.conclusions}
    assert verdicts["The paper finds that HNET is better than Online EWC."] == "supported"
    assert verdicts["The paper finds that Online EWC is better than SI."] == "not decided"  # two seeds


def test_the_page_says_what_is_there_and_what_is_missing(runs, tmp_path, capsys):
    results, docs = tmp_path / "results", tmp_path / "docs"
    committed.collect(runs, results)
    (results / "notes").mkdir()
    (results / "notes" / "table-1.md").write_text("Tried: nothing.\n")
    assert main(["results", "write", "--results", str(results), "--docs", str(docs)]) == 0
    text = (docs / "results.md").read_text()
    (line,) = [line for line in text.splitlines() if line.startswith("| HNET |")]
    assert line.split(" | ")[4:] == ["99.95 ± 0.03 (3)", "99.83 to 100.07", "99.96 ± 0.01 (10)", "agrees |"]
    agreed = "| table-1 | laptop | 2 to 3 | 4 | 0 | 2 | 2 | 2 | 0 | 0 | 2 | 39 |"
    assert agreed in text
    assert "Tried: nothing." in text
    assert "3. **HNET is the best method without samples of old tasks.** Of 15 findings" in text
    assert "1. **Weight-importance methods lose accuracy as working memory grows.** No item" in text
    lacking = {(each.name, each.scale): each for each in missing(results)}
    # Five seeds of ten methods, 11 of which are there; the time of six methods is unknown.
    assert lacking["table-1", "laptop"] == Lacking("table-1", "laptop", 50, 39, None)
    assert "| table-1 | laptop | 39 of 50 | unknown |" in text
    assert "table-1 (100 runs, unknown)" in text  # at paper scale nothing was run
    assert results_text(results, kept_findings(results)) == text
    assert (docs / "report.html").exists()
    assert main(["report", "--runs", str(results), "--out", str(tmp_path / "page.html")]) == 0
    assert "Permuted Copy Task, all methods" in (tmp_path / "page.html").read_text()
    assert main(["show", "--runs", str(results)]) == 0


def test_hours_of_what_was_never_run_are_estimated_once(runs, tmp_path, monkeypatch):
    """Seconds of finished seeds where there are some, else 100 s: those of six methods of Table 1."""
    results, asked = tmp_path / "results", []
    committed.collect(runs, results)
    only = {"table-1": items()["table-1"]}
    monkeypatch.setattr("perdure.paper.lacking.items", lambda: only)

    def measured(work):
        asked.extend(work.configs)
        return {config.hash: 100.0 for config in work.configs}

    monkeypatch.setattr("perdure.paper.lacking.estimate", measured)
    assert estimate_missing(results, lambda text: None) == 16
    assert {config.seed for config in asked} == {0}
    assert estimate_missing(results, lambda text: None) == 16
    assert len(asked) == 16  # six methods at laptop scale, ten at paper scale
    assert estimate_missing(results, lambda text: None, ["table-2"]) == 16  # those of others stay
    laptop = next(each for each in missing(results) if each.scale == "laptop")
    spent = {"hnet": [], "online-ewc": [], "si": [], "fine-tuning": []}
    for record in all_records(results)[0]:
        spent[record.method].append(record.seconds)
    seconds = sum((5 - len(each)) * sum(each) / len(each) for each in spent.values()) + 6 * 5 * 100.0
    assert laptop.hours == pytest.approx(seconds / 3600)
    (results / ESTIMATES).unlink()
    assert next(each for each in missing(results) if each.scale == "laptop").hours is None


def test_a_page_of_its_own_answers_what_was_asked():
    """Answers first, then what is open; a verdict is a yes or no, with the contrast that it rests on."""
    cells = [TableCell(row, "final", number(values), values=values) for row, values in CONTRASTED.items()]
    asked_here = [
        asked(difference("the high ones are higher", "high", "low")),
        asked(difference("the low ones are higher", "low", "high")),
        asked(difference("the odd ones are higher", "odd", "low")),
    ]
    lines = _answers(conclusions_of(asked_here, cells))
    assert lines[0] == "**What was found**"
    assert lines[2].startswith(
        "- The high ones are higher. Yes. Ours: high minus low (final accuracy), +10.00"
    )
    assert lines[3].startswith("- The low ones are higher. No. Ours: ")
    assert lines[5] == "**What was not decided**"
    assert lines[7].startswith("- The odd ones are higher. Not decided (")


def test_an_old_copy_does_not_replace_a_record_of_newer_arithmetic(tmp_path):
    """Of three copies of one run, without digits, with 2 and with 3, the newest stays whatever came last."""
    runs, results = tmp_path / "runs", tmp_path / "results"
    setting, collected = items()["table-1"].settings("laptop")[3], []
    for final, more in ((80.0, {}), (81.0, {"digits": "2"}), (80.0, {}), (82.0, {"digits": "3"})):
        record = made(setting, "laptop", 0, final)
        machine = {name: value for name, value in record.machine.items() if name != "digits"}
        copy = replace(record, machine=machine | more)
        write_json(runs / record.hash / "record.json", copy.json)
        committed.collect(runs, results)
        collected.append(all_records(results)[0][0].final)
    assert collected == [80.0, 81.0, 81.0, 82.0]


def test_runs_of_tuning_seeds_are_not_collected(tmp_path):
    """The same settings with seeds of a search, or beyond those that are reported."""
    setting = items()["table-1"].settings("laptop")[3]
    runs, results = tmp_path / "runs", tmp_path / "results"
    for seed in (0, 9, 10, 1001):
        record = made(setting, "laptop", seed, 99.0)
        write_json(runs / record.hash / "record.json", record.json)
    assert committed.collect(runs, results) == (2, 0, 0)
    assert {record.seed for record in all_records(results)[0]} == {0, 9}


def test_what_nothing_needs_any_more_is_removed(runs, tmp_path, capsys):
    """A record of settings that no item has, and not those behind tables or searches."""
    results = tmp_path / "results"
    committed.collect(runs, results)
    search = study(tmp_path / "searched", Pretend(), scale="laptop").run()
    committed.collect(tmp_path / "searched", results)
    kept = {record.hash for record in all_records(results)[0]}
    stale = sample("si", 77)
    write_json(results / stale.hash / "record.json", stale.json)
    assert main(["results", "prune", "--results", str(results)]) == 0
    assert capsys.readouterr().out == f"1 record removed from '{results}': {stale.hash}\n"
    assert {record.hash for record in all_records(results)[0]} == kept
    assert [each.id for each in all_searches(results)[0]] == [search.id]
    assert committed.prune(results) == []


@pytest.mark.parametrize(
    "name", ["findings/table-1-laptop.json", "searches/0123456789ab/search.json", "x/record.json"]
)
def test_nothing_is_pruned_while_something_cannot_be_read(name, runs, tmp_path, capsys):
    """What a damaged file needs is not known; collecting says that it was left out."""
    results = tmp_path / "results"
    committed.collect(runs, results)
    stale = sample("si", 77)
    write_json(results / stale.hash / "record.json", stale.json)
    for folder in (results, runs):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("{")
    assert main(["results", "prune", "--results", str(results)]) == 2
    said = capsys.readouterr().err
    assert "nothing is removed" in said
    assert Path(name).parent.name in said
    assert (results / stale.hash / "record.json").exists()
    assert main(["results", "collect", str(runs), "--results", str(results)]) == 0
    assert Path(name).parent.name in capsys.readouterr().err
    (results / name).unlink()
    assert main(["results", "prune", "--results", str(results)]) == 0
    assert not (results / stale.hash).exists()


def test_searches_are_collected_with_the_runs_of_their_choice(tmp_path):
    runs, results = tmp_path / "runs", tmp_path / "results"
    search = study(runs, Pretend(test=lambda order: 81.25), scale="laptop").run()
    study(runs, Pretend()).run()  # at smoke scale, which says nothing
    assert committed.collect(runs, results) == (2, 0, 1)
    (kept,), _ = all_searches(results)
    assert kept == search
    text = results_text(results, kept_findings(results))
    chosen = search.values
    row = next(line for line in text.splitlines() if line.startswith("| si | 8 |"))
    assert f"{chosen['penalties.si.strength']:g}" in row
    assert "| 81.25 ± 0.00 (2) |" in row
    assert row.endswith(f"| {search.id} |")


def test_a_search_without_reporting_seeds_has_a_dash_for_them(tmp_path):
    search = study(tmp_path, Pretend(), Budget(trials=4, seeds=0), scale="laptop").run()
    row = next(
        line
        for line in results_text(tmp_path, kept_findings(tmp_path)).splitlines()
        if line.startswith("| si | 4 |")
    )
    assert row.split(" | ")[3] == "\u2013"
    assert row.endswith(f"| {search.id} |")


def test_searches_with_other_options_held_have_tables_of_their_own(tmp_path):
    """Within a table, the best by validation accuracy comes first."""
    worse = {"training.learning_rate": [1e-4], "penalties.si.strength": [1.0]}
    few = study(tmp_path, Pretend(), scale="laptop", tasks=3).run()
    many = [study(tmp_path, Pretend(), scale="laptop", tasks=4, space=one).run() for one in (worse, SPACE)]
    lines = results_text(tmp_path, kept_findings(tmp_path)).splitlines()
    found = {line: [] for line in lines if line.startswith("### ")}
    heading = ""
    for line in lines:
        heading = line if line in found else heading
        if line.startswith("| si |"):
            found[heading].append(line.split(" | ")[-1].removesuffix(" |"))
    assert found == {
        "### permuted-copy, benchmark.tasks 3, scale laptop": [few.id],
        "### permuted-copy, benchmark.tasks 4, scale laptop": [many[1].id, many[0].id],
    }


def test_large_hypernetworks_are_named_in_every_table(tmp_path):
    """In the cells, on the page, in the terminal's table and in the report."""
    setting = items()["table-1"].settings("laptop")[3]
    sizes = {"network": 100, "trained": 285, "generated network": 100, "generating network": 285}
    record = replace(made(setting, "laptop", 0, 99.0), parameters=sizes)
    write_json(tmp_path / record.hash / "record.json", record.json)
    (found,) = [one for one in kept_findings(tmp_path) if one.name == "table-1"]
    said = "hypernetwork larger than its network x 2.85"
    assert {cell.remark for cell in found.cells} == {said}
    assert f"| HNET ({said}) |" in results_text(tmp_path, kept_findings(tmp_path))
    assert f"HNET ({said})" in [row[0].text for row in findings_table(found).rows]
    assert f"HNET ({said})" in html.unescape(page([], [found], "Page"))


def test_findings_that_need_weights_are_kept_as_they_were(tmp_path):
    item = items()["theory"]
    runs, results = tmp_path / "runs", tmp_path / "results"
    keep(*evaluate("theory", item, FinishedRuns("laptop", 3, runs, {})), runs)
    committed.collect(runs, results)
    (found,) = kept_findings(results)
    assert found.name == "theory"
    assert [each.verdict for each in found.conclusions] == ["supported"] * 3


def test_kept_numbers_are_judged_by_todays_rules(tmp_path):
    """An old verdict, title and wrong sentence go; the numbers and how they were made stay."""
    item = items()["theory"]
    runs, results = tmp_path / "runs", tmp_path / "results"
    found, drawn = evaluate("theory", item, FinishedRuns("laptop", 3, runs, {}))
    wrong = [replace(each, verdict="contradicted", ours="Ours: old.") for each in found.conclusions]
    keep(replace(found, title="Old", differs="As it was.", conclusions=wrong), drawn, runs)
    committed.collect(runs, results)
    (one,) = kept_findings(results)
    assert (one.conclusions, one.cells, one.title) == (found.conclusions, found.cells, item.title)
    assert one.differs == "As it was."


def test_questions_of_our_own_are_listed_apart_and_count_for_nothing(tmp_path):
    cell = TableCell("A", "final", number([1.0, 1.1, 0.9]), values=(1.0, 1.1, 0.9))
    paper = Claim("it is more", "it", ((1.0, "A", "final"),), "more", margin=0.1)
    both = [claim.judged([cell]) for claim in (paper, asked(paper))]
    assert [each.of_the_paper for each in both] == [True, False]
    one = Findings("x", "X", "", "", "laptop", "", "", cells=[cell], conclusions=both)
    text = _section(one, Notes(tmp_path, []))
    assert text.index("As the paper finds:") < text.index("Questions of our own:") < text.index("Asked here:")
    assert text.count("The paper finds that it is more.") == text.count("Asked here: it is more.") == 1
    assert "| 1 | 0 | 0 | 0 | none |" in _overview([one], [])
    mixed, ours = (page([], [each], "t") for each in (one, replace(one, conclusions=both[1:])))
    assert "<h4>What the paper finds, and what ours show</h4>" in mixed
    assert "<h4>Questions of our own</h4>" in ours


@pytest.mark.parametrize("name", ["dsa", "newer-methods", "plasticity", "recurrences"])
def test_what_the_paper_does_not_have_cannot_differ_from_it(name, tmp_path):
    item = items()[name]
    assert not in_paper(item.source)
    one = Findings(name, "X", item.source, "", "laptop", item.differs("laptop"), "")
    for text in (_section(one, Notes(tmp_path, [])), html.unescape(page([], [one], "t"))):
        assert "How it was run" in text
        assert "iffers from the paper" not in text
        assert "than in the paper" not in text
        assert "In the paper:" not in text


def test_nothing_is_missing_at_a_scale_that_an_item_does_not_have(runs, tmp_path):
    """Its rows of the paper's methods may have records there; that is no result of the item."""
    results = tmp_path / "results"
    committed.collect(runs, results)
    scales = {name: item.scales for name, item in items().items()}
    assert "paper" not in scales["newer-methods"]
    lacking = missing(results)
    assert ("newer-methods", "laptop") in {(each.name, each.scale) for each in lacking}
    assert all(each.scale in scales[each.name] for each in lacking)
    assert all(one.scale in scales[one.name] for one in kept_findings(results))


def test_why_a_claim_differs_stands_below_it(runs, tmp_path):
    results = tmp_path / "results"
    committed.collect(runs, results)
    (results / "notes").mkdir()
    (results / "notes" / "claim-3.md").write_text("Because of the weather.\n")
    after = (
        results_text(results, kept_findings(results))
        .partition("3. **HNET is the best")[2]
        .partition("\n4. **")[0]
    )
    assert "Because of the weather." in after


def test_damage_and_mistakes_get_a_sentence(tmp_path, capsys):
    assert main(["results", "collect"]) == 2
    assert main(["results", "collect", str(tmp_path / "none")]) == 2
    assert main(["results", "wrtie"]) == 2
    assert main(["results", "write", "--results", str(tmp_path / "none")]) == 2
    assert capsys.readouterr().err.count("perdure: ") == 4
    for damage in ("{", '["x"]', '{"a": "soon"}'):
        (tmp_path / ESTIMATES).write_text(damage)
        for action in ("write", "estimate"):
            assert (
                main(["results", action, "--results", str(tmp_path), "--docs", str(tmp_path / "docs")]) == 2
            )
            said = capsys.readouterr().err
            assert said.startswith(f"perdure: '{tmp_path / ESTIMATES}' cannot be used (")
            assert "perdure results estimate" in said


def test_every_finding_behind_a_claim_exists():
    known = items()
    for theme in THEMES:
        for name, starts in theme.evidence.items():
            said = [claim.paper for claim in known[name].findings_of_the_paper("laptop")]
            for start in starts:
                assert any(paper.startswith(start) for paper in said), (name, start)


def test_claims_are_summed_up_from_verdicts():
    theme = Theme("A claim", {"x": ("it",)})

    def findings(*verdicts):
        each = [Conclusion("The paper finds that it is so.", "", v, number([1.0])) for v in verdicts]
        return [Findings("x", "", "", "", "laptop", "", "", conclusions=each)]

    def summary(*verdicts, stated=()):
        return theme.summary(findings(*verdicts), {"x": stated, "other": ["it is not asked"]})

    assert summary("supported").endswith("without runs yet: 0. Our data support the claim.")
    assert "Of 2 findings" in summary("supported", "not decided")
    assert summary("supported", "not decided").endswith("Where our data decide, they support the claim.")
    assert summary("supported", "contradicted").endswith(
        "Our data are mixed. Findings share runs, so that their numbers are no vote."
    )
    assert "Where our data decide, they are mixed." in summary("supported", "contradicted", WEAKER)
    assert summary("contradicted").endswith("contradict the claim.")
    assert "do not decide" in summary("not decided")
    assert summary("supported", stated=["it is so", "this is not it"]) == summary("supported")
    lacking = summary("supported", stated=["it is so", "it is more so"])
    assert "Of 2 findings" in lacking
    assert lacking.endswith("without runs yet: 1. Where our data decide, they support the claim.")
    assert theme.summary([], {}) == "No item with results speaks about it yet."


def test_what_speaks_against_a_claim_is_told_but_not_counted():
    theme = Theme("A claim", {"x": ("it",)}, exceptions={"x": ("however",)})
    each = [
        Conclusion(f"The paper finds that {said}.", "", "supported", number([1.0]))
        for said in ("it", "however")
    ]
    findings = [Findings("x", "", "", "", "laptop", "", "", conclusions=each)]
    assert [found.paper for _, found in theme.against(findings)] == ["The paper finds that however."]
    assert "Of 1 finding behind it" in theme.summary(findings, {})


def test_curves_are_thinned_to_their_end():
    record = made(items()["table-1"].settings("laptop")[0], "laptop", 0, 1.0)
    (curve, *_) = compact(record).curves
    assert [point["iteration"] for point in curve] == [float(k) for k in range(0, 100, 9)]
    assert json.dumps(curve[-1]) == '{"iteration": 99.0, "val accuracy": 64.14}'


@pytest.mark.skipif(not (ROOT / "results").is_dir(), reason="no results are committed yet")
def test_the_committed_page_is_current():
    results, findings = ROOT / "results", kept_findings(ROOT / "results")
    assert (ROOT / "docs" / "results.md").read_text(encoding="utf-8") == results_text(results, findings)
    for name, content in item_pages(results, findings).items():
        assert (ROOT / "docs" / name).read_text(encoding="utf-8") == content, name


def test_runs_that_two_rows_share_are_counted_once():
    """In item upsampling, "m = 1" and "u = 1" are the same runs."""
    item = items()["upsampling"]
    hashes = {config.hash for config in item.configs("laptop", item.seeds("laptop"))}
    lacking = _lacking("upsampling", item, "laptop", {}, {})
    assert lacking.needed == lacking.missing == len(hashes)
    assert sum(len(setting.configs("laptop", 1)) for setting in item.settings("laptop")) * item.seeds(
        "laptop"
    ) > len(hashes)
