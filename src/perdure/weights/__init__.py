"""Where the weights psi of task k come from; each file here is one kind of source."""
