"""What a run leaves behind: one folder, named by the hash of its config."""
