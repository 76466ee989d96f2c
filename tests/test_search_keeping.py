"""A search loses nothing: neither to a smaller budget, nor to an interruption, halving or a time limit."""

from __future__ import annotations

from dataclasses import replace

import pytest

from perdure.errors import Interrupted, PerdureError
from perdure.learning.engine import RunOptions
from perdure.search.state import find_search
from perdure.search.study import Budget
from perdure.storage.record import to_record
from perdure.storage.store import RunFolder
from search_samples import Pretend, quality, study


def known(search):
    """What must not be lost of a search: its ended trials, its candidates and its choice."""
    ended = [
        (tuple(trial.hashes), trial.status, trial.final, trial.rank)
        for trial in search.trials
        if trial.status in ("finished", "stopped", "failed")
    ]
    return ended, [vars(candidate) for candidate in search.candidates], search.chosen


def stored(runs, search):
    return find_search(runs, search.id)


def unlucky(order):
    """Reporting seeds reach less than tuning seeds, so the first three settings are candidates."""
    return quality(order) - (20.0 if order["config"]["seed"] < 1000 else 0.0)


@pytest.mark.parametrize("rules", [{}, {"halving": True}, {"sampler": "tpe"}])
@pytest.mark.parametrize("budget", [Budget(trials=3, seeds=2), Budget(trials=8, seeds=1), Budget(1, None, 0)])
def test_a_smaller_budget_takes_nothing_away(tmp_path, rules, budget):
    first = study(tmp_path, Pretend(validation=unlucky), **rules).run()
    assert len(first.candidates) == 3
    engine, said = Pretend(validation=unlucky), []
    smaller = study(tmp_path, engine, budget, **rules)
    smaller.say = said.append
    again = smaller.run()
    assert engine.orders == []
    assert known(again) == known(first)
    assert known(stored(tmp_path, first)) == known(first)
    assert stored(tmp_path, first).complete
    assert again.seeds == [0, 1]
    assert len(said) == 1
    assert "8 trials and 2 reporting seeds" in said[0]


def test_an_equal_or_larger_budget_says_nothing(tmp_path):
    said = []
    for budget in (Budget(trials=3, seeds=1), Budget(trials=3, seeds=1), Budget(trials=5, seeds=2)):
        one = study(tmp_path, Pretend(), budget)
        one.say = said.append
        one.run()
    assert said == []


def test_a_display_that_fails_at_any_moment_costs_nothing(tmp_path):
    """As when the program that reads the output has ended."""
    first = study(tmp_path, Pretend(validation=unlucky)).run()
    for moment in range(1, 30):
        count = 0

        def changed(search, moment=moment):
            nonlocal count
            count += 1
            if count >= moment:
                raise BrokenPipeError

        one = study(tmp_path, Pretend(validation=unlucky), Budget(trials=8, seeds=2))
        one.changed = changed
        try:
            one.run()
        except BrokenPipeError:
            pass
        else:
            break
        assert known(stored(tmp_path, first)) == known(first), moment
        assert stored(tmp_path, first).complete
    else:
        pytest.fail("it never came to its end")


@pytest.mark.parametrize("rules", [{}, {"halving": True}, {"sampler": "tpe"}])
def test_the_choice_stays_until_a_larger_search_has_another(tmp_path, rules, monkeypatch):
    monkeypatch.setattr("perdure.search.study.SAVE_EVERY", 0.0)
    whole = study(tmp_path / "whole", Pretend(), Budget(trials=16, seeds=2), **rules).run()
    first = study(tmp_path / "a", Pretend(), Budget(trials=5, seeds=2), **rules).run()
    for most in range(1, 8):
        engine = Pretend(width=1)
        one = study(tmp_path / "a", engine, Budget(trials=16, seeds=2), **rules)
        one.crew.options = RunOptions(stop=lambda engine=engine, most=most: len(engine.orders) >= most)
        try:
            one.run()
        except Interrupted:
            left = stored(tmp_path / "a", first)
            assert left.values == first.values
            assert [vars(each) for each in left.candidates] == [vars(each) for each in first.candidates]
            assert not left.complete
            ended = {trial.hashes[0] for trial in left.trials if trial.status == "finished"}
            assert ended >= {trial.hashes[0] for trial in first.trials if trial.status == "finished"}
    last = study(tmp_path / "a", Pretend(), Budget(trials=16, seeds=2), **rules).run()
    assert last.complete
    assert last.values == whole.values
    assert {each.trial for each in last.candidates} >= {each.trial for each in first.candidates}


def test_halving_keeps_trials_that_a_smaller_search_finished(tmp_path):
    """All that the larger search would have stopped early stays finished, and the others are as without."""
    first = study(tmp_path / "a", Pretend(), Budget(trials=4, seeds=0), halving=True, seed=3).run()
    fresh = study(tmp_path / "b", Pretend(), Budget(trials=16, seeds=0), halving=True, seed=3).run()
    more = study(tmp_path / "a", Pretend(), Budget(trials=16, seeds=0), halving=True, seed=3).run()
    finished = [
        {trial.number for trial in one.trials if trial.status == "finished"} for one in (first, fresh, more)
    ]
    assert not finished[0] <= finished[1], "the example shows nothing"
    assert finished[2] == finished[0] | finished[1]
    assert more.chosen == fresh.chosen
    assert sorted(trial.rank for trial in more.ranked) == list(range(1, len(finished[2]) + 1))


def test_a_shorter_time_takes_nothing_away(tmp_path):
    """Candidates that are known cost no time, so all are there again; what is unknown is not begun."""
    first = study(tmp_path, Pretend(validation=unlucky), Budget(trials=8, seeds=2)).run()
    assert len(first.candidates) == 3
    engine = Pretend(validation=unlucky)
    again = study(tmp_path, engine, Budget(trials=12, hours=1e-9, seeds=2)).run()
    assert engine.orders == []
    assert known(again) == known(first)
    assert known(stored(tmp_path, first)) == known(first)


