"""The engine: one optimisation loop that knows no method and no benchmark by name."""
