"""What is asked of a network: bits, a label, tags, or values; each file here is one kind of target."""
