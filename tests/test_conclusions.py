"""Conclusions are computed from numbers, for every item, and are true of the published numbers."""

from __future__ import annotations

import pytest
import scipy.stats

from perdure.analysis.statistics import MOST_SEEDS, number, pairs_needed, sign
from perdure.paper.comparison import ComparisonItem
from perdure.paper.conclusions import Claim, difference, forgotten, interaction, reaches
from perdure.paper.findings import WEAKER, TableCell
from perdure.paper.item import items
from perdure.paper.sweep import SweepItem
from perdure.report.tables import conclusion_text

WITHOUT_CLAIMS = {"data-sets", "copy-examples"}
"""A summary and an illustration conclude nothing."""


def cell(row, column, *values):
    return TableCell(row, column, number(values), values=values)


A, B = cell("A", "final", 90.0, 92.0, 91.0), cell("B", "final", 80.0, 83.0, 80.0)


def test_a_difference_is_judged_by_a_paired_test():
    found = difference("A is better than B", "A", "B").judged([A, B])
    low, high = scipy.stats.t.interval(0.95, 2, 10.0, scipy.stats.sem([10.0, 9.0, 11.0]))
    assert (found.contrast.mean, found.contrast.n) == (10.0, 3)
    assert (found.contrast.low, found.contrast.high) == (pytest.approx(low), pytest.approx(high))
    assert found.verdict == "supported"
    assert found.paper == "The paper finds that A is better than B."
    assert f"+10.00 points (95 % interval {low:+.2f} to {high:+.2f}, n = 3)" in found.ours
    assert difference("B is better", "B", "A").judged([A, B]).verdict == "contradicted"
    assert difference("they are equal", "B", "A", "same").judged([A, B]).verdict == "contradicted"


def test_what_is_within_the_margin_is_no_difference():
    near = cell("N", "final", 90.2, 92.2, 91.3)
    assert difference("A is as good", "N", "A", "same").judged([A, near]).verdict == "supported"
    assert difference("N is better", "N", "A").judged([A, near]).verdict == WEAKER
    assert difference("A is better", "A", "N").judged([A, near]).verdict == "contradicted"
    around = cell("N", "final", 90.1, 91.9, 91.0)
    assert difference("N is better", "N", "A").judged([A, around]).verdict == "contradicted"


@pytest.mark.parametrize(
    ("published", "verdict"),
    [(91.5, "supported"), (93.4, "not decided"), (99.0, "contradicted"), (83.0, "contradicted")],
)
def test_a_row_is_compared_with_a_published_mean(published, verdict):
    """Within 2 points by two one-sided tests; the contrast is ours minus the published one."""
    row = cell("A", "final", 90.0, 92.0, 91.0, 91.0, 91.0)
    found = reaches("A is as published", "A", published, 2.0).judged([row])
    assert found.verdict == verdict
    low, high = scipy.stats.t.interval(0.95, 4, 91.0, scipy.stats.sem([90, 92, 91, 91, 91]))
    assert (found.contrast.low, found.contrast.high) == pytest.approx((low - published, high - published))
    assert f"A (final accuracy) minus {published:g}, {91 - published:+.2f} points" in found.ours


def shifted(*differences):
    """Two rows that differ by these."""
    return [
        cell("A", "final", *(90.0 + value for value in differences)),
        cell("B", "final", *(90.0 for _ in differences)),
    ]


@pytest.mark.parametrize(
    ("differences", "verdict", "said"),
    [
        ((0.1, 0.2, 0.3), "supported", "less than 1 point"),
        ((0.9, 1.2, 1.5), "not decided", "above zero, but not to be more than 1 point"),
        ((4.9, 5.2, 5.5), "contradicted", "above zero."),
        ((-4.9, -5.2, -5.5), "contradicted", "below zero."),
    ],
)
def test_alike_is_contradicted_only_by_an_interval_beyond_the_margin(differences, verdict, said):
    found = difference("they are alike", "A", "B", "same").judged(shifted(*differences))
    assert found.verdict == verdict
    assert said in found.ours
    low, high = scipy.stats.t.interval(0.95, 2, found.contrast.mean, scipy.stats.sem(differences))
    assert (low > 1 or high < -1) == (verdict == "contradicted")
    spread = found.contrast.sem * 3**0.5
    if verdict == "not decided":
        for count, decided in ((found.needed, True), (found.needed - 1, False)):
            reach = scipy.stats.t.ppf(0.975, count - 1) * spread / count**0.5
            assert (found.contrast.mean - reach > 1) == decided


