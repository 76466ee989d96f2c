"""Speed as ratios within one run, on one thread; no test asserts a wall-clock time."""