def test_more_seeds_without_time_leave_the_confirmed_choice(tmp_path):
    first = study(tmp_path, Pretend(validation=unlucky), Budget(trials=8, seeds=2)).run()
    engine = Pretend(validation=unlucky)
    study(tmp_path, engine, Budget(trials=8, hours=1e-9, seeds=4)).run()
    left = stored(tmp_path, first)
    assert left.chosen == first.chosen
    assert {each.trial: each.final for each in left.candidates} == {
        each.trial: each.final for each in first.candidates
    }


def test_trials_that_were_never_begun_need_not_be_made(tmp_path, monkeypatch):
    """A time limit left 24 proposals, of which a few were tried; fewer are asked for without a limit."""
    clock = [0.0]
    monkeypatch.setattr("perdure.search.study.time.monotonic", lambda: clock[0])

    def slow(order):
        clock[0] += 600.0
        return quality(order)

    first = study(tmp_path, Pretend(validation=slow, width=1), Budget(trials=24, hours=1.0, seeds=1)).run()
    tried = len(first.ranked)
    engine = Pretend(width=1)
    again = study(tmp_path, engine, Budget(trials=tried + 2, seeds=1)).run()
    assert [trial.status for trial in again.trials] == ["finished"] * (tried + 2)
    assert sum(order["config"]["seed"] >= 1000 for order in engine.orders) == 2


def test_trials_proposed_otherwise_than_before_are_kept(tmp_path, monkeypatch):
    """A lost worker's trial that goes well another time changes what tpe proposes after it."""

    def upset(order):
        if order["config"]["training"]["learning_rate"] == lost:
            return {"fault": "circumstances", "reason": "The disk is full."}
        return None

    rules = {"sampler": "tpe"}
    budget = Budget(trials=24, seeds=1)
    plain = study(tmp_path / "plain", Pretend(), budget, **rules).run()
    lost = plain.trials[0].values["training.learning_rate"]
    monkeypatch.setattr("perdure.search.crew.LATER", 0.0)
    first = study(tmp_path / "a", Pretend(upset=upset), budget, **rules).run()
    assert {trial.hashes[0] for trial in first.trials} != {trial.hashes[0] for trial in plain.trials}
    again = study(tmp_path / "a", Pretend(), budget, **rules).run()
    hashes = {trial.hashes[0] for trial in again.trials}
    assert hashes >= {trial.hashes[0] for trial in first.trials}
    assert [trial.number for trial in again.trials] == list(range(1, len(again.trials) + 1))
    assert again.values == max(again.trials, key=lambda trial: trial.final).values
    assert len(again.trials) > 24
    engine = Pretend()
    third = study(tmp_path / "a", engine, budget, **rules).run()
    assert engine.orders == []
    assert known(third) == known(again)


def test_an_exact_budget_looks_at_the_first_trials_only(tmp_path):
    """As comparisons do, in which all methods have the same number; the search itself stays as it is."""
    narrow = study(tmp_path / "b", Pretend(), Budget(trials=2, seeds=1)).run()
    first = study(tmp_path / "a", Pretend(), Budget(trials=8, seeds=2)).run()
    assert first.chosen != narrow.chosen
    view = study(tmp_path / "a", Pretend(), Budget(trials=2, seeds=1, exact=True)).run()
    assert known(view) == known(narrow)
    left = stored(tmp_path / "a", first)
    assert known(left)[0] == known(first)[0]
    assert left.chosen == first.chosen
    assert left.complete
    assert {each.trial for each in left.candidates} == {first.chosen, narrow.chosen}


def test_a_limit_of_memory_is_for_exact_budgets_and_may_leave_nothing(tmp_path):
    with pytest.raises(PerdureError, match="must be exact"):
        study(tmp_path, Pretend(), Budget(trials=2, memory=10))
    one = study(tmp_path, Pretend(), Budget(trials=2, seeds=1, exact=True, memory=10))
    with pytest.raises(PerdureError, match="No setting of si that was tried keeps at most 10 bytes"):
        one.run()


def test_records_name_a_search_as_long_as_it_has_chosen_their_settings(tmp_path):
    """Also one that was made later, with a further seed; what another search noted stays."""
    few, many = Budget(trials=2, seeds=1), Budget(trials=8, seeds=1)
    first = study(tmp_path, Pretend(), few).run()
    further = first.design.problem.config(first.values, 7)
    record = to_record(Pretend().answer({"config": further.json, "phases": None})["record"])
    RunFolder(tmp_path, record.hash).bring(record)
    chosen = [RunFolder(tmp_path, name) for name in (*first.reported, further.hash)]
    for folder in chosen:
        folder.note_search(folder.finished(), first.id, first.note)
        folder.note_search(folder.finished(), "another", {"trial": 1})
    larger = study(tmp_path, Pretend(), many).run()
    assert larger.values != first.values
    assert [set(folder.finished().searches) for folder in chosen] == [{"another"}] * 2
    (now,) = [RunFolder(tmp_path, name).finished() for name in larger.reported]
    assert now.searches == {first.id: larger.note}
    part = study(tmp_path, Pretend(), replace(few, exact=True)).run()
    assert part.values == first.values
    for _ in range(2):
        noted = [folder.finished().searches.get(first.id) for folder in chosen]
        assert noted == [part.note | {"comparison": {"trials": 2}}, None]
        assert RunFolder(tmp_path, now.hash).finished() == now
        study(tmp_path, Pretend(), many).run()  # it takes out its own notes only
