"""What protects old knowledge, as terms of the loss; each file here is one penalty."""
