"""One's own data: tables and arrays in files, or in memory, understood as tasks; faults are gathered."""
