"""Recurrent cells; each file here that defines a `Cell` is one kind, found by its name."""

DEFAULT = "elman"
"""The cell of the paper's synthetic experiments."""
