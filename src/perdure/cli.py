"""The command line: thin, lazy, and clear about mistakes.

Its options are the sections and fields of the config, so new pieces get options without a change here.
torch takes seconds to import; nothing here imports it before it is needed. Signals are handled first of all,
so that even the imports below, some milliseconds, wait until that is done.
"""

from __future__ import annotations

import os
import signal
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import FrameType

USAGE = """\
perdure: continual learning for recurrent networks and sequential data

  perdure list [pieces]                 benchmarks, methods and scales; or the pieces they are made of
  perdure run BENCHMARK METHOD [...]    learn the tasks one after the other; see perdure run --help
  perdure search BENCHMARK METHOD ...   choose settings by validation, with equal budgets for all methods
  perdure compare BENCHMARK [...]       which method should I use? Equal budgets, then one page
  perdure show [RUN]                    a run's accuracy matrix, or all runs; see perdure show --help
  perdure reproduce NAME ... | all      a table or figure of the paper; without a name, a list of them
  perdure analyse NAME RUN ...          the paper's analyses on any run; see perdure analyse --help
  perdure report                        one HTML page of all runs and findings
  perdure results collect|write         the results committed with the source, and the pages made of them
  perdure cluster start                 a Dask cluster on this machine, for trying --cluster
  perdure data list|check|build|where   data sets: what is needed, what is there, one's own data
  perdure completion bash|zsh|fish      a script that completes commands and names in your shell

Every command takes --plugin FILE, a Python file with your own pieces (docs/own-methods.md).

Try: perdure run permuted-copy fine-tuning
"""


STOPPED = b"perdure: Stopped before anything was begun that could be lost.\n"
SHOW_CURSOR = b"\x1b[?25h"
"""Makes the cursor visible again, which progress displays hide."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    own = arguments is None  # the process is there for this command alone
    before = _handle_signals()
    try:
        return _guarded(list(sys.argv[1:] if arguments is None else arguments))
    finally:
        for number, handler in before.items():
            # What is left of the process takes a moment, and Ctrl-C within it would be a traceback.
            signal.signal(number, signal.SIG_IGN if own else handler)


def _handle_signals() -> dict[int, signal.Handlers]:
    """Ctrl-C and SIGTERM end the process with a sentence, until a run handles them itself.

    Returns the handlers before. Raising an error instead would not do: within an import or a destructor it
    can be lost, or be told as if it were a fault.
    """
    before = {}
    for number in (signal.SIGINT, signal.SIGTERM):
        try:
            before[int(number)] = signal.signal(number, _stop)
        except ValueError:  # not the main thread
            break
    return before  # type: ignore[return-value]  # the stubs have several kinds of handlers


def _stop(number: int, frame: FrameType | None) -> None:
    try:
        if sys.stderr is not None and sys.stderr.isatty():
            os.write(2, SHOW_CURSOR + b"\n")
        os.write(2, STOPPED)
    finally:  # even where nobody listens any more
        os._exit(128 + number)


def _guarded(words: list[str]) -> int:
    """Run one command; whatever goes wrong is one sentence on standard error."""
    from perdure.errors import SIZE_ERRORS, TOO_LARGE, Interrupted, PerdureError, out_of_memory

    _open_closed_streams()
    _show_what_can_be_shown()
    try:
        code = _command(words)
        sys.stdout.flush()
        return code
    except Interrupted as stop:
        return _told(str(stop), stop.code)
    except PerdureError as error:
        return _told(str(error), 2)
    except KeyboardInterrupt as stop:  # a second signal, from someone in a hurry
        return _told(
            "Stopped at once; if a run has a checkpoint, the same command goes on from it.", _code(stop)
        )
    except SIZE_ERRORS as error:
        if not out_of_memory(error):
            raise
        return _told(TOO_LARGE, 2)
    except ModuleNotFoundError as error:
        return _told(_missing(error), 2)
    except BrokenPipeError:  # the reader of our output has closed it, as `head` does
        _let_go()
        return 0
    except OSError as error:
        _let_go()
        return _told(_explained(error), 2)


def _show_what_can_be_shown() -> None:
    """What a terminal cannot show appears as codes, and does not end a command."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def _missing(error: ModuleNotFoundError) -> str:
    """Which package is not installed; if it is a module of ours, the fault is ours, and raised again."""
    if error.name is None or error.name.startswith("perdure."):
        raise error
    needed = "install Perdure and all that it needs with pip install . in its folder"
    return f"The package '{error.name}' is not installed; {needed}."


def _open_closed_streams() -> None:
    """Give standard streams that the shell has closed (`>&-`) a place to go.

    Otherwise the next file to be opened, perhaps a record, would take their number, and their words.
    """
    if None not in (sys.stdin, sys.stdout, sys.stderr):
        return
    while (handle := os.open(os.devnull, os.O_RDWR)) <= 2:  # the lowest number that is free
        os.set_inheritable(handle, True)
    os.close(handle)
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(number, "w" if number else "r"))


def _told(text: str, code: int) -> int:
    from perdure.errors import sentence
    from perdure.report.terminal import tell

    sys.stdout.flush()
    tell(f"perdure: {sentence(text)}")
    return code


def _code(stop: KeyboardInterrupt) -> int:
    return 128 + (stop.args[0] if stop.args and isinstance(stop.args[0], int) else int(signal.SIGINT))


def _explained(error: OSError) -> str:
    """What the system refused, as a sentence."""
    from perdure.errors import shortened

    reason = error.strerror or str(error) or type(error).__name__
    if error.filename is None:
        return f"The output cannot be written ({reason})."
    return f"'{shortened(os.fsdecode(error.filename))}' cannot be used ({reason})."


def _let_go() -> None:
    """Forget what standard output still holds; at its end the process would try to write it once more."""
    try:
        sys.stdout.flush()
    except OSError:
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, 1)
        os.close(nothing)


def _command(words: list[str]) -> int:
    """Hand over to the command's module, which is imported only now."""
    from perdure.commands import COMMANDS
    from perdure.errors import PerdureError, unknown

    name = words[0] if words else "--help"
    if name in ("-h", "--help", "help"):
        print(USAGE, end="")
        return 0
    if name == "--version" and len(words) == 1:
        return _version()
    if name == "--version":
        raise PerdureError(f"perdure --version takes no argument, but '{words[1]}' is given.")
    if name not in COMMANDS:
        raise unknown("command", name, COMMANDS)
    import importlib

    from perdure.commands.arguments import load_plugins

    rest = load_plugins(words[1:])
    module = importlib.import_module(f"perdure.commands.{COMMANDS[name]}")
    code: int = getattr(module, COMMANDS[name])(rest)
    return code


def _version() -> int:
    """The version, and which kernels would run here."""
    from importlib.metadata import version

    from perdure.networks.native.library import describe

    print(f"perdure {version('perdure')} (kernels: {describe()})")
    return 0
