"""The files of a run: one folder, named by the hash of its config."""
