"""Fair search: the same spaces, budgets and rules for every method, and only validation decides."""
