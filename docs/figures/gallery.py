"""The pictures of docs/analyses.md: analyses of two small runs (scale smoke, seed 0).

`python docs/figures/gallery.py` runs both (a minute on one core) and draws into docs/gallery/. The numbers of
such small runs mean nothing; the pictures show what an analysis answers with.
"""

import tempfile
from pathlib import Path

import perdure
from perdure.cli import main

FOLDER = Path(__file__).parent.parent / "gallery"
SHOWN = {  # analysis -> method of the run, or none
    "dimensionality": "online-ewc",
    "importance": "online-ewc",
    "readout": "online-ewc",
    "embeddings": "hnet",
    "flatness": "online-ewc",
    "theory": None,
    "steps": "online-ewc",
    "forgetting": "online-ewc",
}

FOLDER.mkdir(exist_ok=True)
with tempfile.TemporaryDirectory() as runs:
    folders = {
        method: str(perdure.run(perdure.build("permuted-copy", method, scale="smoke"), runs).folder)
        for method in ("online-ewc", "hnet")
    }
    for name, method in SHOWN.items():
        where = [] if method is None else [folders[method]]
        if main(["analyse", name, *where, "--plot", str(FOLDER / f"{name}.png")]):
            raise SystemExit(f"{name} was not drawn")
