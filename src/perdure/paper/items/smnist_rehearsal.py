"""Rehearsal on Split-SMNIST: stored samples, generative replay, and replay protected by a hypernetwork."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from perdure.paper.comparison import ComparisonItem, row
from perdure.paper.conclusions import Claim, difference

SPLIT: Mapping[str, Any] = {"benchmark.variant": "split"}
WIDE = {**SPLIT, "rehearsal.input_layers": (256,), "rehearsal.output_layers": (256,)}
"""The starred variants: dense layers of 256 units before and after the decoder's LSTM."""


def _stored(size: int) -> dict[str, Any]:
    return {**SPLIT, "rehearsal.size": size}


ITEM = ComparisonItem(
    title="Rehearsal on Split-SMNIST",
    source="SM Table (tab:smnist:replay), n = 10",
    about="Five pairs of pen-drawn digits. The star marks decoders with dense layers around their LSTM.",
    rows=(
        row("Multitask", "smnist", "multitask", None, (99.18, 0.05), SPLIT),
        row("Coresets-10", "smnist", "coresets", (99.64, 0.02), (96.44, 0.25), _stored(10)),
        row("Coresets-100", "smnist", "coresets", (99.51, 0.01), (98.85, 0.05), _stored(100)),
        row("RtF", "smnist", "rtf", (98.95, 0.08), (95.01, 0.88), SPLIT),
        row("RtF*", "smnist", "rtf", (99.51, 0.02), (98.41, 0.22), WIDE),
        row("HNET+R", "smnist", "hnet+r", (99.67, 0.01), (99.34, 0.04), SPLIT),
        row("HNET+R*", "smnist", "hnet+r", (99.44, 0.03), (99.10, 0.13), WIDE),
    ),
    laptop_seeds=3,
    claims=(
        difference("replay protected by a hypernetwork is better than plain replay", "HNET+R", "RtF"),
        difference("a larger decoder helps plain replay", "RtF*", "RtF"),
        difference("with a larger decoder the two differ by less than a point", "HNET+R*", "RtF*", "same"),
        Claim(
            "replay protected by a hypernetwork is better than 100 stored samples",
            "HNET+R minus Coresets-100 (final accuracy)",
            ((1.0, "HNET+R", "final"), (-1.0, "Coresets-100", "final")),
            "more",
            margin=0.25,
        ),
        difference("more stored samples help", "Coresets-100", "Coresets-10"),
        difference(
            "replay protected by a hypernetwork is as good as joint training", "HNET+R", "Multitask", "same"
        ),
    ),
)
