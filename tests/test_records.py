"""Records of a folder as a list, as rows and as a data frame, without the command line."""

from __future__ import annotations

import sys
import types

import pytest

import perdure
from perdure.config import from_json
from perdure.errors import PerdureError
from test_learning import SMALL


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    for method in ("fine-tuning", "si"):
        options = SMALL | {"training.iterations": 3, "training.clip": None}
        perdure.run(perdure.build("permuted-copy", method, scale="smoke", **options), folder)
    (folder / "broken").mkdir()
    (folder / "broken" / "record.json").write_text("{")
    return folder


def test_records_are_a_list(runs):
    found = perdure.records(runs)
    assert len(found) == len(list(found)) == 2
    assert {record.method for record in found} == {"fine-tuning", "si"}
    assert [record.hash for record in found[:1]] == [found[0].hash]
    assert found[-1] == list(found)[1]
    again = perdure.run(from_json(found[0].config), runs)
    assert again.found
    assert again.record == found[0]


def test_rows_have_results_and_every_option(runs):
    for record, row in zip(perdure.records(str(runs)), perdure.records(runs).rows(), strict=True):
        assert (row["hash"], row["final"], row["seconds"]) == (record.hash, record.final, record.seconds)
        assert row["parameters.network"] == record.parameters["network"]
        assert row["training.iterations"] == 3
        assert row["network.cell"] == record.config["network"]["cell"]
        assert ("penalties.si.strength" in row) == (record.method == "si")
        assert not any(isinstance(value, dict) for value in row.values())


def test_a_cell_with_options_of_its_own_is_a_name_and_its_options(tmp_path):
    chosen = {"network.cell": "lstm", "network.cell.forget_offset": 2.0, "training.iterations": 1}
    perdure.run(perdure.build("permuted-copy", "si", scale="smoke", **(SMALL | chosen)), tmp_path)
    (row,) = perdure.records(tmp_path).rows()
    assert (row["network.cell"], row["network.cell.forget_offset"]) == ("lstm", 2.0)
    assert not {"weights.name", "network.cell.name"} & set(row)


def test_frames_need_pandas_and_say_so(runs, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(PerdureError, match=r"pip install '\.\[frames\]'"):
        perdure.records(runs).to_frame()


def test_a_frame_is_made_of_the_rows(runs, monkeypatch):
    """Without pandas here: it is handed the rows, and for no rows the columns."""
    given = []
    fake = types.SimpleNamespace(DataFrame=lambda rows, columns: given.append((rows, columns)))
    monkeypatch.setitem(sys.modules, "pandas", fake)
    perdure.records(runs).to_frame()
    perdure.records(runs)[:0].to_frame()
    assert given[0] == (perdure.records(runs).rows(), None)
    assert given[1][0] == []
    assert "final" in given[1][1]


def test_a_frame_of_pandas(runs):
    pandas = pytest.importorskip("pandas")
    frame = perdure.records(runs).to_frame()
    assert isinstance(frame, pandas.DataFrame)
    assert sorted(frame["method"]) == ["fine-tuning", "si"]
    assert frame.groupby("method")["final"].mean()["si"] == frame[frame["method"] == "si"]["final"].iloc[0]
    assert frame["penalties.si.strength"].isna().sum() == 1


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(PerdureError, match="is not a folder of runs"):
        perdure.records(tmp_path / "nowhere")
