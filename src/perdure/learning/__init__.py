"""The engine: one optimisation loop that refers to no method and no benchmark by name."""
