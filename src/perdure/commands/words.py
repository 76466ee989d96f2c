"""Reading words of a command line: positional ones and --name value, with teaching errors."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from perdure.errors import PerdureError, unknown

HELP = ("-h", "--help")


@dataclass
class Words:
    """What was typed: positional words, and options by name (values still as text)."""

    positional: list[str] = field(default_factory=list)
    options: dict[str, str] = field(default_factory=dict)
    valueless: list[str] = field(default_factory=list)
    """Options that stand without a value."""
    help: bool = False


def parse(words: list[str], flags: Collection[str], may_be_bare: Collection[str] = ()) -> Words:
    """Split words; `flags` never take a value, `may_be_bare` ones take one only if it is true or false.

    --name value and --name=value mean the same; dashes and underscores in names too.
    """
    result, rest = Words(), list(words)
    while rest:
        word = rest.pop(0)
        if word in HELP:
            result.help = True
        elif word.startswith("--") and len(word) > 2:
            _option(result, word[2:], rest, flags, may_be_bare)
        elif word.startswith("-") and not _number(word):
            raise PerdureError(f"Unknown option '{word}': options begin with two dashes.")
        else:
            result.positional.append(word)
    return result


def _option(
    result: Words, text: str, rest: list[str], flags: Collection[str], may_be_bare: Collection[str]
) -> None:
    """Take up one option, and its value from the rest of the words where it needs one."""
    name, equals, value = text.partition("=")
    name = canonical(name)
    if not equals:
        if name in flags or _stands_alone(name, rest, may_be_bare):
            value = "true"
        elif not rest or rest[0].startswith("--"):
            result.valueless.append(name)
        else:
            value = rest.pop(0)
    if name in flags and value.lower() not in ("true", "false"):
        raise PerdureError(f"--{name} is a switch: it takes no value (given: {value!r}).")
    if name in result.options:
        raise PerdureError(f"Option --{name} is given twice; once is enough.")
    if name not in flags or value.lower() == "true":
        result.options[name] = value


def canonical(name: str) -> str:
    """The field part with underscores; section names, such as penalties.online-ewc, keep their dashes."""
    section, dot, last = name.rpartition(".")
    return f"{section}{dot}{last.replace('-', '_')}" if dot else name


def _stands_alone(name: str, rest: list[str], may_be_bare: Collection[str]) -> bool:
    return name in may_be_bare and (not rest or rest[0].lower() not in ("true", "false"))


def _number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


def check_names(words: Words, known: Collection[str]) -> None:
    """Raise a teaching error for the first option that does not exist or lacks its value."""
    for name in words.options:
        if name not in known:
            raise unknown("option", f"--{name}", [f"--{other}" for other in known])
    for name in words.valueless:
        raise PerdureError(f"Option --{name} needs a value, as in --{name} VALUE.")


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
        raise PerdureError(f"--{name} must be a whole number from {lowest} on (given: {text!r}).")
    return number


def choice(options: Mapping[str, str], name: str, choices: Collection[str], default: str) -> str:
    """An option with a few possible values."""
    value = options.get(name, default)
    if value not in choices:
        raise unknown(f"value for --{name}", value, choices)
    return value


def use_data_folder(words: Words) -> None:
    """Let --data DIR name the folder of raw data, for this process and those that it starts."""
    folder = words.options.get("data")
    if folder is None:
        return
    if not Path(folder).is_dir():
        raise PerdureError(f"--data: '{folder}' is no folder.")
    os.environ["PERDURE_DATA"] = folder


def device(options: Mapping[str, str]) -> str:
    """The device that --device names: cpu or cuda."""
    name = choice(options, "device", ("auto", "cpu", "cuda"), "auto")
    import torch

    if name == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    if name == "cuda" and not torch.cuda.is_available():
        raise PerdureError("--device cuda: no CUDA device was found; use --device cpu.")
    return name
