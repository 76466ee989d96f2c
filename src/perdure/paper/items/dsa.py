"""Daily and Sports Activities: our numbers beside those that another benchmark has published."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from perdure.paper.comparison import ComparisonItem, Row, percent
from perdure.paper.item import Setting

PUBLISHED = {
    "Fine-tuning": ("fine-tuning", 19.92),
    "Offline": ("multitask", 99.8),
    "LwF": ("lwf", 17.81),
    "MAS": ("mas", 35.89),
    "ER": ("er", 97.19),
    "DER": ("der", 98.04),
    "Herding": ("herding", 98.04),
}
"""Methods by their names there: the name here, and the final accuracy with the 1D-CNN and LayerNorm."""

OURS = {"Online EWC": "online-ewc", "SI": "si", "HNET, task inferred": "hnet", "Duncker": "duncker"}
"""Methods without a published number."""

ENCODERS: dict[str, Mapping[str, Any]] = {
    "CNN": {"network.body": "convolutional"},
    "LSTM": {},
    "GRU": {"network.cell": "gru"},
    "LRU": {"network.cell": "lru"},
}
"""Options of each encoder beyond the preset, which is the LSTM's."""


def _row(encoder: str, label: str, method: str, published: float | None = None) -> Row:
    setting = Setting(f"{encoder}: {label}", "dsa", method, ENCODERS[encoder])
    return Row(setting, {} if published is None else {"final": percent(published, n=5)})


ITEM = ComparisonItem(
    title="Daily and Sports Activities, class-incremental",
    source="not in the paper: Qiao et al. 2024 (TSCIL), LayerNorm encoder, n = 5",
    about=(
        "Six tasks of two activities each, one growing head, and nobody says which task a window belongs to. "
        "The encoder is named in every row; only the CNN is the published one."
    ),
    note=(
        "TSCIL tunes every method on the validation stream; here settings are the presets'. Its intervals "
        "are not published."
    ),
    claims=(),
    rows=(
        *(_row("CNN", label, method, number) for label, (method, number) in PUBLISHED.items()),
        *(_row("LSTM", label, method) for label, (method, _) in PUBLISHED.items()),
        *(_row("LSTM", label, method) for label, method in OURS.items()),
        *(_row(encoder, label, method) for encoder in ("GRU", "LRU") for label, method in (("ER", "er"),)),
    ),
)
