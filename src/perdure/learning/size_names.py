"""Words in the names of a record's sizes; without torch, so that records are read quickly."""

GENERATED, GENERATING = "generated", "generating"
"""First words of the sizes of something that is generated, and of what generates it."""
