"""Reading words of a command line: positional ones and --name value, with teaching errors."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

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
            name, equals, value = word[2:].partition("=")
            name = canonical(name)
            if not equals and (name in flags or _stands_alone(name, rest, may_be_bare)):
                value = "true"
            elif not equals and (not rest or rest[0].startswith("--")):
                result.valueless.append(name)
            elif not equals:
                value = rest.pop(0)
            if name in result.options:
                raise PerdureError(f"Option --{name} is given twice; once is enough.")
            result.options[name] = value
        elif word.startswith("-") and not _number(word):
            raise PerdureError(f"Unknown option '{word}': options begin with two dashes.")
        else:
            result.positional.append(word)
    return result


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
    if not text.lstrip("-").isdigit() or int(text) < lowest:
        raise PerdureError(f"--{name} must be a whole number from {lowest} on (given: {text!r}).")
    return int(text)


def choice(options: Mapping[str, str], name: str, choices: Collection[str], default: str) -> str:
    """An option with a few possible values."""
    value = options.get(name, default)
    if value not in choices:
        raise unknown(f"value for --{name}", value, choices)
    return value
