"""What a network predicts: bits, a label, tags, or values; each file here is one kind of target."""
