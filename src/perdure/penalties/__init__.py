"""Protection of old knowledge by terms of the loss; each file here is one penalty."""
