"""Bodies of networks: the part between the inputs and the heads; each file here is one kind."""

DEFAULT = "recurrent"
"""The body of all networks of the paper."""
