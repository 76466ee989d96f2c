"""Named methods: each is a choice of weights, penalties and rehearsal, in one line.

Names joined by + combine: masking+si takes the masked weights of one and the penalty of the other.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from perdure.errors import PerdureError, unknown


@dataclass(frozen=True)
class Method:
    """A choice of pieces by name."""

    about: str
    weights: str = "shared"
    penalties: tuple[str, ...] = ()
    rehearsal: str | None = None
    together: bool = False
    """Whether all tasks are learnt in one phase."""


METHODS = {
    "fine-tuning": Method("one network, nothing protects it: forgets"),
    "from-scratch": Method("a new network for each task: cannot forget, cannot transfer", weights="separate"),
    "multitask": Method("all tasks at once: the usual upper bound", together=True),
    "masking": Method("a random sub-network for each task", weights="masked"),
    "hnet": Method(
        "a hypernetwork makes each task's weights", weights="hypernetwork", penalties=("generated",)
    ),
    "coresets": Method("some samples of each task are kept and rehearsed", rehearsal="coreset"),
    "rtf": Method("a generative model replays old tasks", rehearsal="generative"),
    "hnet+r": Method(
        "a generative model, its decoders made by a hypernetwork, replays old tasks",
        rehearsal="generative-hypernetwork",
    ),
    "online-ewc": Method("important weights (Fisher) are held back", penalties=("online-ewc",)),
    "si": Method("important weights (path integral) are held back", penalties=("si",)),
}
"""The methods that have names of their own, in the order in which combinations name them."""

COMBINATIONS = ("masking+si", "masking+online-ewc", "hnet+coresets", "coresets+online-ewc")
"""Combinations worth listing; any other that makes sense works too."""


def parts_of(name: str) -> list[str]:
    """The methods that a name joins; hnet+r is one method."""
    return re.split(r"\+(?!r(?:\+|$))", name)


def canonical(name: str) -> str:
    """One name for a combination, whatever the order of its parts: si+masking is masking+si."""
    order = list(METHODS)
    return "+".join(sorted(parts_of(name), key=lambda part: order.index(part) if part in order else -1))


def compose(name: str) -> Method:
    """The method that a name stands for; parts joined by + are merged."""
    parts = parts_of(name)
    for part in parts:
        if part not in METHODS:
            raise unknown("method", part, [*METHODS, *COMBINATIONS])
    methods = [METHODS[part] for part in parts]
    sources = {method.weights for method in methods} - {"shared"}
    penalties = tuple(dict.fromkeys(p for method in methods for p in method.penalties))
    together = any(method.together for method in methods)
    if len(set(parts)) < len(parts):
        raise PerdureError(f"Method '{name}' names a part twice.")
    if len(sources) > 1:
        raise PerdureError(
            f"Method '{name}' asks for two sources of weights ({', '.join(sorted(sources))}); choose one."
        )
    if len(parts) > 1 and together:
        raise PerdureError(
            f"Method '{name}' has no meaning: multitask learns all tasks in one phase, "
            f"so there is no old task to protect."
        )
    if len(parts) > 1 and "separate" in sources:
        raise PerdureError(
            f"Method '{name}' has no meaning: from-scratch shares no weights between tasks, "
            f"so there is nothing to protect."
        )
    if "hypernetwork" in sources and "online-ewc" in penalties:
        raise PerdureError(
            f"Method '{name}' has no meaning: online-ewc needs weights that are trained themselves, but "
            f"here a hypernetwork makes them, and its own penalty protects them."
        )
    rehearsals = {method.rehearsal for method in methods} - {None}
    if len(rehearsals) > 1:
        raise PerdureError(f"Method '{name}' asks for two ways to rehearse; choose one.")
    if rehearsals and "masked" in sources:
        raise PerdureError(
            f"Method '{name}' has no meaning here: masking trains one task's sub-network at a time, "
            f"and rehearsal would have to train those of old tasks too."
        )
    about = "; ".join(method.about for method in methods)
    return Method(about, next(iter(sources), "shared"), penalties, next(iter(rehearsals), None), together)
