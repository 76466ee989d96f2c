"""Penalties: hooks that protect old knowledge by what they ask of the weights."""

from __future__ import annotations

from perdure.hooks import Hook


class Penalty(Hook):
    """What protects old knowledge; a method may have several."""
