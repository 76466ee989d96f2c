"""The help for all options of a run, generated from the fields of its config."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from typing import Any

from perdure.config import BODY, preset, sections
from perdure.options import Piece, option_text
from perdure.presets import preset_sources
from perdure.registry import pieces

SECTIONS = ("benchmark", "network", "weights", "penalties", "rehearsal", "training")
"""In the order in which they are printed."""


def print_options(benchmark: str, method: str, scale: str, given: Mapping[str, Any]) -> None:
    """Print every option with its meaning and its value: as given, or the default at this scale."""
    chosen = preset(benchmark, method, scale, dict(given)) | dict(given)
    print(f"Options of {benchmark} with {method}; defaults are those of --scale {scale}.")
    for source in preset_sources(benchmark, method, scale, given):
        print(textwrap.fill(f"Settings: {source}", 100))
    kinds = sections(benchmark, method, chosen)
    for section in sorted(kinds, key=_place):
        kind = kinds[section]
        if not kind.model_fields:
            continue
        print(f"\n{section}: {(kind.__doc__ or '').strip().splitlines()[0]}")
        if section == BODY.partition(".")[0]:
            print(f"  --{BODY} {kind.name if issubclass(kind, Piece) else ''}")
            print(
                f"      Kind of network: {', '.join(sorted(pieces('bodies')))}; each has options of its own."
            )
        for name, field in kind.model_fields.items():
            value = option_text(chosen.get(f"{section}.{name}", field.default))
            line = f"  --{section}.{name} {value}"
            about = textwrap.fill(
                " ".join((field.description or "").split()),
                100,
                initial_indent=" " * 6,
                subsequent_indent=" " * 6,
            )
            print(f"{line}\n{about}")


def _place(section: str) -> tuple[int, int]:
    """Where a section is printed; an inner piece, such as the network's cell, follows the outer one."""
    return SECTIONS.index(section.partition(".")[0]), section.count(".")