def test_a_contrast_over_fewer_seeds_than_its_rows_have_says_so():
    found = difference("A is better", "A", "B").judged([cell("A", "final", 90.0, 92.0, 91.0, 50.0), B])
    assert found.contrast.mean == 10.0
    assert "n = 3 seeds that all of these have" in found.ours


def test_one_seed_and_noise_decide_nothing_and_say_what_would():
    one = difference("A is better", "A", "B").judged([cell("A", "final", 90.0), cell("B", "final", 10.0)])
    assert (one.verdict, one.needed) == ("not decided", None)
    assert "at least 3 seeds" in conclusion_text(one)
    noisy = cell("N", "final", 95.0, 75.0, 86.0)
    found = difference("N is better", "N", "B").judged([noisy, B])
    assert found.verdict == "not decided"
    spread = found.contrast.sem * 3**0.5
    n = found.needed
    for count, decided in ((n, True), (n - 1, False)):
        p = 2 * scipy.stats.t.sf(found.contrast.mean / (spread / count**0.5), count - 1)
        assert (p < 0.05) == decided
    assert f"{n} seeds would suffice" in conclusion_text(found)


def test_factors_interactions_and_missing_cells():
    up = cell("long", "fisher", 4e-6, 5e-6, 6e-6)
    low = cell("short", "fisher", 1e-6, 1e-6, 1.5e-6)
    grows = Claim(
        "it grows", "long over short", ((1, "long", "fisher"), (-1, "short", "fisher")), "more", True
    )
    found = grows.judged([up, low])
    assert found.verdict == "supported"
    assert "factor 4.31" in found.ours  # (4 * 5 * 4) ** (1 / 3)
    flat = Claim("it does not", "", ((1, "long", "fisher"), (-1, "short", "fisher")), "same", True)
    assert flat.judged([up, low]).verdict == "contradicted"
    assert grows.judged([up]) is None
    during = cell("A", "during", 99.0, 99.5, 99.0)
    assert forgotten("A forgets", "A").judged([A, during]).contrast.mean == pytest.approx(8.1666667)
    double = interaction("A falls more", "", ("A", "B", "B", "A")).judged([A, B])
    assert double.contrast.mean == pytest.approx(20.0)


def test_seeds_are_paired_and_those_left_out_do_not_count():
    """Seed 1 of A does not count: pairs are seeds 0, 2 and 3, whatever the order of values."""
    a = TableCell("A", "final", number([90.0, 92.0, 93.0]), values=(90.0, 92.0, 93.0), left_out=(1,))
    b = cell("B", "final", 80.0, 500.0, 81.0, 83.0)
    found = difference("A is better", "A", "B").judged([a, b])
    assert (found.contrast.mean, found.contrast.n) == (pytest.approx(31 / 3), 3)
    assert "n = 3, 1 network left out" in found.ours
    none = TableCell("A", "final", None, left_out=(0, 1, 2, 3))
    lost = difference("A is better", "A", "B").judged([none, b])
    assert (lost.verdict, lost.needed) == ("not decided", None)
    assert "4 networks left out" in lost.ours
    assert "at least 3 seeds are needed" in conclusion_text(lost)


def spread(centre):
    """Three seeds that vary by 5 percent."""
    return (0.95 * centre, centre, 1.05 * centre)


def verdicts(item, scale, cells):
    return {
        found.paper.removeprefix("The paper finds that ").rstrip("."): found.verdict
        for claim in items()[item].findings_of_the_paper(scale)
        if (found := claim.judged(cells)) is not None
    }


@pytest.mark.parametrize(("last", "flat"), [(5.7e-3, "contradicted"), (3.7e-9, "supported")])
def test_fisher_values_that_rise_are_not_flat(last, flat):
    """From 3.5e-9 to 5.7e-3 was once called "near those from scratch"."""
    found = verdicts(
        "flatness",
        "laptop",
        [
            cell("From-scratch", "mean Fisher after task 5", *spread(3.5e-9)),
            cell("HNET x 5", "mean Fisher after task 1", *spread(3.5e-9)),
            cell("HNET x 5", "mean Fisher after task 5", *spread(last)),
            cell("Online EWC", "mean Fisher after task 1", *spread(1e-9)),
            cell("Online EWC", "mean Fisher after task 5", *spread(9e-9)),
        ],
    )
    assert found.pop("solutions of an uncompressed HNET stay as flat as those learnt from scratch") == flat
    assert found.pop("the Fisher values of an uncompressed HNET do not grow with the number of tasks") == flat
    assert found == {
        "solutions of an uncompressed HNET are flatter than that of Online EWC": flat,
        "the Fisher values of Online EWC grow with the number of tasks": "supported",
    }


