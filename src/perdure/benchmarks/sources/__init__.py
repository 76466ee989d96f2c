"""From raw files to checked arrays: where data are found, how they are read, how results are cached."""
