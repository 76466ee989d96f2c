"""Sequential Split-SMNIST with m = 1 to 4 digits: figure and table."""

from __future__ import annotations

from perdure.paper.comparison import row
from perdure.paper.conclusions import difference, interaction
from perdure.paper.sweep import SweepItem, SweepPoint

Pairs = list[tuple[float, float]]

PUBLISHED: dict[str, tuple[str, Pairs, Pairs]] = {
    "Multitask": (
        "multitask",
        [(99.72, 0.02), (99.19, 0.04), (99.06, 0.04), (98.72, 0.06)],
        [(99.72, 0.02), (99.19, 0.04), (99.06, 0.04), (98.72, 0.06)],
    ),
    "From-scratch": (
        "from-scratch",
        [(99.70, 0.02), (95.86, 1.16), (92.13, 1.25), (88.48, 0.09)],
        [(99.70, 0.02), (95.86, 1.16), (92.13, 1.25), (88.48, 0.09)],
    ),
    "Fine-tuning": (
        "fine-tuning",
        [(99.67, 0.03), (99.30, 0.04), (99.14, 0.04), (98.96, 0.03)],
        [(89.07, 1.22), (75.23, 2.25), (68.28, 0.72), (69.04, 0.73)],
    ),
    "HNET": (
        "hnet",
        [(99.54, 0.02), (97.87, 0.99), (91.63, 1.54), (95.49, 1.13)],
        [(99.52, 0.02), (94.89, 3.81), (91.63, 1.53), (94.42, 1.85)],
    ),
    "Online EWC": (
        "online-ewc",
        [(98.52, 0.11), (91.86, 1.13), (83.62, 1.10), (92.33, 2.49)],
        [(97.05, 0.59), (76.65, 3.39), (75.26, 1.85), (73.16, 0.98)],
    ),
    "SI": (
        "si",
        [(99.21, 0.04), (89.78, 1.09), (74.74, 0.14), (69.58, 0.55)],
        [(97.08, 0.66), (85.10, 1.57), (74.72, 0.14), (69.58, 0.55)],
    ),
    "Masking": (
        "masking",
        [(99.63, 0.02), (99.25, 0.02), (96.04, 1.35), (87.78, 0.92)],
        [(99.23, 0.14), (93.96, 1.29), (86.20, 0.95), (76.75, 1.32)],
    ),
    "Masking+SI": (
        "masking+si",
        [(99.68, 0.02), (99.02, 0.04), (98.61, 0.22), (96.42, 1.27)],
        [(99.68, 0.02), (99.02, 0.04), (98.62, 0.22), (96.43, 1.26)],
    ),
    "Coresets": (
        "coresets",
        [(99.61, 0.01), (99.05, 0.03), (98.70, 0.05), (85.46, 1.60)],
        [(99.40, 0.03), (98.10, 0.07), (97.60, 0.08), (82.89, 1.80)],
    ),
}
"""By method: its name here, and during and final for m = 1 to 4 (SM Table supp:tab:ssmnist:results)."""

ITEM = SweepItem(
    title="Sequential Split-SMNIST with more digits per sequence",
    source="Fig. 4 (fig:ssmnist_acc_vs_seq_len) and SM Table (supp:tab:ssmnist:results), n = 10",
    about=(
        "Strings of m pen-drawn digits in five tasks of two classes; more digits require more working memory."
    ),
    axis="digits m",
    points=tuple(
        SweepPoint(
            label,
            m,
            row(f"{label}, m = {m}", "smnist", method, during[m - 1], final[m - 1], {"benchmark.digits": m}),
        )
        for label, (method, during, final) in PUBLISHED.items()
        for m in (1, 2, 3, 4)
    ),
    laptop_seeds=3,
    claims=(
        *(
            difference(f"{label} loses accuracy as digits are added", f"{label}, m = 1", f"{label}, m = 4")
            for label in ("Online EWC", "SI", "Masking")
        ),
        *(
            interaction(
                f"{label} loses more than HNET does as digits are added",
                f"fall of {label} from m = 1 to m = 4 minus that of HNET",
                (f"{label}, m = 1", f"{label}, m = 4", "HNET, m = 1", "HNET, m = 4"),
            )
            for label in ("Online EWC", "SI")
        ),
        difference("HNET is better than Online EWC with four digits", "HNET, m = 4", "Online EWC, m = 4"),
        difference("HNET is better than SI with four digits", "HNET, m = 4", "SI, m = 4"),
        difference(
            "masking with SI is better than HNET with three digits", "Masking+SI, m = 3", "HNET, m = 3"
        ),
        difference("stored samples are better than HNET with three digits", "Coresets, m = 3", "HNET, m = 3"),
        difference("stored samples fall behind HNET with four digits", "HNET, m = 4", "Coresets, m = 4"),
    ),
)
