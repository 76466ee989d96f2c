"""Ranges and alternatives in place of option values, which turn a run into a search.

`1e-4..1e-2` is a log-uniform range, `0.2..0.8:linear` a uniform one; `a,b,c` are alternatives, written
`64,32|128` where a comma is part of the value, such as layer sizes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal

from perdure.config import CHOOSING, Sections
from perdure.search.problem import fault_of, typed_value
from perdure.search.spaces import Domain, Range

NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
RANGE = re.compile(rf"({NUMBER})\.\.({NUMBER})(?::(log|linear))?")


def looks_free(name: str, text: str) -> bool:
    """Whether a text may be a range or alternatives; a cheap check that imports nothing."""
    return "." in name and (bool(RANGE.fullmatch(text)) or "|" in text or "," in text)


def domain_in(kinds: Sections, name: str, text: str) -> Domain | None:
    """The range or alternatives in a text; None if it is a plain value."""
    found = RANGE.fullmatch(text)
    if found:
        scale: Literal["log", "linear"] = "linear" if found[3] == "linear" else "log"
        return Range(float(found[1]), float(found[2]), scale)
    if "|" in text:
        parts = text.split("|")
    elif "," in text and (name in CHOOSING or fault_of(kinds, name, text) is not None):
        parts = text.split(",")
    else:
        return None
    return tuple(
        None if part.lower() == "none" else typed_value(kinds, name, part)
        for part in (each.strip() for each in parts)
    )


def first_choices(options: Mapping[str, str]) -> dict[str, Any]:
    """Options that choose pieces, with their first alternative."""
    return {name: re.split(r"[|,]", text)[0] for name, text in options.items() if name in CHOOSING}


def divided(kinds: Sections, options: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Domain]]:
    """Fixed options, and searched ones."""
    held: dict[str, Any] = {}
    free: dict[str, Domain] = {}
    for name, text in options.items():
        domain = domain_in(kinds, name, text) if isinstance(text, str) else None
        if domain is None:
            held[name] = text
        else:
            free[name] = domain
    return held, free
