"""One colour per method wherever it is drawn: distinguishable for colour-blind readers, light and dark."""

from __future__ import annotations

from collections.abc import Iterable

Colour = tuple[str, str]
"""On a light and on a dark page."""

KNOWN: dict[str, Colour] = {
    "fine-tuning": ("#7a7f87", "#a3a9b3"),
    "from-scratch": ("#a68a64", "#cdb48f"),
    "multitask": ("#2f343c", "#e3e6ea"),
    "hnet": ("#0072b2", "#56b4e9"),
    "hnet+r": ("#3fa3dc", "#a5d8f7"),
    "online-ewc": ("#d55e00", "#ff8f45"),
    "si": ("#e0a100", "#ffcb57"),
    "masking": ("#009e73", "#33c99f"),
    "masking+si": ("#00644a", "#8fe3c9"),
    "masking+online-ewc": ("#7f8f1e", "#c3d168"),
    "coresets": ("#cc79a7", "#eaa6cb"),
    "rtf": ("#882255", "#d4749f"),
}
"""Hues of Okabe and Ito, and of Tol; related methods have related hues, and baselines are neutral."""

OTHERS: tuple[Colour, ...] = (
    ("#332288", "#9d90ee"),
    ("#aa4499", "#de8fd0"),
    ("#44878f", "#7cc4cc"),
    ("#661100", "#e08a78"),
)
"""For methods without their own colour; used in turn."""


def method_colours(methods: Iterable[str]) -> dict[str, Colour]:
    """A colour for each method; for known methods the same whatever else is on the page."""
    names = sorted(set(methods))
    strangers = [name for name in names if name not in KNOWN]
    return {
        name: KNOWN[name] if name in KNOWN else OTHERS[strangers.index(name) % len(OTHERS)] for name in names
    }
