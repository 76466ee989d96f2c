"""Benchmarks: each is a list of tasks, and each file here defines one family of them."""
