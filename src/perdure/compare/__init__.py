"""Which method should I use? Equal budgets for all methods, and the answer with its intervals."""
