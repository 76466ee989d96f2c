"""The search itself: what is chosen, by what, and that nothing is lost or done twice, whoever dies."""

from __future__ import annotations

import ast
import json
import random
import time
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest

import perdure.search
from perdure.cli import main
from perdure.config import from_json
from perdure.engines.engine import ThisProcess
from perdure.errors import Busy, Interrupted, PerdureError
from perdure.learning.engine import RunOptions
from perdure.search.crew import ATTEMPTS, Crew
from perdure.search.selection import (
    Validation,
    best_of,
    ranking,
    robust,
    score,
    survivors,
    validation,
    validation_of,
)
from perdure.search.state import FILE, all_searches, find_search, place
from perdure.search.study import Budget
from perdure.search.tuning import tune
from perdure.storage.store import RunFolder, all_records
from perdure.testing.methods import SMALL
from search_samples import SPACE, TASKS, Lost, Pretend, quality, study


def flat(value: float) -> Validation:
    return validation([[value] * TASKS] * TASKS)


class Poisoned(dict):
    """A record of which nothing but validation can be read."""

    def __getitem__(self, name):
        if name != "validation":
            raise AssertionError(f"selection read '{name}' of a record")
        return super().__getitem__(name)

    def get(self, name, default=None):
        if name in self:
            return self[name]
        return default

    def items(self):
        raise AssertionError("selection read all of a record")

    values = __iter__ = keys = items


def test_records_without_readable_test_numbers_are_ranked():
    finals = [30.0, 90.0, 60.0]
    records = [
        Poisoned(validation=[[final] * 2] * 2, accuracy=None, final=None, during=None, f1=None, error=None)
        for final in finals
    ]
    with pytest.raises(AssertionError, match="read 'final'"):
        records[0]["final"]
    runs = [[validation_of(record)] for record in records]
    assert ranking(runs) == [1, 2, 0]
    assert survivors(runs, 1) == [1, 2]
    assert best_of(dict(enumerate(runs))) == 1
    assert robust(61.0, runs[2])
    assert set(vars(runs[0][0])) == {"matrix"}


def test_test_numbers_change_no_choice(tmp_path):
    """The same search with test numbers that rank the other way round."""
    found = []
    for name, test in (("one", quality), ("two", lambda order: 100 - quality(order))):
        search = study(tmp_path / name, Pretend(test=test)).run()
        found.append([search.trials, search.candidates, search.chosen])
    for trials, candidates, chosen in found:
        for trial in trials:
            trial.seconds = 0.0
        assert (trials, candidates, chosen) == tuple(found[0])


def test_no_code_of_the_search_names_a_test_number():
    """Neither by attribute nor by key; `.final` is that of `Validation`, `Trial` or `Candidate`."""
    folder = Path(perdure.search.__file__).parent
    assert len(list(folder.glob("*.py"))) > 6
    for path in folder.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Attribute):
                assert node.attr not in {"accuracy", "f1", "error"}, path
            if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
                assert node.slice.value not in {"accuracy", "final", "during", "f1", "error"}, path
            if isinstance(node, ast.ImportFrom):
                assert "Record" not in {name.name for name in node.names}, path


def test_final_and_during_by_hand():
    run = validation([[80, 10, 10], [70, 90, 20], [50, 60, 100]])
    assert run.final() == pytest.approx(70)
    assert run.during() == pytest.approx(90)
    assert run.final(2) == pytest.approx(80)  # of the two tasks that were learnt
    assert run.during(2) == pytest.approx(85)
    assert score([run, flat(50)]) == pytest.approx(60)
    assert score([run, None]) is None
    assert validation_of({"accuracy": [[1.0]]}) is None


def test_ranking_against_brute_force():
    source = random.Random(0)
    settings = [
        [validation([[source.choice([1.0, 2.0]) for _ in range(2)] for _ in range(2)])] for _ in range(30)
    ]
    settings[7] = [None]
    order = ranking(settings)
    assert 7 not in order
    assert len(order) == 29
    for before, after in pairwise(order):
        one, two = settings[before][0], settings[after][0]
        assert (one.final(), one.during(), -before) > (two.final(), two.during(), -after)