@pytest.mark.parametrize(
    ("padded", "alone", "more"), [(7.0, "contradicted", "contradicted"), (1.2, "supported", "supported")]
)
def test_importance_that_grows_sevenfold_with_the_length_is_no_small_change(padded, alone, more):
    """Twentyfold in all, sevenfold by the length: then the pattern's part is threefold, the smaller one."""
    column = "mean importance, Fisher"
    cells = [
        cell("Fisher, i = 5, p = 5", column, *spread(1.0)),
        cell("Fisher, i = 20, p = 5", column, *spread(padded)),
        cell("Fisher, i = 20, p = 20", column, *spread(20.0)),
    ]
    assert verdicts("intuition", "laptop", cells) == {
        "recurrent weights become more important as patterns grow (Fisher)": "supported",
        "the length of the sequence alone hardly changes their importance (Fisher)": alone,
        "the length of the pattern matters more than that of the sequence (Fisher)": more,
    }


def test_length_that_costs_more_than_computation_is_said():
    """Online EWC once fell to 93.76 with length alone, more than with one XOR, and nobody said so."""
    values = {"Online EWC, padded i = 25": 93.76, "Online EWC, r = 1": 95.4, "Online EWC, r = 5": 76.5}
    cells = [cell(row, "final", mean - 0.2, mean, mean + 0.2) for row, mean in values.items()]
    assert verdicts("table-2", "laptop", cells) == {
        "length alone costs Online EWC less than one XOR does": "contradicted",
        "length alone costs Online EWC less than five XORs do": "supported",
        "more computation costs Online EWC more": "supported",
    }


def test_signs_and_needed_seeds():
    assert sign(number([1.0, 2.0])) is None
    assert sign(number([50.0, 50.001])) is None  # two seeds decide nothing, however close they are
    assert sign(number([0.1, 0.2, 0.15])) == 0
    assert sign(number([5.0, 5.1, 5.2])) == 1
    assert sign(number([-5.0, -5.1, -5.2])) == -1
    assert sign(number([3.0, 3.0, 3.0])) == 1
    assert pairs_needed(number([1.0])) is None
    assert pairs_needed(number([1.0 + 1e-3, 1.0 - 1e-3]), margin=1.0) == 3
    assert pairs_needed(number([-900.0, 900.01])) in (None, MOST_SEEDS)


@pytest.mark.parametrize(
    "name",
    [
        name
        for name, item in items().items()
        if name not in WITHOUT_CLAIMS and "not in the paper" not in item.source
    ],
)
def test_every_item_says_what_the_paper_finds(name):
    item = items()[name]
    for scale in ("laptop", "paper"):
        claims = item.findings_of_the_paper(scale)
        assert claims
        assert len({claim.paper for claim in claims}) == len(claims)
    for text in (item.about, item.title):
        assert "paper finds" not in text


@pytest.mark.parametrize(
    "name", [n for n, i in items().items() if isinstance(i, (ComparisonItem, SweepItem))]
)
def test_claims_name_cells_that_exist_and_hold_for_the_published_numbers(name):
    item = items()[name]
    rows = item.rows if isinstance(item, ComparisonItem) else [point.row for point in item.points]
    cells = {
        (row.setting.label, column): row.published.get(column)
        for row in rows
        for column in ("during", "final")
    }
    for claim in item.claims:
        assert all((row, column) in cells for _, row, column in claim.parts), claim.paper
        published = [(factor, cells[row, column]) for factor, row, column in claim.parts]
        if all(value is not None for _, value in published):
            mean = sum(factor * value.mean for factor, value in published) - claim.against
            if claim.expects == "same":
                assert abs(mean) <= claim.margin, claim.paper
            else:
                assert mean * {"more": 1, "less": -1}[claim.expects] > 0, claim.paper
