"""Made-up but lifelike records and findings for the report, some with names that try to break a page."""

from __future__ import annotations

import io

import matplotlib
import numpy as np
from matplotlib.figure import Figure

from perdure.config import build
from perdure.paper.findings import Drawing, Findings, Number, Pair, TableCell
from perdure.storage.record import Record

SCRIPT = "<script>alert(1)</script>"
NASTY = (
    SCRIPT,
    "\"quotes\" & 'apostrophes' </td>",
    "a-very-long-name-" * 12,
    "naïve Überprüfung 连续学习 🧠",
    "</script><img src=x onerror=alert(2)>",
    "{{ 7 * 7 }}",
)
TASKS = 5


def record(method: str, seed: int, *, benchmark: str = "permuted-copy", checks: int = 20) -> Record:
    """A run of five tasks that forgets a little; numbers follow from method and seed."""
    chance = np.random.default_rng([seed, *method.encode()])
    loss = chance.uniform(0, 30)
    accuracy = [
        [
            float(chance.uniform(45, 55)) if task > phase else float(99.9 - loss * (phase - task) / 5)
            for task in range(TASKS)
        ]
        for phase in range(TASKS)
    ]
    try:
        config = build(benchmark, method, seed=seed)
        plain, digits = config.json, config.hash
    except Exception:
        plain = {
            "revision": 1,
            "benchmark": {"name": benchmark, "<b>": SCRIPT},
            "method": method,
            "seed": seed,
        }
        digits = f"{sum(method.encode()) % 65536:08x}{seed:08x}"
    terms = ("loss task", "loss orthogonal", "loss si", "val loss", "val accuracy")
    curves = [
        [
            {"iteration": 100.0 * (check + 1)} | {name: float(chance.exponential(3)) for name in terms}
            for check in range(checks)
        ]
        for _ in range(TASKS)
    ]
    return Record(
        hash=digits,
        benchmark=benchmark,
        method=method,
        seed=seed,
        accuracy=accuracy,
        during=float(np.mean([accuracy[task][task] for task in range(TASKS)])),
        final=float(np.mean(accuracy[-1])),
        seconds=float(chance.uniform(20, 3000)),
        iterations=[100 * checks] * TASKS,
        tasks=[f"{benchmark} {task + 1}" for task in range(TASKS)],
        parameters={"network": 142883, "trained": int(chance.integers(100_000, 900_000))},
        kept=[{"weights": 571532, "rehearsal": int(chance.integers(1, 10**7))}] * TASKS,
        memory={"orthogonal": 0, "rehearsal": int(chance.integers(0, 10**7)), "a stored sample": 123},
        curves=curves,
        timings=[{"train": 8.3, "finish": 0.0006, "test": 0.09}] * TASKS,
        config=plain,
        versions={"perdure": "0.1.0", "torch": "2.13.0"},
        machine={"system": "Linux x86_64", "device": "cpu"},
    )


def records() -> list[Record]:
    """Runs of known methods over three seeds, and one of each nasty name."""
    known = [
        record(method, seed) for method in ("fine-tuning", "hnet", "si", "masking+si") for seed in range(3)
    ]
    return known + [record(name, 0, benchmark=NASTY[place - 1]) for place, name in enumerate(NASTY)]


def drawing(shift: float = 0.0) -> str:
    """A figure as matplotlib writes it: clip paths, markers that are used again, and a raster image."""
    figure = Figure(figsize=(6, 3), layout="constrained")
    left, right = figure.subplots(1, 2)
    left.plot([0, 1, 2], [shift, 1.23456789, 4], marker="o", label="<tag> & more")
    left.legend()
    right.imshow(np.arange(9).reshape(3, 3))
    text = io.StringIO()
    with matplotlib.rc_context({"svg.hashsalt": "the same ids in all drawings"}):
        figure.savefig(text, format="svg", metadata={"Date": None})
    return text.getvalue()


