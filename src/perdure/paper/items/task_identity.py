"""Online EWC with the task identity as an input, on every benchmark."""

from __future__ import annotations

from perdure.paper.comparison import ComparisonItem, Row, row
from perdure.paper.conclusions import difference

Pair = tuple[float, float]


def _pair(
    label: str, benchmark: str, without: tuple[Pair, Pair], given: tuple[Pair, Pair], m: int = 0
) -> list[Row]:
    digits = {"benchmark.digits": m} if m else {}
    told = {**digits, "network.task_identity": True}
    return [
        row(label, benchmark, "online-ewc", *without, digits),
        row(f"{label}, with identity", benchmark, "online-ewc", *given, told),
    ]


ITEM = ComparisonItem(
    title="Online EWC with the task as an input",
    source="SM Table (supp:tab:ewc:task:identity), n = 10",
    about="A one-hot task input lets one network compute differently for each task.",
    rows=(
        *_pair(
            "Permuted Copy",
            "permuted-copy",
            ((99.93, 0.01), (98.66, 0.14)),
            ((97.61, 0.31), (97.54, 0.30)),
        ),
        *_pair("SMNIST m = 1", "smnist", ((98.52, 0.11), (97.05, 0.59)), ((99.39, 0.08), (98.36, 0.37)), 1),
        *_pair("SMNIST m = 2", "smnist", ((91.86, 1.13), (76.65, 3.39)), ((95.71, 0.53), (88.51, 1.26)), 2),
        *_pair("SMNIST m = 3", "smnist", ((83.62, 1.10), (75.26, 1.85)), ((96.63, 0.89), (93.14, 1.24)), 3),
        *_pair("SMNIST m = 4", "smnist", ((92.33, 2.49), (73.16, 0.98)), ((90.65, 1.28), (88.94, 1.32)), 4),
        *_pair("AudioSet", "audioset", ((68.82, 0.20), (65.56, 0.35)), ((71.74, 0.20), (66.35, 0.36))),
        *_pair("PoS tagging", "pos", ((87.49, 0.04), (86.89, 0.03)), ((89.78, 0.03), (89.67, 0.04))),
    ),
    laptop_seeds=3,
    claims=(
        difference(
            "the task as input does not help on Permuted Copy",
            "Permuted Copy, with identity",
            "Permuted Copy",
            "less",
        ),
        *(
            difference(f"the task as input helps on {name}", f"{name}, with identity", name)
            for name in ("SMNIST m = 1", "SMNIST m = 2", "SMNIST m = 3", "SMNIST m = 4", "PoS tagging")
        ),
        difference(
            "the task as input makes little difference on AudioSet",
            "AudioSet, with identity",
            "AudioSet",
            "same",
        ),
    ),
)
