"""Frozen, validated options, and the folders in which they are found.

A benchmark, weight source, penalty or rehearsal is one class in one file: its fields are its
hyper-parameters (validated, immutable, hashable), its methods are its numerics. The folder is the
registry: a new file is found without any other edit.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
from typing import Annotated, Any, ClassVar, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PositiveInt, ValidationError

from perdure.errors import PerdureError, unknown


class Options(BaseModel):
    """Base of all options: immutable, no unknown fields, no NaN."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, use_attribute_docstrings=True)

    later: ClassVar[tuple[str, ...]] = ()
    """Fields that came after records had been made. Not written where they have their default, which is what
    was done before they were there: so old records keep their hashes."""

    def plain(self) -> dict[str, Any]:
        """As plain JSON data."""
        values = self.model_dump(mode="json")
        unsaid = [n for n in self.later if getattr(self, n) == type(self).model_fields[n].default]
        return {name: value for name, value in values.items() if name not in unsaid}


class Piece(Options):
    """Options that can be chosen by name: one class of this kind, one file of its folder."""

    name: ClassVar[str] = ""
    revision: ClassVar[int] = 0
    """Raised when the same options begin to give other numbers."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Derive the name on the command line from the class name: OnlineEWC -> online-ewc."""
        super().__init_subclass__(**kwargs)
        if "name" not in cls.__dict__:
            words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", cls.__name__)
            cls.name = words.lower()


def _split(value: object) -> object:
    """Let '64,32', '64' and 64 stand for a tuple of sizes."""
    if isinstance(value, str):
        return [part for part in re.split(r"[,\s]+", value.strip("()[] ")) if part]
    return [value] if isinstance(value, int) else value


Sizes = Annotated[tuple[PositiveInt, ...], BeforeValidator(_split)]
"""Layer sizes; written 64,32 on the command line."""

SomeSizes = Annotated[tuple[PositiveInt, ...], BeforeValidator(_split), Field(min_length=1)]
"""Sizes of at least one layer."""


def option_text(value: object) -> str:
    """A value as it is typed on the command line."""
    if isinstance(value, (list, tuple)):
        return ",".join(option_text(part) for part in value) or "()"
    return str(value).lower() if isinstance(value, bool) or value is None else str(value)


P = TypeVar("P", bound=Piece)
Kind = TypeVar("Kind", bound=Options)

Fraction = Annotated[float, Field(ge=0, lt=1)]
Strength = Annotated[float, Field(ge=0)]


def discover(package: str, base: type[P]) -> dict[str, type[P]]:
    """All subclasses of `base` that the files of `package` define, by name."""
    folder = importlib.import_module(package)
    found: dict[str, type[P]] = {}
    for module in pkgutil.iter_modules(folder.__path__, package + "."):
        for item in vars(importlib.import_module(module.name)).values():
            if (
                isinstance(item, type)
                and issubclass(item, base)
                and item.__module__ == module.name
                and not item.__name__.startswith("_")
                and item is not base
            ):
                found[item.name] = item
    return found


def find(package: str, base: type[P], name: str) -> type[P]:
    """The class called `name` in `package`; a teaching error if there is none."""
    pieces = discover(package, base)
    if name not in pieces:
        raise unknown(package.rpartition(".")[2], name, pieces)
    return pieces[name]


def validated(kind: type[Kind], values: dict[str, Any], where: str) -> Kind:
    """Build options; a fault becomes one sentence that names the field."""
    for key in values:
        if key not in kind.model_fields:
            raise unknown("option", f"{where}.{key}", [f"{where}.{f}" for f in kind.model_fields])
    try:
        return kind(**values)
    except ValidationError as error:
        fault = error.errors()[0]
        place = ".".join([where, *(str(part) for part in fault["loc"] if not isinstance(part, int))])
        message = fault["msg"].removeprefix("Value error, ")
        given = fault.get("input")
        said = "" if isinstance(given, (dict, Options)) or given is None else f" (given: {given!r})"
        raise PerdureError(f"{place}: {message}{said}.".replace("..", ".")) from None
