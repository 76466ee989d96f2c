"""What an iteration costs and what must be kept as tasks are added, beside the paper's estimates."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from perdure.analysis.statistics import number
from perdure.paper.conclusions import Claim, Expectation
from perdure.paper.findings import TableCell
from perdure.paper.growth import Cost, growth
from perdure.paper.item import Drawn, FinishedRuns, Setting, WithoutRuns

TASKS = {"smoke": (1, 2, 3), "laptop": (1, 5, 20, 100), "paper": (1, 5, 20, 100)}
"""Tasks at which iterations are timed; growth is from the second of them to the last."""
SAMPLES = {"benchmark.train": 500, "benchmark.val": 10, "benchmark.test": 10}
REFERENCE = "Fine-tuning"
METHODS: Mapping[str, tuple[str, Mapping[str, Any], str]] = {
    REFERENCE: ("fine-tuning", {}, "the reference"),
    "From-scratch": ("from-scratch", {}, "no more time, memory K |ψ|"),
    "Online EWC": ("online-ewc", {}, "time |ψ|, and |ψ| N at the end of a task, memory 2 |ψ|"),
    "SI": ("si", {}, "time |ψ|, memory 4 |ψ|"),
    "Masking": ("masking", {}, "no more time or less, memory K masks"),
    "Masking+SI": ("masking+si", {}, "as masking and SI"),
    "HNET": ("hnet", {}, "time K |ψ|, memory |ψ|"),
    "HNET, C = 1": ("hnet", {"penalties.hnet-regulariser.sample": 1}, "time |ψ|, memory |ψ|"),
    "Coresets-100": ("coresets", {"rehearsal.size": 100}, "twice the time, memory |ψ| and K N F T"),
    "Gen. Replay (RtF)": ("rtf", {}, "as coresets without data, two more losses on twice the data"),
    "HNET+R": ("hnet+r", {}, "as coresets without data, two more losses, and HNET's"),
}
"""By label: the method, its options, and the increase that the paper estimates over fine-tuning."""


def _time(task: int) -> str:
    return f"ms per iteration, task {task}"


def _memory(task: int) -> str:
    return f"MB kept after task {task}"


@dataclass(frozen=True)
class _Costs(WithoutRuns):
    title: str = "Cost in time and memory as tasks are added"
    source: str = "SM text, complexity estimation of each method (supp:methods)"
    about: str = (
        "Permuted Copy with many tasks of little training: the processor time of an iteration while a task "
        "is learnt, what must outlive the task, and beside each method the increase that the paper estimates "
        "for K tasks and |ψ| weights."
    )

    def chosen(self, scale: str) -> list[Setting]:
        """What is timed; these are no runs."""
        options = {"benchmark.tasks": TASKS[scale][-1], **SAMPLES}
        return [
            Setting(label, "permuted-copy", method, {**options, **more})
            for label, (method, more, _) in METHODS.items()
        ]

    def seeds(self, scale: str) -> int:
        """Repetitions: a time varies little."""
        return 1 if scale == "smoke" else 3

    def differs(self, scale: str, given: Mapping[str, Any] | None = None) -> str:
        """The paper gives estimates, no times."""
        del scale, given
        return (
            "The paper gives estimates, no times; those of one processor core are ours. HNET keeps what was "
            "generated for old tasks, which saves time; as in the paper it can be generated again at each "
            "step (--penalties.hnet-regulariser.targets recomputed)."
        )

    def findings_of_the_paper(self, scale: str) -> Sequence[Claim]:
        """Which costs grow with the number of tasks, each relative to fine-tuning's."""
        constant = ("Online EWC", "SI", "Masking", "HNET, C = 1", "Coresets-100", "Gen. Replay (RtF)")
        return (
            *(_grows(scale, label, "the time of an iteration", _time, "same") for label in constant),
            _grows(scale, "HNET", "the time of an iteration", _time, "more"),
            _grows(scale, "From-scratch", "what is kept", _memory, "more"),
            _grows(scale, "Coresets-100", "what is kept", _memory, "more"),
            *(
                _grows(scale, label, "what is kept", _memory, "same")
                for label in ("Online EWC", "SI", "HNET")
            ),
            Claim(
                "masking takes no more time than fine-tuning, and less if only the active units are computed",
                f"{_time(TASKS[scale][-1])}, Masking over {REFERENCE}",
                ((1.0, "Masking", _time(TASKS[scale][-1])), (-1.0, REFERENCE, _time(TASKS[scale][-1]))),
                "less",
                factors=True,
            ),
        )

    def evaluate(self, results: FinishedRuns) -> tuple[list[TableCell], list[Drawn]]:
        """Times and memory of all methods, and a figure of the times."""
        from matplotlib.figure import Figure

        tasks = TASKS[results.scale]
        figure = Figure(figsize=(6.4, 4.2), layout="constrained")
        axes = figure.subplots()
        cells: list[TableCell] = []
        for place, setting in enumerate(self.chosen(results.scale)):
            measured = [growth(config, tasks) for config in setting.configs(results.scale, results.seeds)]
            cells += _cells(setting, measured, results)
            means = [number([each[task].milliseconds for each in measured]).mean for task in tasks]
            style = "--" if place > 9 else "-"
            axes.plot(tasks, means, marker="o", linestyle=style, label=setting.label)
        axes.set(xlabel="task", ylabel="ms per iteration", xscale="log", yscale="log")
        axes.set_xticks(tasks, [str(task) for task in tasks])
        axes.minorticks_off()
        axes.grid(alpha=0.3)
        axes.legend(fontsize=7, loc="center left", bbox_to_anchor=(1, 0.5))
        return cells, [Drawn("time", self.title, "Processor time of an iteration; one thread.", figure)]


def _cells(
    setting: Setting, measured: Sequence[Mapping[int, Cost]], results: FinishedRuns
) -> list[TableCell]:
    """Times of the tasks, of the end of the last one, and what is kept after each of them."""
    tasks = list(measured[0])
    columns = {_time(task): [each[task].milliseconds for each in measured] for task in tasks}
    columns[f"ms at the end of task {tasks[-1]}"] = [each[tasks[-1]].finish for each in measured]
    columns |= {_memory(task): [each[task].kept / 1e6 for each in measured] for task in tasks}
    return [
        TableCell(
            setting.label,
            column,
            number(values),
            command=results.command("costs"),
            values=tuple(values),
            remark=f"paper: {METHODS[setting.label][2]}",
        )
        for column, values in columns.items()
    ]


def _grows(scale: str, label: str, what: str, column: Callable[[int], str], expects: Expectation) -> Claim:
    """Whether a cost of a method grows with the tasks, relative to that of fine-tuning."""
    several, last = TASKS[scale][1], TASKS[scale][-1]
    does = "grows" if expects == "more" else "does not grow"
    unlike = (label, last, 1.0), (REFERENCE, last, -1.0), (label, several, -1.0), (REFERENCE, several, 1.0)
    return Claim(
        f"{what} {does} with the number of tasks ({label})",
        f"{what} over that of {REFERENCE}, at task {last} over task {several}",
        tuple((sign, row, column(task)) for row, task, sign in unlike),
        expects,
        factors=True,
    )


ITEM = _Costs()
