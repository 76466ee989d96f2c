"""Table 2: HNET and Online EWC when memory must last longer or more must be computed."""

from __future__ import annotations

from perdure.paper.comparison import ComparisonItem, row
from perdure.paper.conclusions import difference, interaction

ITEM = ComparisonItem(
    title="Padded Copy and Pattern Manipulation",
    source="Table 2 (tab:copy:results:i25_xor), n = 5",
    about=(
        "The same patterns after a longer delay (i = 25), so that memory must last longer, or r "
        "permutations XORed together, so that more must be computed."
    ),
    note=(
        "Padded Copy: tasks are permuted; those of the published HNET command are not, so all are alike. The "
        "rows with i = 5 are runs of Table 1, for comparison."
    ),
    rows=(
        row("HNET, i = 5", "permuted-copy", "hnet"),
        row("Online EWC, i = 5", "permuted-copy", "online-ewc"),
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
    claims=(
        difference(
            "length alone hardly affects Online EWC", "Online EWC, i = 5", "Online EWC, padded i = 25", "same"
        ),
        difference("length alone hardly affects HNET", "HNET, i = 5", "HNET, padded i = 25", "same"),
        difference(
            "length alone costs Online EWC less than one XOR does",
            "Online EWC, padded i = 25",
            "Online EWC, r = 1",
        ),
        difference(
            "length alone costs Online EWC less than five XORs do",
            "Online EWC, padded i = 25",
            "Online EWC, r = 5",
        ),
        difference("more computation costs Online EWC more", "Online EWC, r = 1", "Online EWC, r = 5"),
        difference(
            "HNET is better than Online EWC with a long delay",
            "HNET, padded i = 25",
            "Online EWC, padded i = 25",
        ),
        difference("HNET is better than Online EWC with one XOR", "HNET, r = 1", "Online EWC, r = 1"),
        difference("HNET is better than Online EWC with five XORs", "HNET, r = 5", "Online EWC, r = 5"),
        interaction(
            "five XORs cost HNET less than Online EWC",
            "fall of Online EWC from r = 1 to r = 5 minus that of HNET",
            ("Online EWC, r = 1", "Online EWC, r = 5", "HNET, r = 1", "HNET, r = 5"),
        ),
    ),
)
