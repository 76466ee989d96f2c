"""Named methods: each is a choice of weights, penalties and rehearsal, in one line.

Names joined by + are combined: masking+si takes the masked weights of one and the penalty of the other.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from perdure.errors import PerdureError, shortened, unknown


@dataclass(frozen=True)
class Method:
    """A choice of pieces by name."""

    name: str
    about: str
    weights: str = "shared"
    penalties: tuple[str, ...] = ()
    rehearsal: str | None = None
    together: bool = False
    """Whether all tasks are learnt in one phase."""
    presets: Mapping[str, Mapping[str, Mapping[str, Any]]] = field(default_factory=dict, hash=False)
    """Settings by benchmark ("all" for any) and scale, for methods from plugins: values by dotted name."""
    like: str | None = None
    """A method of the paper whose network and training it takes where a benchmark has no settings for it."""

    def __post_init__(self) -> None:
        """Refuse a name where names are needed, of which each letter would be looked for, and the reverse."""
        if not isinstance(self.penalties, tuple) or not all(isinstance(n, str) for n in self.penalties):
            example = self.penalties if isinstance(self.penalties, str) else "si"
            raise PerdureError(
                f"Method '{self.name}': penalties must be a tuple of names, such as (\"{example}\",), where "
                f"the comma makes the tuple (given: {shortened(repr(self.penalties))})."
            )
        for field_name in ("name", "about", "weights", "rehearsal"):
            given = getattr(self, field_name)
            if not isinstance(given, str) and (given, field_name) != (None, "rehearsal"):
                raise PerdureError(
                    f"Method '{self.name}': {field_name} must be a text (given: {shortened(repr(given))})."
                )


BEYOND = (
    Method(
        "er",
        "samples of old tasks, with their true targets, are trained on again",
        rehearsal="er",
        like="coresets",
    ),
    Method(
        "der",
        "stored outputs of old tasks are matched",
        rehearsal="der",
        like="coresets",
    ),
    Method(
        "der++",
        "stored outputs of old tasks are matched, and their true targets trained on again",
        rehearsal="der++",
        like="coresets",
    ),
    Method(
        "a-gem",
        "gradients that would raise the loss on stored samples are projected",
        rehearsal="a-gem",
        like="coresets",
    ),
    Method(
        "herding",
        "samples nearest to the mean features are rehearsed, and tell the classes apart",
        rehearsal="herding",
        like="coresets",
    ),
    Method(
        "lwf",
        "old outputs on the new task's inputs are kept",
        penalties=("lwf",),
        like="fine-tuning",
    ),
    Method(
        "mas",
        "changes to weights that the outputs depend on are penalised",
        penalties=("mas",),
        like="online-ewc",
    ),
    Method(
        "l2-anchor",
        "changes to all weights are penalised alike: what importance must beat",
        penalties=("l2-anchor",),
        like="online-ewc",
    ),
    Method(
        "owm",
        "weights move only where old inputs hardly reach",
        penalties=("owm",),
        like="fine-tuning",
    ),
    Method(
        "gpm",
        "weights move only outside the subspace of old inputs",
        penalties=("gpm",),
        like="fine-tuning",
    ),
    Method(
        "duncker",
        "weights move only where old states and their images hardly reach",
        penalties=("duncker",),
        like="fine-tuning",
    ),
    Method(
        "l2-start",
        "all weights are drawn towards their initial values, to stay able to learn",
        penalties=("l2-start",),
        like="fine-tuning",
    ),
    Method(
        "shrink-and-perturb",
        "weights are shrunk and perturbed before each task, to stay able to learn",
        penalties=("shrink-and-perturb",),
        like="fine-tuning",
    ),
)
"""Methods that the paper does not have; each file names its source."""

METHODS = {
    method.name: method
    for method in (
        Method("fine-tuning", "one network without protection: forgets"),
        Method("from-scratch", "a new network for each task: no forgetting, no transfer", weights="separate"),
        Method("multitask", "all tasks at once: the usual upper bound", together=True),
        Method("masking", "a random sub-network for each task", weights="masked"),
        Method(
            "hnet",
            "a hypernetwork generates each task's weights",
            weights="hypernetwork",
            penalties=("hnet-regulariser",),
        ),
        Method("coresets", "some samples of each task are stored and rehearsed", rehearsal="coreset"),
        Method("rtf", "a generative model replays old tasks", rehearsal="generative"),
        Method(
            "hnet+r",
            "a generative model, with decoders from a hypernetwork, replays old tasks",
            rehearsal="generative-hypernetwork",
        ),
        Method(
            "online-ewc", "changes to important weights (Fisher) are penalised", penalties=("online-ewc",)
        ),
        Method("si", "changes to important weights (path integral) are penalised", penalties=("si",)),
        *BEYOND,
    )
}
"""The named methods, in the order in which combinations name them."""

COMBINATIONS = ("masking+si", "masking+online-ewc", "hnet+coresets", "coresets+online-ewc")
"""Combinations worth listing; any other sensible one works too."""


def parts_of(name: str, known: Collection[str]) -> list[str]:
    """The methods that a name joins; names that contain a + themselves, such as hnet+r, are found first."""
    parts: list[str] = []
    rest = name
    while rest:
        begins = [each for each in known if rest == each or rest.startswith(each + "+")]
        part = max(begins, key=len) if begins else rest.partition("+")[0]
        parts.append(part)
        if rest == part + "+":
            parts.append("")  # a + with nothing to join
        rest = rest[len(part) + 1 :]
    return parts or [""]


def canonical(name: str, known: Collection[str]) -> str:
    """One name for a combination, whatever the order of its parts: si+masking is masking+si."""
    order = list(known)
    parts = parts_of(name, known)
    return "+".join(sorted(parts, key=lambda part: order.index(part) if part in order else -1))


def compose(name: str, known: Mapping[str, Method]) -> Method:
    """The method with the given name; parts joined by + are merged.

    The pieces themselves check whether they can be combined, when a config is built.
    """
    parts = parts_of(name, known)
    if "" in parts and len(parts) > 1:
        raise PerdureError(
            f"A + in the method's name has nothing to join ('{name.strip('+')}' and nothing); write it as in "
            f"masking+si."
        )
    for part in parts:
        if part not in known:
            raise unknown("method", part, [*known, *COMBINATIONS])
    methods = [known[part] for part in parts]
    if len(set(parts)) < len(parts):
        raise PerdureError(f"Method '{name}' names a part twice.")
    sources = {method.weights for method in methods} - {"shared"}
    if len(sources) > 1:
        raise PerdureError(
            f"Method '{name}' has two sources of weights ({', '.join(sorted(sources))}); choose one."
        )
    rehearsals = {method.rehearsal for method in methods} - {None}
    if len(rehearsals) > 1:
        raise PerdureError(f"Method '{name}' has two kinds of rehearsal; choose one.")
    return Method(
        name,
        "; ".join(method.about for method in methods),
        weights=next(iter(sources), "shared"),
        penalties=tuple(dict.fromkeys(p for method in methods for p in method.penalties)),
        rehearsal=next(iter(rehearsals), None),
        together=any(method.together for method in methods),
    )