def test_the_best_is_chosen_and_stored_with_its_records(tmp_path):
    engine = Pretend()
    search = study(tmp_path, engine).run()
    values = [trial.values for trial in search.trials]
    best = max(search.trials, key=lambda trial: trial.final)
    assert search.values == best.values
    assert best.rank == 1
    assert search.complete
    tuned = [order["config"]["seed"] for order in engine.orders if not order["keep"]]
    assert set(tuned) == {1000}
    records, _ = all_records(tmp_path)
    assert [record.seed for record in records] != []
    assert sorted(record.seed for record in records) == [0, 1]  # trials do not stand among the runs
    for record in records:
        note = record.searches[search.id]
        assert note["values"] == search.values
        assert note["trials"] == len(values) == 8
        assert note["tuning_seeds"] == [1000]
        assert note["space"] == search.design.space.json
        assert record.config["training"]["learning_rate"] == search.values["training.learning_rate"]
    again = find_search(tmp_path, search.id[:5])
    assert again.json == json.loads(json.dumps(search.json))


def test_what_was_done_is_not_done_again_even_without_the_state(tmp_path):
    first = study(tmp_path, Pretend()).run()
    path = place(tmp_path, first.id) / FILE
    for damage in (None, "", "{", "gone"):
        if damage == "gone":
            path.unlink()
        elif damage is not None:
            path.write_text(damage)
        engine = Pretend()
        search = study(tmp_path, engine).run()
        assert engine.orders == []
        assert [trial.final for trial in search.trials] == [trial.final for trial in first.trials]
        assert search.chosen == first.chosen
    more = study(tmp_path, engine, Budget(trials=10, seeds=2)).run()
    assert [trial.values for trial in more.trials[:8]] == [trial.values for trial in first.trials]
    assert len(engine.orders) >= 2


def test_the_second_and_third_are_tried_if_the_first_is_not_robust(tmp_path):
    """The best with the tuning seed is bad with others; of the three the best with others is chosen."""
    ranked = [trial.values for trial in study(tmp_path / "a", Pretend()).run().ranked]

    def fickle(order):
        rate = order["config"]["training"]["learning_rate"]
        place_ = [values["training.learning_rate"] for values in ranked].index(rate)
        return quality(order) if order["config"]["seed"] >= 1000 else [40.0, 50.0, 60.0][place_]

    search = study(tmp_path / "b", Pretend(validation=fickle)).run()
    assert [candidate.robust for candidate in search.candidates] == [False, False, False]
    assert search.values == ranked[2]
    search = study(tmp_path / "c", Pretend()).run()
    assert [candidate.robust for candidate in search.candidates] == [True]


def test_a_reporting_seed_that_fails_is_not_robust(tmp_path):
    def upset(order):
        if order["keep"] and order["config"]["seed"] == 1:
            return {"fault": "failed", "reason": "The loss became nan."}
        return None

    search = study(tmp_path, Pretend(upset=upset)).run()
    assert len(search.candidates) == 3
    assert "The loss became nan" in search.candidates[0].reason
    assert search.chosen == search.ranked[0].number  # none is better than another


def test_failed_trials_are_listed_and_the_rest_goes_on(tmp_path):
    def upset(order):
        if order["config"]["penalties"]["si"]["strength"] == 1.0:
            return {"fault": "diverged", "reason": "The loss became nan."}
        return None

    search = study(tmp_path, Pretend(upset=upset), Budget(trials=12, seeds=1)).run()
    failed = [trial for trial in search.trials if trial.status == "failed"]
    assert failed
    assert all(trial.values["penalties.si.strength"] == 1.0 for trial in failed)
    assert all(trial.reason == "The loss became nan." for trial in failed)
    assert len(failed) + len(search.ranked) == 12
    engine = Pretend()
    study(tmp_path, engine, Budget(trials=12, seeds=1)).run()
    assert engine.orders == []  # they would fail again
    with pytest.raises(PerdureError, match=r"No trial of si was finished.*became nan"):
        study(
            tmp_path / "b", Pretend(upset=lambda order: {"fault": "diverged", "reason": "became nan"})
        ).run()


@pytest.mark.parametrize("kind", ["failed", "unexpected", "raised"])
def test_what_may_be_put_right_is_tried_again_the_next_time_and_not_before(kind, tmp_path):
    """Data that were missing, or a mistake in the code, that a worker tells or dies of."""

    def upset(order):
        if order["config"]["penalties"]["si"]["strength"] != 0.1:
            return None
        if kind == "raised":
            raise ZeroDivisionError("by hand")
        return {"fault": kind, "reason": "by hand"}

    whole = study(tmp_path / "whole", Pretend()).run()
    engine = Pretend(upset=upset)
    search = study(tmp_path / "a", engine).run()
    failed = {trial.hashes[0] for trial in search.trials if trial.status == "failed"}
    assert failed
    assert all("by hand" in trial.reason for trial in search.trials if trial.hashes[0] in failed)
    assert len(engine.orders) == 8 + 2
    right = Pretend()
    again = study(tmp_path / "a", right).run()
    assert {from_json(order["config"]).hash for order in right.orders} == failed | set(again.reported)
    assert len(right.orders) == len(failed) + 2
    assert (again.values, again.trials) == (whole.values, whole.trials)


