"""The figure of docs/analyses.md: how much of a stroke digit tells to which pair it belongs.

`python docs/figures/task_inference.py curves` learns (a few minutes on one core) and writes the numbers,
`python docs/figures/task_inference.py draw` draws them.
"""

import json
import sys
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
NUMBERS = HERE / "task_inference.json"
SHOWN = (  # method, criterion, label, seeds
    ("coresets", "head", "coresets: one head over 100 stored samples per task", (0, 1, 2)),
    ("coresets", "entropy", "coresets: lowest entropy of the answers", (0, 1, 2)),
    ("hnet", "entropy", "hnet: lowest entropy of the answers", (0,)),
)
COLOURS = ("#cc79a7", "#882255", "#0072b2")
STEPS = (3, 5, 10, 15)  # at laptop scale no digit has more than 12 moves
TRAINING = {
    "iterations": 300,
    "validate_every": 50,
    "batch_size": 64,
    "learning_rate": 2e-3,
    "patience": None,
    "decay": 0.05,
}


def some(split, count: int):
    """Random sequences of a split, each as long as it is, and their classes."""
    index = np.random.RandomState(0).permutation(len(split.x))[:count]
    return [split.x[n][: split.lengths[n]] for n in index], split.y[index]


def curves() -> None:
    """Learn the five pairs with each method and seed; percent of tasks inferred on test digits by steps."""
    import perdure

    tasks = perdure.build("smnist", "coresets").benchmark.build()
    names = ["digits " + ", ".join(task.name.split()[1::2]) for task in tasks]
    found: dict[str, list[dict[int, float]]] = {label: [] for _, _, label, _ in SHOWN}
    for method in dict.fromkeys(method for method, _, _, _ in SHOWN):
        for seed in next(seeds for name, _, _, seeds in SHOWN if name == method):
            learner = perdure.ContinualLearner(
                method, network={"cell": "lstm", "hidden": 64}, training=TRAINING, seed=seed, verbose=0
            )
            for name, task in zip(names, tasks, strict=True):
                learner.learn(name, *some(task.train, 3000), validation=some(task.val, 300))
            test = {name: some(task.test, 400)[0] for name, task in zip(names, tasks, strict=True)}
            for owner, by, label, _ in SHOWN:
                if owner == method:
                    found[label].append(learner.inference_curve(test, STEPS, by=by))
    NUMBERS.write_text(json.dumps(found, indent=1) + "\n")


def draw() -> None:
    """Mean and range over seeds."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 4.2), layout="constrained")
    axes = figure.subplots()
    for (label, found), colour in zip(json.loads(NUMBERS.read_text()).items(), COLOURS, strict=True):
        steps = [int(step) for step in found[0]]
        values = np.array([list(curve.values()) for curve in found])
        said = f"{label} (n = {len(found)})"
        axes.plot(steps, values.mean(0), color=colour, marker="o", ms=3, label=said)
        axes.fill_between(steps, values.min(0), values.max(0), color=colour, alpha=0.2)
    axes.axhline(20, color="grey", lw=0.8, ls=":", label="chance")
    axes.set_xlim(0, 15.5)
    axes.set_ylim(0, 100)
    axes.set_xlabel("pen moves seen so far")
    axes.set_ylabel("task inferred (%)")
    axes.legend(fontsize=8, loc="lower center", bbox_to_anchor=(0.5, 1.0))
    figure.savefig(HERE.parent / "task_inference.png", dpi=130)


if __name__ == "__main__":
    {"curves": curves, "draw": draw}[sys.argv[1]]()
