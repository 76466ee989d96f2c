"""The command line: thin, lazy, and clear about mistakes.

Its options are the sections and fields of the config, so new pieces get options without a change here.
torch takes seconds to import; nothing here imports it before it is needed.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence

from perdure.errors import TOO_LARGE, Interrupted, PerdureError, out_of_memory, unknown

USAGE = """\
perdure: continual learning for recurrent networks and sequential data

  perdure list [pieces]                 benchmarks, methods and scales; or the pieces they are made of
  perdure run BENCHMARK METHOD [...]    learn the tasks one after the other; see perdure run --help
  perdure search BENCHMARK METHOD ...   choose settings by validation, with equal budgets for all methods
  perdure show [RUN]                    a run's accuracy matrix, or all runs; see perdure show --help
  perdure reproduce NAME ... | all      a table or figure of the paper; without a name, a list of them
  perdure analyse NAME RUN ...          the paper's analyses on any run; see perdure analyse --help
  perdure report                        one HTML page of all runs and findings
  perdure cluster start                 a Dask cluster on this machine, for trying --cluster
  perdure data list|check|build|where   data sets: what is needed, what is there, one's own data

Every command takes --plugin FILE, a Python file with your own pieces (docs/own-methods.md).

Try: perdure run permuted-copy fine-tuning
"""

COMMANDS = {
    "list": "listing",
    "run": "running",
    "search": "searching",
    "show": "showing",
    "reproduce": "reproducing",
    "report": "reporting",
    "analyse": "analysing",
    "cluster": "cluster",
    "data": "data",
}
"""The modules of `perdure.commands` by name; each has a function of the same name."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if not words or words[0] in ("-h", "--help", "help"):
        print(USAGE, end="")
        return 0
    try:
        return _command(words[0], words[1:])
    except Interrupted as stop:
        print(f"perdure: {stop}", file=sys.stderr)
        return stop.code
    except PerdureError as error:
        print(f"perdure: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("perdure: Stopped; the same command continues from the last checkpoint.", file=sys.stderr)
        return 130
    except (MemoryError, RuntimeError) as error:
        if not out_of_memory(error):
            raise
        print(f"perdure: {TOO_LARGE}", file=sys.stderr)
        return 2
    except BrokenPipeError:  # the reader of our output has closed it, as `head` does
        sys.stderr.close()
        return 0


def _command(name: str, words: list[str]) -> int:
    """Hand over to the command's module, which is imported only now."""
    if name == "--version":
        return _version()
    if name not in COMMANDS:
        raise unknown("command", name, COMMANDS)
    from perdure.commands.arguments import load_plugins

    words = load_plugins(words)
    module = importlib.import_module(f"perdure.commands.{COMMANDS[name]}")
    code: int = getattr(module, COMMANDS[name])(words)
    return code


def _version() -> int:
    """The version, and which kernels would run here."""
    from importlib.metadata import version

    from perdure.networks.native.library import describe

    print(f"perdure {version('perdure')} (kernels: {describe()})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