def test_lost_workers_and_full_disks_are_tried_again(tmp_path, monkeypatch):
    monkeypatch.setattr("perdure.search.crew.LATER", 0.0)
    tries: Counter[float] = Counter()

    def upset(order):
        rate = order["config"]["training"]["learning_rate"]
        tries[rate] += 1
        if tries[rate] == 1:
            raise Lost
        if tries[rate] == 2:
            return {"fault": "circumstances", "reason": "The disk is full."}
        return None

    engine = Pretend(upset=upset)
    search = study(tmp_path / "a", engine, Budget(trials=4, seeds=0)).run()
    assert len(search.ranked) == 4
    assert set(tries.values()) == {ATTEMPTS}
    search_rates = {trial.values["training.learning_rate"] for trial in search.trials}
    doomed = min(search_rates)

    def deadly(order):
        if order["config"]["training"]["learning_rate"] == doomed:
            raise Lost

    search = study(tmp_path / "b", Pretend(upset=deadly), Budget(trials=4, seeds=0)).run()
    (trial,) = [trial for trial in search.trials if trial.status == "failed"]
    assert trial.reason.startswith(f"tried {ATTEMPTS} times: its worker was killed")
    assert len(search.ranked) == 3
    engine = Pretend()
    search = study(tmp_path / "b", engine, Budget(trials=4, seeds=0)).run()
    assert len(engine.orders) == 1  # what circumstances did may go well another time
    assert len(search.ranked) == 4


def test_a_run_of_another_process_is_waited_for(tmp_path, monkeypatch):
    monkeypatch.setattr("perdure.search.crew.LATER", 0.01)
    asked: Counter[str] = Counter()

    def upset(order):
        asked[str(order["config"])] += 1
        return {"fault": "busy", "reason": "later"} if asked[str(order["config"])] < 6 else None

    search = study(tmp_path, Pretend(upset=upset), Budget(trials=2, seeds=0)).run()
    assert len(search.ranked) == 2


def test_a_worker_that_differs_ends_the_search_with_its_sentence(tmp_path):
    refusal = {"fault": "refused", "reason": "The worker has torch 1.0."}
    with pytest.raises(PerdureError, match=r"torch 1\.0"):
        study(tmp_path, Pretend(upset=lambda order: refusal)).run()


def test_a_driver_that_is_killed_loses_nothing(tmp_path):
    class Killed(BaseException):
        pass

    count = 0

    def upset(order):
        nonlocal count
        count += 1
        if count == 6:
            raise Killed

    whole = study(tmp_path / "whole", Pretend()).run()
    engine = Pretend(upset=upset, width=1)
    with pytest.raises(Killed):
        study(tmp_path / "a", engine).run()
    done = len(engine.orders) - 1
    rest = Pretend()
    search = study(tmp_path / "a", rest).run()
    assert done + len(rest.orders) == 10  # 8 trials and 2 seeds, each once
    assert [(t.values, t.final, t.rank) for t in search.trials] == [
        (t.values, t.final, t.rank) for t in whole.trials
    ]
    assert search.chosen == whole.chosen


def test_two_drivers_do_not_disturb_each_other(tmp_path):
    def upset(order):
        with pytest.raises(Busy, match="by another process"):
            study(tmp_path, Pretend()).run()

    study(tmp_path, Pretend(upset=upset), Budget(trials=1, seeds=0)).run()


def test_halving_ends_the_worse_half_and_goes_on_with_the_rest(tmp_path):
    engine = Pretend()
    small = {name: value for name, value in SMALL.items() if name.startswith("benchmark.")}
    assert small["benchmark.tasks"] == TASKS
    search = study(tmp_path, engine, Budget(trials=8, seeds=0), halving=True).run()
    stages = Counter(order["phases"] for order in engine.orders)
    assert stages == {2: 8, None: 4}
    scores = sorted((quality(order) for order in engine.orders if order["phases"] == 2), reverse=True)
    assert sorted(trial.final for trial in search.ranked) == pytest.approx(sorted(scores[:4]))
    ended = [trial for trial in search.trials if trial.status == "stopped"]
    assert {trial.phases for trial in ended} == {2}
    assert "better half" in ended[0].reason


