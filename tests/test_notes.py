"""Notes beside results: their numbers are those of the tables."""

from __future__ import annotations

import pytest

from perdure.analysis.statistics import Number, number
from perdure.errors import PerdureError
from perdure.paper.findings import Findings, TableCell
from perdure.report.notes import Notes

CELLS = [
    TableCell("A, m = 4", "final", number([90.0, 91.0, 92.0]), published=Number(94.42, 0.5, 10)),
    TableCell("B: C", "importance", number([0.00123])),
    TableCell("B: C", "left out", None),
]
ONE = Findings("item", "Item", "", "", "laptop", "", "", cells=CELLS)
OTHER = Findings("other", "Other", "", "", "paper", "", "", cells=CELLS[:1])


@pytest.fixture
def notes(tmp_path):
    (tmp_path / "notes").mkdir()

    def written(**texts):
        for name, text in texts.items():
            (tmp_path / "notes" / f"{name}.md").write_text(text + "\n")
        return Notes(tmp_path, [ONE, OTHER])

    return written


def test_numbers_are_looked_up(notes):
    text = "From {{A, m = 4 | final | published}} to {{A, m = 4 | final}}, {{B: C | importance}}."
    assert notes(item=text).about(ONE) == "From 94.42 ± 0.50 to 91.00 ± 0.58, 0.00123."


def test_a_note_about_a_claim_names_the_findings(notes):
    found = notes(claim="Ours: {{other-paper: A, m = 4 |\nfinal}}.").named("claim")
    assert found == "Ours: 91.00 ± 0.58."


def test_a_note_of_one_scale_comes_before_that_of_all(notes):
    both = notes(item="All.", **{"item-laptop": "Laptop."})
    assert (both.about(ONE), both.about(OTHER), both.named("none")) == ("Laptop.", "", "")


@pytest.mark.parametrize(
    ("reference", "said"),
    [
        ("A, m = 3 | final", "did you mean 'A, m = 4 | final'"),
        ("A, m = 4 | finals", "did you mean 'A, m = 4 | final'"),
        ("A, m = 4", "takes ROW | COLUMN"),
        ("A, m = 4 | final | theirs", "takes ROW | COLUMN"),
        ("B: C | left out", "has no number"),
        ("B: C | importance | published", "has no number"),
        ("others-paper: A, m = 4 | final", "Unknown number of item-laptop"),
    ],
)
def test_a_number_that_is_not_there_is_an_error(reference, said, notes):
    with pytest.raises(PerdureError, match=r"item\.md") as error:
        notes(item=f"See {{{{{reference}}}}}.").about(ONE)
    assert said in str(error.value)


def test_a_note_about_nothing_in_particular_must_name_findings(notes):
    with pytest.raises(PerdureError, match="Unknown findings"):
        notes(claim="{{A, m = 4 | final}}").named("claim")
