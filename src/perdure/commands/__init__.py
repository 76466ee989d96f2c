"""The commands of the command line, one file each."""

COMMANDS = {
    "list": "listing",
    "run": "running",
    "search": "searching",
    "compare": "comparing",
    "show": "showing",
    "reproduce": "reproducing",
    "report": "reporting",
    "results": "results",
    "analyse": "analysing",
    "cluster": "cluster",
    "data": "data",
    "completion": "completing",
}
"""The modules of `perdure.commands` by name; each has a function of the same name."""