def test_several_tuning_seeds_count_together(tmp_path):
    """One seed would choose another setting than the mean of both."""

    def two_faced(order):
        rate, seed = order["config"]["training"]["learning_rate"], order["config"]["seed"]
        return {1e-3: {7: 90.0, 8: 10.0}, 1e-2: {7: 60.0, 8: 60.0}}[rate][seed]

    space = {"training.learning_rate": [1e-3, 1e-2]}
    one, both = (
        study(tmp_path, Pretend(validation=two_faced), Budget(seeds=0), space=space, tuning_seeds=seeds).run()
        for seeds in ((7,), (7, 8))
    )
    assert one.values == {"training.learning_rate": 1e-3}
    assert both.values == {"training.learning_rate": 1e-2}
    with pytest.raises(PerdureError, match="Seed 1 is both a tuning seed and a reporting seed"):
        study(tmp_path, Pretend(), Budget(seeds=2), tuning_seeds=(1,))


def test_time_that_is_up_ends_the_search(tmp_path, monkeypatch):
    clock = [0.0]
    monkeypatch.setattr("perdure.search.study.time.monotonic", lambda: clock[0])

    def slow(order):
        clock[0] += 600.0
        return quality(order)

    engine = Pretend(validation=slow, width=1)
    search = study(tmp_path, engine, Budget(trials=24, hours=1.0, seeds=1)).run()
    assert 4 <= len(search.ranked) <= 6
    assert search.chosen is not None
    waiting = [trial for trial in search.trials if trial.status == "waiting"]
    assert len(waiting) + len(search.ranked) == 24
    assert "not finished within" in waiting[0].reason
    again = Pretend(validation=slow, width=1)
    search = study(tmp_path, again, Budget(trials=24, hours=1.0, seeds=1)).run()
    assert again.orders == []  # the time was up before; what was found is found again
    assert search.chosen is not None


def test_reporting_seeds_end_within_the_time(tmp_path, monkeypatch):
    """A setting that is not robust is not followed by others if there is no time for them."""
    clock = [0.0]
    monkeypatch.setattr("perdure.search.clock.time.monotonic", lambda: clock[0])
    seconds = [400.0]

    def fragile(order):
        clock[0] += seconds[0]
        return quality(order) - (20.0 if order["config"]["seed"] < 1000 else 0.0)

    engine = Pretend(validation=fragile, seconds=lambda order: seconds[0], width=1)
    search = study(tmp_path / "short", engine, Budget(trials=24, hours=1.0, seeds=2)).run()
    assert len(search.candidates) == 1
    assert not search.candidates[0].robust
    assert clock[0] <= 3600
    engine.orders.clear()
    clock[0], seconds[0] = 0.0, 10.0
    search = study(tmp_path / "long", engine, Budget(trials=24, hours=10.0, seeds=2)).run()
    assert len(search.candidates) == 3


def test_a_stop_is_passed_on_and_the_state_is_saved(tmp_path):
    engine = Pretend(width=1)
    one = study(tmp_path, engine)
    one.crew.options = RunOptions(stop=lambda: len(engine.orders) >= 3)
    with pytest.raises(Interrupted):
        one.run()
    assert len(find_search(tmp_path, one.design.id).seen) == 3


def test_a_real_search_in_this_process_and_in_two_others(tmp_path):
    """The same trials, numbers and choice, wherever they run; with real training."""
    given = {name: value for name, value in SMALL.items() if name not in SPACE and "." in name}
    known = {
        name: v for name, v in given.items() if name.split(".")[0] in ("benchmark", "network", "training")
    }
    known["training.iterations"] = 6
    found = []
    for workers in (1, 2):
        begun = time.monotonic()
        search = tune(
            "permuted-copy",
            "si",
            SPACE,
            scale="smoke",
            runs=tmp_path / str(workers),
            budget=Budget(trials=3, seeds=1),
            workers=workers,
            **known,
        )
        assert search.seconds <= time.monotonic() - begun
        found.append([[(t.values, t.hashes, t.final, t.rank) for t in search.trials], search.chosen])
        (record,) = all_records(tmp_path / str(workers))[0]
        assert record.val_final == pytest.approx(search.candidates[0].final)
        trial = RunFolder(tmp_path / str(workers) / "trials", search.trials[0].hashes[0])
        assert trial.record().val_final == pytest.approx(search.trials[0].final)
        assert not list(trial.path.glob("after-*"))
        assert list((tmp_path / str(workers) / record.hash).glob("after-*"))
    assert found[0] == found[1]


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ({"trials": -3}, r"^trials: must be an integer of at least 1 \(given: -3\)"),
        ({"trials": 2.5}, "^trials: must be an integer"),
        ({"seeds": -1}, "^seeds: must be an integer of at least 0"),
        ({"hours": -1.0}, "^hours: must be a number of at least 0, or None"),
        ({"hours": float("nan")}, "^hours: must be a number"),
        ({"hours": "1"}, "^hours: must be a number"),
    ],
)
def test_limits_that_no_search_can_keep_are_refused(limits, message):
    with pytest.raises(PerdureError, match=message):
        Budget(**limits)


