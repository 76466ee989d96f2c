"""Frozen, validated options: the hyper-parameters of every piece.

A benchmark, cell, weight source, penalty or rehearsal is one class in one file: its fields are its
hyper-parameters (validated, immutable, hashable), its methods are its numerics.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Protocol, TypeVar

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PositiveInt,
    TypeAdapter,
    ValidationError,
)

from perdure.errors import PerdureError, shortened, unknown

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails


class Options(BaseModel):
    """Base of all options: immutable, no unknown fields, no NaN."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, use_attribute_docstrings=True)

    later: ClassVar[tuple[str, ...]] = ()
    """Fields that were added after records had been made. They are not written at their default, which is the
    earlier behaviour, so that old records keep their hashes."""

    def plain(self) -> dict[str, Any]:
        """As plain JSON data."""
        values = self.model_dump(mode="json")
        unsaid = [n for n in self.later if getattr(self, n) == type(self).model_fields[n].default]
        return {name: value for name, value in values.items() if name not in unsaid}


class Piece(Options):
    """Options that can be chosen by name: one class of this kind, in one file of its folder."""

    name: ClassVar[str] = ""
    revision: ClassVar[int] = 0
    """Increased when the same options would give different numbers."""
    revision_of_best: ClassVar[int] = 0
    """The same for runs that restore the best weights of a task; it is added to `revision` in these alone."""

    @classmethod
    def refusal(cls, method: Composition) -> str | None:
        """Why this piece cannot be combined with the others of a method; None if it can."""
        del method
        return None

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Derive the name on the command line from the class name: OnlineEWC -> online-ewc."""
        super().__init_subclass__(**kwargs)
        if "name" not in cls.__dict__:
            cls.name = name_of_class(cls)


def name_of_class(kind: type) -> str:
    """The name that a class gives itself, or else that of the class: OnlineEWC -> online-ewc."""
    own = vars(kind).get("name")
    if isinstance(own, str):
        return own
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", kind.__name__).lower()


class Composition(Protocol):
    """The pieces that a method's name joins, as classes, for `refusal` to inspect."""

    @property
    def name(self) -> str:
        """The method's name."""

    @property
    def weights(self) -> type[Piece]:
        """The weight source."""

    @property
    def companions(self) -> Mapping[str, type[Piece]]:
        """Penalties and rehearsal of the method."""

    @property
    def together(self) -> bool:
        """Whether all tasks are learnt in one phase."""


def _split(value: object) -> object:
    """Accept '64,32', '64' and 64 for a tuple of sizes."""
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


AnyOptions = TypeVar("AnyOptions", bound=Options)

Fraction = Annotated[float, Field(ge=0, lt=1)]
Estimator = Literal["empirical", "sampled", "exact"]
"""How the Fisher is estimated."""

Strength = Annotated[float, Field(ge=0)]
Moderate = Annotated[float, Field(ge=1e-6, le=1e6)]
"""A number above zero whose square, and one over it, are numbers too."""


_NEEDED = {
    "bool_parsing": "must be true or false",
    "float_parsing": "must be a number",
    "finite_number": "must be a finite number",
    "int_parsing": "must be a whole number, written in digits",
    "int_from_float": "must be a whole number",
    "int_parsing_size": "must be a whole number of fewer digits",
    "too_short": "must have at least {min_length} value",
    "greater_than": "must be greater than {gt:g}",
    "greater_than_equal": "must be at least {ge:g}",
    "less_than": "must be less than {lt:g}",
    "less_than_equal": "must be at most {le:g}",
    "literal_error": "must be {expected}",
}
"""Faults as pydantic names them, in our words."""


def _said(kind: type[Options], fault: ErrorDetails) -> str:
    if fault["type"] == "missing":
        return f"it has no value; give it one, or {kind.__name__}.{fault['loc'][-1]} a default in the class"
    needed = _NEEDED.get(fault["type"])
    if needed is None:
        return fault["msg"].removeprefix("Value error, ")
    return "it " + needed.format(**fault.get("ctx", {}))


def validated(kind: type[AnyOptions], values: dict[str, Any], where: str) -> AnyOptions:
    """Build options; a validation error becomes one sentence that names the field."""
    for key in values:
        if key not in kind.model_fields:
            raise unknown("option", f"{where}.{key}", [f"{where}.{f}" for f in kind.model_fields])
    try:
        return kind(**values)
    except ValidationError as error:
        fault = error.errors()[0]
        place = ".".join([where, *(str(part) for part in fault["loc"] if not isinstance(part, int))])
        message = _said(kind, fault).rstrip(".")
        given = fault.get("input")
        said = (
            ""
            if isinstance(given, (dict, Options)) or given is None
            else f" (given: {shortened(repr(given))})"
        )
        raise PerdureError(f"{place}: {message}{said}.") from None


@lru_cache(maxsize=1024)
def option_reader(kind: type[Options], field: str) -> TypeAdapter[Any]:
    """What reads the value or text of one option by itself."""
    option = kind.model_fields[field]
    annotated: Any = Annotated[option.annotation, option]  # with its validators, which read 64,32 as sizes
    return TypeAdapter(annotated)
