"""A benchmark is a list of tasks; each file here defines one family of them."""