def test_a_budget_is_no_number(tmp_path):
    with pytest.raises(PerdureError, match=r"^budget: must be a Budget, such as .*\(given: 5\)"):
        tune("permuted-copy", "si", SPACE, scale="smoke", runs=tmp_path, budget=5)


def test_this_process_is_an_engine_too(tmp_path):
    with ThisProcess() as engine:
        crew = Crew(engine, tmp_path)
        assert list(crew.carry_out([])) == []
        assert engine.slots == 1


def test_a_search_without_a_point_to_try_is_not_saved(tmp_path):
    toml = tmp_path / "space.toml"
    toml.write_text(
        "[si]\npenalties.si.strength = [0.1, 1.0]\nlimits.ratio = { from = 7, to = 8, scale = 'linear' }\n"
    )
    for _ in range(2):
        with pytest.raises(PerdureError, match=r"No point of the space of si can be tried: 1\.00 times"):
            study(tmp_path / "runs", Pretend(), space=str(toml)).run()
        assert list((tmp_path / "runs" / "searches").glob("*")) == []
        assert all_searches(tmp_path / "runs") == ([], [])


def test_a_record_of_an_earlier_version_is_replaced_by_one_made_elsewhere(tmp_path):
    first = study(tmp_path, Pretend()).run()
    older = [tmp_path / name / "record.json" for name in first.candidates[0].hashes]
    for path in older:  # without a validation matrix, as records once were
        path.write_text(json.dumps(json.loads(path.read_text()) | {"validation": []}))
    (place(tmp_path, first.id) / FILE).unlink()
    again = study(tmp_path, Pretend()).run()
    assert again.chosen == first.chosen
    assert all(json.loads(path.read_text())["validation"] for path in older)


def changed(**more):
    """What makes of a search's JSON another."""
    return lambda data: {**data, **more}


DAMAGES = {
    "no JSON": lambda data: "{",
    "a list": lambda data: [data],
    "without an id": lambda data: {name: value for name, value in data.items() if name != "id"},
    "another id": changed(id="0" * 12),
    "trials that are none": changed(trials=[{"x": 1}]),
    "an impossible range": lambda data: json.loads(json.dumps(data).replace('"from": 0.0001', '"from": -1')),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_search_is_a_warning_and_the_others_are_there(damage, tmp_path, capsys):
    kept = study(tmp_path, Pretend()).run()
    other = study(tmp_path, Pretend(), tasks=2).run()
    path = place(tmp_path, other.id) / FILE
    data = DAMAGES[damage](json.loads(path.read_text()))
    path.write_text(data if isinstance(data, str) else json.dumps(data))
    found, warnings = all_searches(tmp_path)
    assert [search.id for search in found] == [kept.id]
    (warning,) = warnings
    assert warning.startswith(f"'{path}' cannot be used (")
    for words in (["search", "--runs"], ["report", "--runs"]):
        assert main([*words, str(tmp_path)]) == 0
        assert str(path) in capsys.readouterr().err
    with pytest.raises(PerdureError, match="cannot be used"):
        find_search(tmp_path, other.id)


def test_a_state_that_was_set_aside_is_told(tmp_path):
    first = study(tmp_path, Pretend()).run()
    (place(tmp_path, first.id) / FILE).write_text("{")
    told = []
    again = study(tmp_path, Pretend())
    again.say = told.append
    again.run()
    (said,) = told
    assert f"{FILE}.damaged-1" in said
    assert "cannot be used" in said


def test_an_engine_that_was_given_stays_open(tmp_path):
    class Watched(Pretend):
        closed = False

        def shutdown(self, wait=True, *, cancel_futures=False):
            self.closed = True

    engine, budget = Watched(), Budget(trials=2, seeds=1)
    for method in ("si", "masking+si"):
        tune(
            "permuted-copy",
            method,
            SPACE,
            scale="smoke",
            runs=tmp_path,
            budget=budget,
            engine=engine,
            **{"benchmark.tasks": TASKS},
        )
        assert not engine.closed
