"""Runs that are killed and stopped at random moments, and compared with undisturbed ones: `make fuzz`."""
