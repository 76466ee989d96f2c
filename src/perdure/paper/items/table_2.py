"""Table 2: HNET and Online EWC when memory must last longer or more must be computed."""

from __future__ import annotations

from perdure.paper.comparison import ComparisonItem, row

ITEM = ComparisonItem(
    title="Padded Copy and Pattern Manipulation",
    source="Table 2 (tab:copy:results:i25_xor), n = 5",
    about=(
        "In the paper a longer silence before recall (i = 25) hardly hurts Online EWC; more computation, r "
        "permutations XORed together, does. HNET is affected less."
    ),
    note="Padded Copy: tasks are permuted; those of the published HNET command are not, so all are alike.",
    rows=(
        row("HNET, padded i = 25", "padded-copy", "hnet", (100.0, 0.0), (100.0, 0.0), n=5),
        row("Online EWC, padded i = 25", "padded-copy", "online-ewc", (97.94, 0.09), (97.89, 0.10), n=5),
        row(
            "HNET, r = 1",
            "pattern-manipulation",
            "hnet",
            (100.0, 0.0),
            (99.84, 0.15),
            {"benchmark.r": 1},
            n=5,
        ),
        row(
            "Online EWC, r = 1",
            "pattern-manipulation",
            "online-ewc",
            (98.52, 0.27),
            (95.45, 0.17),
            {"benchmark.r": 1},
            n=5,
        ),
        row(
            "HNET, r = 5",
            "pattern-manipulation",
            "hnet",
            (95.73, 1.44),
            (93.87, 1.24),
            {"benchmark.r": 5},
            n=5,
        ),
        row(
            "Online EWC, r = 5",
            "pattern-manipulation",
            "online-ewc",
            (87.40, 4.53),
            (81.80, 3.25),
            {"benchmark.r": 5},
            n=5,
        ),
    ),
)
