"""The help for all options of a run, generated from the fields of its config."""

from __future__ import annotations

import textwrap

from perdure.config import BODY, preset, sections
from perdure.options import Piece, option_text
from perdure.presets import preset_sources
from perdure.registry import pieces


def print_options(benchmark: str, method: str, scale: str) -> None:
    """Print every option with its default at this scale and its meaning."""
    chosen = preset(benchmark, method, scale, {})
    print(f"Options of {benchmark} with {method}; defaults are those of --scale {scale}.")
    for source in preset_sources(benchmark, method, scale):
        print(textwrap.fill(f"Settings: {source}", 100))
    for section, kind in sections(benchmark, method).items():
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
                field.description or "", 100, initial_indent=" " * 6, subsequent_indent=" " * 6
            )
            print(f"{line}\n{about}")