def cells(runs: list[Record]) -> list[TableCell]:
    """Cells of all kinds: with and without published numbers, verdicts, runs and our own number."""
    hashes = tuple(run.hash for run in runs if run.method == "hnet")
    command = "perdure run permuted-copy hnet --seeds 3"
    return [
        TableCell(
            "hnet",
            "final",
            Number(97.91, 0.5, 3, 96.9, 98.8),
            Number(99.96, 0.01, 10),
            "agrees",
            command,
            hashes,
        ),
        TableCell("hnet", "during", Number(99.5, None, 1), Number(99.98, 0.0, 10), "agrees", command, hashes),
        TableCell(
            "si", "final", Number(94.27, 0.32, 5), Number(90.0, 0.24, 10), "higher than published", command
        ),
        TableCell(
            "fine-tuning", "final", Number(66.31, 0.46, 5), Number(71.05, 0.13, 10), "lower than published"
        ),
        TableCell("masking+si", "final", Number(99.64, 0.27, 5), None, "", command),
        TableCell(
            "masking", "final", Number(69.5, 0.8, 5), Number(72.3, 0.8, 10), "not decided", command, (), 12
        ),
        TableCell("rtf", "final", None, Number(100.0, 0.0, 10), "", command),
        *(TableCell(name, name, Number(50.0, 1.0, 2), Number(51.0), name, name) for name in NASTY),
    ]


def pairs() -> list[Pair]:
    """Pairs of all kinds: each order, one seed, nothing published, names that try to break a page."""
    return [
        Pair("hnet", "si", Number(3.64, 0.6, 3), 0.03, 0.25, Number(9.96, 0.24, 10), "as published"),
        Pair("rtf", "hnet", Number(-0.2, 0.3, 3), 0.57, 0.75, Number(0.04, 0.01, 10), "too close to call"),
        Pair("si", "fine-tuning", Number(-27.96, 0.5, 5), 1e-7, 0.0625, Number(19.0), "the other way round"),
        Pair("masking+si", "hnet", Number(1.73, None, 1), None, None),
        Pair("si", "masking", Number(1.7, 1.1, 3), 0.3, 0.5, Number(21.0, 0.9, 10), "not decided"),
        *(Pair(name, name, Number(1.0, 0.1, 2), 0.5, 0.5, Number(1.0), name) for name in NASTY),
    ]


HOSTILE = """<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"
  viewBox="0 0 300 90" onload="document.title = 'hit'; alert(1)">
  <script>top.document.title = "hit"; alert(2)</script>
  <style>@import url(https://example.org/style.css); * { fill: red }</style>
  <image href="https://example.org/x.png" width="9" height="9"/><use xlink:href="https://example.org/other.svg#a"/>
  <foreignObject width="9" height="9"><iframe xmlns="http://www.w3.org/1999/xhtml" src="https://example.org"/></foreignObject>
  <rect id="runs-table" onclick="alert(3)" width="300" height="90"/></svg>"""
"""A drawing that tries to act, to load, and to take a name of the page."""


def findings(runs: list[Record]) -> list[Findings]:
    """Two items with drawings, one nasty in all its words, and one that is empty."""
    one = Findings(
        "table-1",
        "Permuted Copy Task",
        "Table 1 (tab:copy), n = 10",
        "What is kept.",
        "laptop",
        "Three seeds instead of ten.",
        "perdure reproduce table-1",
        cells(runs),
        [
            Drawing("Lines", "Two drawings with the same ids.", drawing()),
            Drawing("More", "Again.", drawing(1.0)),
            Drawing("Hostile", "It would act and load, were it a part of the page.", HOSTILE),
        ],
        1234.5,
        pairs(),
    )
    nasty = Findings(*NASTY[:6], SCRIPT, [], [Drawing(SCRIPT, SCRIPT, "<svg><unclosed>")], 0.0)
    return [one, nasty, Findings("empty", "Empty", "Fig. 4", "", "smoke", "", "", [], [])]
