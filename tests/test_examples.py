"""The examples with real data, at smoke size; skipped where the data are not."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"
DATA = Path(os.environ.get("PERDURE_DATA", EXAMPLES.parent.parent / "shared" / "data"))


def loaded(name: str):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def needs(path: Path) -> None:
    if not path.exists():
        pytest.skip(f"{path.name} is not here; set PERDURE_DATA to the folder that holds it")


def test_sensor_windows(monkeypatch, capsys):
    example = loaded("sensor_windows")
    path = DATA / "dsa" / "dsa.npz.xz"
    needs(path)
    monkeypatch.setattr(example, "PATH", path)
    learner = example.main(iterations=4, tasks=2, windows=60)
    assert learner.classes("on the side, upstairs, downstairs") == ("downstairs", "on the side", "upstairs")
    assert "after on the side, upstairs, downstairs:" in capsys.readouterr().out


def test_language_tagger(monkeypatch, capsys):
    example = loaded("language_tagger")
    path = DATA / "ud" / "pos_tsv.tar.xz"
    needs(path)
    monkeypatch.setattr(example, "PATH", path)
    learner = example.main(languages=("en", "fi"), most=30, iterations=4)
    assert "NOUN" in learner.classes("fi")
    assert "after fi" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["sensor_windows", "language_tagger"])
def test_missing_data_are_named(name, monkeypatch, capsys, tmp_path):
    example = loaded(name)
    monkeypatch.setattr(example, "PATH", tmp_path / "none")
    assert example.main() is None
    assert "set PERDURE_DATA" in capsys.readouterr().out
