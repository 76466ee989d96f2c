"""Penalties: hooks that protect old knowledge by constraining the weights."""

from __future__ import annotations

from perdure.hooks import Hook


class Penalty(Hook):
    """A term that protects old knowledge; a method may have several."""
