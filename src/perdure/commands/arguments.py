"""Parsing of the command line: argparse splits it, and mistakes get our own error messages."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from perdure.errors import PerdureError, shortened, unknown

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

    from perdure.options import Options

YES_NO = ("true", "false")
ALMOST = ("yes", "no", "on", "off", "y", "n", "1", "0")
"""What people write instead."""
_VALUELESS = object()
"""What argparse stores for an option without a value."""


@dataclass
class Arguments:
    """The parsed command line: positional words, and options by name (values still as strings)."""

    positional: list[str] = field(default_factory=list)
    options: dict[str, str] = field(default_factory=dict)
    repeated: dict[str, list[str]] = field(default_factory=dict)
    """Options that may be given several times, in the order given."""
    valueless: list[str] = field(default_factory=list)
    """Options that need a value but have none."""
    help: bool = False

    def values(self, names: Iterable[str], texts: Collection[str] = ()) -> dict[str, str | None]:
        """The given ones among these options; none means None, except for `texts`, which may be called so."""
        given = {name: self.options[name] for name in names if name in self.options}
        return {
            name: None if value.lower() == "none" and name not in texts else value
            for name, value in given.items()
        }


class _Parser(argparse.ArgumentParser):
    """A parser that neither prints nor exits, and does not accept abbreviated names."""

    def __init__(self) -> None:
        super().__init__(add_help=False, allow_abbrev=False)
        self.add_argument("-h", "--help", action="store_true", dest=" help")  # no option name has a space

    def error(self, message: str) -> NoReturn:
        raise PerdureError(f"{message[:1].upper()}{message[1:]}; options are written --name VALUE.")


def parse(
    words: Sequence[str],
    *,
    switches: Collection[str] = (),
    on_off: Collection[str] = (),
    repeated: Collection[str] = (),
) -> Arguments:
    """Split words into positional ones and options.

    Every option takes a value, as --name value or --name=value; dashes and underscores in names are alike.
    `switches` take none, or =true or =false; `on_off` ones take one only if it is true or false; `repeated`
    ones may be given several times. Names are not checked, since those known may depend on positional words.
    """
    written = [_explicit(word, following, switches, on_off) for word, following in _pairs(words, on_off)]
    parser = _Parser()
    for option in dict.fromkeys(word.partition("=")[0] for word in written if _is_option(word)):
        parser.add_argument(option, dest=option[2:], nargs="?", const=_VALUELESS, action="append")
    read, rest = parser.parse_known_args(written)
    result = Arguments(help=vars(read).pop(" help"))
    for name, values in vars(read).items():
        if values is not None:
            _take(result, name, values, switches, repeated)
    result.positional = [word for word in rest if word != "--"]
    for word in result.positional:
        if word.startswith("-") and not _number(word):
            raise PerdureError(f"Unknown option '{word}': options start with two dashes.")
    return result


def _take(
    result: Arguments, name: str, values: list[Any], switches: Collection[str], repeated: Collection[str]
) -> None:
    """Store one option with all values given for it."""
    if _VALUELESS in values:
        result.valueless.append(name)
        result.options[name] = ""
    elif name in repeated:
        result.repeated[name] = values
    elif len(values) > 1:
        raise PerdureError(f"Option --{name} is given twice; once is enough.")
    elif name not in switches:
        result.options[name] = values[0]
    elif values[0].lower() not in YES_NO:
        raise PerdureError(f"--{name} is a switch: it takes no value (given: {values[0]!r}).")
    elif values[0].lower() == "true":
        result.options[name] = "true"


def _is_option(word: str) -> bool:
    return word.startswith("--") and word not in ("--", "--help") and not word.startswith("--=")


def _pairs(words: Sequence[str], on_off: Collection[str]) -> Iterable[tuple[str, str | None]]:
    """Each word, with the value that belongs to it if argparse would not recognise it as such."""
    rest = list(words)
    while rest:
        word = rest.pop(0)
        following = None
        if _is_option(word) and "=" not in word and rest:
            said = canonical(word[2:]) in on_off and _is_yes_or_no(rest[0])
            if canonical(word[2:]) in on_off and rest[0].lower() in ALMOST:
                raise PerdureError(
                    f"{word} is on or off: write {word} true or {word} false (given: {rest[0]!r})."
                )
            if said or (
                rest[0].startswith("-") and _number(rest[0])
            ):  # argparse does not accept -1e3 as a value
                following = rest.pop(0)
        yield word, following


def _is_yes_or_no(text: str) -> bool:
    """Whether a word is true, false, or both as alternatives of a search."""
    return all(part.strip() in YES_NO for part in re.split(r"[,|]", text.lower()))


def _explicit(word: str, following: str | None, switches: Collection[str], on_off: Collection[str]) -> str:
    """An option in the form --name=value if its value is known already, with its name in canonical form."""
    if not _is_option(word):
        return word
    name, equals, value = word[2:].partition("=")
    name = canonical(name)
    if not equals and following is not None:
        equals, value = "=", following
    elif not equals and (name in switches or name in on_off):
        equals, value = "=", "true"
    return f"--{name}{equals}{value}"


def canonical(name: str) -> str:
    """The field name with underscores; section names, such as penalties.online-ewc, keep their dashes."""
    section, dot, last = name.rpartition(".")
    return f"{section}{dot}{last.replace('-', '_')}" if dot else name


def _number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


def switches_of(fields: Iterable[tuple[str, FieldInfo]]) -> set[str]:
    """Names of the on/off options, which may be given without a value."""
    return {name for name, option in fields if option.annotation is bool}


def texts_of(kinds: Mapping[str, type[Options]]) -> set[str]:
    """Names of the options of some sections that are texts, such as names of folders."""
    return {
        f"{section}.{name}"
        for section, kind in kinds.items()
        for name, option in kind.model_fields.items()
        if option.annotation is str
    }


def on_off_options(words: Sequence[str]) -> set[str]:
    """Names of all on/off options of configs, if the words contain any option of a config.

    This way torch, which takes a second to load, is not needed for other words or for options of benchmarks.
    """
    typed = {word.partition("=")[0] for word in words if word.startswith("--")}
    sections = {word[2:].partition(".")[0] for word in typed if "." in word}
    if not sections:
        return set()
    if sections == {"benchmark"}:
        from perdure.benchmarks.task import Benchmark
        from perdure.registry import pieces

        kinds = pieces("benchmarks", Benchmark).values()
        return switches_of((f"benchmark.{n}", f) for kind in kinds for n, f in kind.model_fields.items())
    from perdure.config import every_option

    return switches_of(every_option())


def check_names(arguments: Arguments, known: Collection[str]) -> None:
    """Raise a helpful error for the first option that does not exist or lacks its value."""
    for name in [*arguments.options, *arguments.repeated]:
        if name not in known:
            from perdure.config import unknown_option

            raise unknown_option(name, known, "--")
    for name in arguments.valueless:
        raise PerdureError(f"Option --{name} needs a value, as in --{name} VALUE.")


def check_count(arguments: Arguments, most: int, command: str) -> None:
    """Reject positional words that a command would ignore."""
    if len(arguments.positional) > most:
        raise PerdureError(
            f"'{arguments.positional[most]}' is one argument too many for {command}; see {command} --help."
        )


def whole_number(options: Mapping[str, str], name: str, default: int, lowest: int) -> int:
    """An integer option."""
    text = options.get(name)
    if text is None:
        return default
    try:
        number = int(text)
    except ValueError:
        number = lowest - 1
    if number < lowest:
        raise PerdureError(f"--{name} must be a whole number of at least {lowest} (given: {text!r}).")
    return number


def choice(options: Mapping[str, str], name: str, choices: Collection[str], default: str) -> str:
    """An option with a fixed set of values."""
    value = options.get(name, default)
    if value not in choices:
        raise unknown(f"value for --{name}", value, choices)
    return value


def path_option(options: Mapping[str, str], name: str) -> Path | None:
    """An option that names a file or folder; None if it was not given."""
    text = options.get(name)
    if text is not None and not text.strip():
        raise PerdureError(f"--{name} needs a path (given: {text!r}).")
    return None if text is None else Path(text)


def load_plugins(words: Sequence[str]) -> list[str]:
    """Load every file named by --plugin, which every command accepts; returns the other words."""
    rest, others = list(words), []
    while rest:
        word = rest.pop(0)
        name, equals, file = word.partition("=")
        if name != "--plugin":
            others.append(word)
            continue
        if not equals and (not rest or rest[0].startswith("--")):
            raise PerdureError("Option --plugin needs a value, as in --plugin FILE.")
        from perdure.registry import load_plugin

        load_plugin(file if equals else rest.pop(0))
    return others


def runs_folder(options: Mapping[str, str]) -> Path:
    """The folder of records named by --runs."""
    folder = path_option(options, "runs") or Path("runs")
    if folder.exists() and not folder.is_dir():
        raise PerdureError(f"'{shortened(str(folder))}' is not a folder; name one for runs with --runs DIR.")
    return folder


def use_data_folder(options: Mapping[str, str]) -> None:
    """Set the folder of raw data to --data DIR, for this process and its child processes."""
    folder = path_option(options, "data")
    if folder is None:
        return
    if not folder.is_dir():
        raise PerdureError(f"--data: '{folder}' is not a folder.")
    os.environ["PERDURE_DATA"] = options["data"]


def device(options: Mapping[str, str]) -> str:
    """The device named by --device: cpu or cuda."""
    name = choice(options, "device", ("auto", "cpu", "cuda"), "auto")
    import torch

    if name == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    if name == "cuda" and not torch.cuda.is_available():
        raise PerdureError("--device cuda: no CUDA device found; use --device cpu.")
    return name
