"""Where pieces are found by name: in this package's folders, in installed packages, in users' own files.

The folder is the registry: a class in a file of, say, `penalties/` is a penalty. External pieces come from
`perdure.register(MyPenalty)`, from an entry point of the group `perdure.plugins` (a module of an installed
package), or from `--plugin mine.py`. They are found as if they were defined in the folder. The content of
their source is part of the hash of every config that uses them.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import inspect
import os
import pkgutil
import re
import sys
import traceback
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple, TypeVar, overload

from pydantic import PydanticUserError

from perdure.errors import PerdureError, shortened, unknown
from perdure.methods import METHODS, Method
from perdure.options import Piece, name_of_class, validated
from perdure.plugin_sources import digest_of

P = TypeVar("P", bound=Piece)

UNTYPED = ("model-field-missing-annotation", "model-field-overridden")
"""Codes by which pydantic says that a field has no type."""

GROUP = "perdure.plugins"
"""Entry points of this group name modules with pieces."""


class Kind(NamedTuple):
    """One kind of piece: the folder that contains them, and their base class."""

    package: str
    module: str
    base: str
    singular: str

    def base_class(self) -> type[Piece]:
        """The base class, imported only when it is needed."""
        found: type[Piece] = getattr(importlib.import_module(self.module), self.base)
        return found


KINDS = {
    "benchmarks": Kind("perdure.benchmarks", "perdure.benchmarks.task", "Benchmark", "benchmark"),
    "bodies": Kind("perdure.networks.bodies", "perdure.networks.bodies.body", "Architecture", "body"),
    "cells": Kind("perdure.networks.cells", "perdure.networks.cells.cell", "Cell", "cell"),
    "weights": Kind("perdure.weights", "perdure.weights.source", "WeightSource", "weight source"),
    "penalties": Kind("perdure.penalties", "perdure.penalties.penalty", "Penalty", "penalty"),
    "rehearsal": Kind("perdure.rehearsal", "perdure.rehearsal.rehearsal", "Rehearsal", "rehearsal"),
}
"""All kinds of pieces, by the name of their folder."""


class Origin(NamedTuple):
    """Where an external piece came from."""

    name: str
    """The plugin's file name or module."""
    digest: str
    """Digest of its content and that of the modules beside it that it imports, 16 hexadecimal digits."""


NEEDED = "classes of pieces, such as a Penalty, and Methods"
"""What can be registered."""


@dataclass
class Outside:
    """Everything registered from outside; there is one per process, filled by `register`."""

    pieces: dict[str, dict[str, type[Piece]]] = field(default_factory=dict)
    methods: dict[str, Method] = field(default_factory=dict)
    origins: dict[object, Origin] = field(default_factory=dict)
    files: dict[Path, Origin] = field(default_factory=dict)
    strangers: dict[str, str] = field(default_factory=dict)
    """Classes of plugins that are no pieces, in words, by the name that they would have."""
    installed: bool = False
    """Whether entry points have been loaded."""
    changes: int = 0
    """Number of additions so far."""


OUTSIDE = Outside()


@overload
def pieces(kind: str) -> dict[str, type[Piece]]: ...
@overload
def pieces(kind: str, base: type[P]) -> dict[str, type[P]]: ...
def pieces(kind: str, base: type[Any] = Piece) -> dict[str, type[Any]]:
    """All classes of a kind by name; `base` tells type checkers which kind it is."""
    del base
    _load_installed()
    return _inside(kind) | OUTSIDE.pieces.get(kind, {})


def methods() -> dict[str, Method]:
    """All named methods, external ones last."""
    _load_installed()
    return METHODS | OUTSIDE.methods


def find(kind: str, name: str) -> type[Piece]:
    """The class called `name`; raises a helpful error if there is none."""
    known = pieces(kind)
    if name not in known:
        raise _unknown_piece(kind, name, known)
    return known[name]


def _unknown_piece(kind: str, name: str, known: Iterable[str]) -> PerdureError:
    """The error for a piece that does not exist; a class of a plugin that was meant to be one is named."""
    wanted = KINDS[kind]
    for other, place in KINDS.items():
        if name in OUTSIDE.pieces.get(other, {}):
            return PerdureError(f"'{name}' is a {place.singular}, but a {wanted.singular} is needed here.")
    if name in OUTSIDE.strangers:
        return PerdureError(
            f"Unknown {wanted.singular} '{name}': {OUTSIDE.strangers[name]} has this name, but is not "
            f"derived from perdure.{wanted.base}."
        )
    return unknown(wanted.singular, name, known)


def origin(piece: object) -> Origin | None:
    """Where a piece or method came from; None for those of this package."""
    return OUTSIDE.origins.get(piece)


def changes() -> int:
    """How often something was registered so far: part of the key of what is cached about pieces."""
    return OUTSIDE.changes


def origins() -> list[Origin]:
    """Where all pieces and methods from outside came from."""
    _load_installed()
    return list(OUTSIDE.origins.values())


def register(*things: type[Piece] | Method) -> None:
    """Register pieces (classes) and methods by name, for this process: all of them or none.

    Their source text represents them in the hash of a config. Worker processes must be able to find them
    again, so pieces that run in several processes belong in a file: `load_plugin`, or `--plugin FILE`.
    """
    for thing in things:
        if not isinstance(thing, (Method, type)):
            kind = type(thing).__name__
            wanted = f"the class {kind} itself, not an object of it" if isinstance(thing, Piece) else NEEDED
            raise PerdureError(f"register: give it {wanted} (given: {shortened(repr(thing))}).")
    _add({thing: _origin_of(thing) for thing in things})


def _origin_of(thing: type[Piece] | Method) -> Origin:
    """Name and digest of what was registered from Python: a class by its source, a method by its choices."""
    if isinstance(thing, Method):
        return Origin(f"method {thing.name}", _digest(repr(thing).encode()))
    try:
        text = inspect.getsource(thing)
    except (OSError, TypeError):
        raise PerdureError(
            f"The source text of '{thing.__name__}' cannot be read, so its results could not be told from "
            f"another version's; define it in a file or a notebook cell."
        ) from None
    return Origin(f"{thing.__module__}.{thing.__qualname__}", _digest(text.encode()))


def load_plugin(path: str | Path) -> Origin:
    """Load a Python file and register every piece and every `Method` that it defines."""
    file = Path(path).resolve()
    if file in OUTSIDE.files:
        return OUTSIDE.files[file]
    if not file.exists():
        raise PerdureError(f"--plugin: '{path}' does not exist.")
    if not file.is_file() or file.suffix != ".py":
        raise PerdureError(f"--plugin: '{path}' is not a Python file.")
    name = f"perdure_plugin_{file.stem}_{_digest(str(file).encode())[:8]}"
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
        source = Origin(file.name, digest_of(file))
        _add_module(module, source)
    except PerdureError:
        del sys.modules[name]
        raise
    except (Exception, SystemExit) as error:  # a script that ends the process is no plugin
        del sys.modules[name]
        raise PerdureError(f"The plugin '{path}' cannot be loaded: {_reason(error)}.") from error
    OUTSIDE.files[file] = source
    return source


def _defined(module: ModuleType) -> list[type[Piece] | Method]:
    """The pieces and methods that a module defines."""
    bases = tuple(kind.base_class() for kind in KINDS.values())
    return [
        item
        for name, item in vars(module).items()
        if (isinstance(item, Method) and not name.startswith("_"))
        or (_is_piece(item, bases) and item.__module__ == module.__name__)
    ]


def _reason(error: BaseException) -> str:
    """Why a plugin cannot be loaded; what pydantic says of an option without a type becomes one sentence."""
    told = str(error).partition("\n\n")[0].rstrip(".")
    if isinstance(error, PydanticUserError) and error.code in UNTYPED:
        option = re.findall(r"\w+", told.partition("`" if "`" in told else "'")[2])[0]
        lines = [frame.line or "" for frame in traceback.extract_tb(error.__traceback__)]
        classes = [found[1] for line in lines if (found := re.match(r"\s*class (\w+)", line))]
        where = f"{classes[-1]}.{option}" if classes else option
        return (
            f"{where} has no type; write {option}: float = ..., or {option}: ClassVar for what is no option"
        )
    return f"{type(error).__name__}: {told}"


def loaded_plugins() -> tuple[str, ...]:
    """Paths of the plugin files of this process, to be loaded in others."""
    return tuple(str(file) for file in OUTSIDE.files)


def plugin_words(sources: Iterable[Origin]) -> list[str]:
    """The words of a command that load these plugin files, as they lie from here."""
    files = {source: os.path.relpath(file) for file, source in OUTSIDE.files.items()}
    return [
        word
        for source in sources
        if source.name.endswith(".py")  # others are installed, or registered from Python
        for word in ("--plugin", files.get(source, source.name))
    ]


def _load_installed() -> None:
    """Register the modules named by entry points of installed packages, once.

    If one cannot be loaded, this raises, and again the next time, so that nothing runs without it.
    """
    if OUTSIDE.installed:
        return
    OUTSIDE.installed = True  # already now, since a plugin may ask for pieces while it is loaded
    try:
        _load_entries()
    except BaseException:
        OUTSIDE.installed = False
        raise


def _load_entries() -> None:
    """Register what each entry point names."""
    for entry in entry_points(group=GROUP):
        try:
            module = entry.load()
        except Exception as error:
            raise PerdureError(
                f"The installed plugin '{entry.value}' cannot be loaded: {_reason(error)}."
            ) from error
        file = Path(module.__file__ or "")
        digest = digest_of(file) if file.is_file() else _digest(entry.value.encode())
        _add_module(module, Origin(entry.value, digest))


def _add_module(module: ModuleType, source: Origin) -> None:
    """Register what a module defines; raises an error if that is nothing."""
    bases = tuple(kind.base_class() for kind in KINDS.values())
    found = _defined(module)
    _check_finished(module, bases, source)
    if not found:
        raise PerdureError(
            f"The plugin '{source.name}' defines no piece (a Penalty, Rehearsal, WeightSource, Cell, "
            f"Architecture or Benchmark) and no Method."
        )
    _add(dict.fromkeys(found, source))
    for item in vars(module).values():
        if isinstance(item, type) and item.__module__ == module.__name__ and not issubclass(item, bases):
            OUTSIDE.strangers[name_of_class(item)] = f"the class {item.__name__} of '{source.name}'"


def _check_finished(module: ModuleType, bases: tuple[type[Piece], ...], source: Origin) -> None:
    """Raise an error for a class that lacks a method it must have; it may be a base of others here."""
    own = [item for item in vars(module).values() if isinstance(item, type) and issubclass(item, bases)]
    for item in own:
        public = item.__module__ == module.__name__ and not item.__name__.startswith("_")
        derived = any(other is not item and issubclass(other, item) for other in own)
        if public and inspect.isabstract(item) and not derived:
            lacking = ", ".join(sorted(item.__abstractmethods__))
            raise PerdureError(
                f"The plugin '{source.name}' is not complete: {item.__name__} must define {lacking}."
            )


def _add(sources: Mapping[type[Piece] | Method, Origin]) -> None:
    """Store pieces and methods; nothing is stored if one of their names is taken.

    A plugin may be loaded again under its own name, for example after a change; it then replaces itself.
    """
    places = {thing: _place_of(thing) for thing in sources}
    for thing, source in sources.items():
        kind, name = places[thing]
        _check_free(kind, name, source)
        if list(places.values()).count((kind, name)) > 1:
            raise PerdureError(f"The plugin '{source.name}' defines two pieces called '{name}'; rename one.")
    for thing, source in sources.items():
        kind, name = places[thing]
        known: dict[str, Any] = OUTSIDE.methods if kind is None else OUTSIDE.pieces.setdefault(kind, {})
        OUTSIDE.origins.pop(known.get(name), None)
        known[name] = thing
        OUTSIDE.origins[thing] = source
        OUTSIDE.changes += 1


def _place_of(thing: type[Piece] | Method) -> tuple[str | None, str]:
    """The kind of a piece (None for a method) and the name by which it is found."""
    return (None, thing.name) if isinstance(thing, Method) else (_kind_of(thing), thing.name)


def _check_free(kind: str | None, name: str, source: Origin) -> None:
    """Refuse names of this package and names of other plugins."""
    singular = "method" if kind is None else KINDS[kind].singular
    if name in (METHODS if kind is None else _inside(kind)):
        raise PerdureError(f"Perdure already has a {singular} '{name}'; choose another name.")
    known: Mapping[str, object] = OUTSIDE.methods if kind is None else OUTSIDE.pieces.get(kind, {})
    owner = OUTSIDE.origins.get(known.get(name))
    if owner is not None and owner.name != source.name:
        raise PerdureError(
            f"The plugin '{owner.name}' already has a {singular} '{name}', so that of '{source.name}' "
            f"cannot have this name; choose another."
        )


def _kind_of(piece: type[Piece]) -> str:
    """The kind that a class belongs to."""
    for name, kind in KINDS.items():
        if issubclass(piece, kind.base_class()):
            return name
    raise PerdureError(
        f"'{piece.__name__}' is not a piece: derive it from Penalty, Rehearsal, WeightSource, Cell, "
        f"Architecture or Benchmark."
    )


@cache
def _inside(kind: str) -> dict[str, type[Piece]]:
    """All classes of a kind defined in the files of its folder, by name."""
    place = KINDS[kind]
    base, folder = place.base_class(), importlib.import_module(place.package)
    found: dict[str, type[Piece]] = {}
    for module in pkgutil.iter_modules(folder.__path__, place.package + "."):
        for item in vars(importlib.import_module(module.name)).values():
            if _is_piece(item, (base,)) and item.__module__ == module.name:
                found[item.name] = item
    return found


def _is_piece(item: object, bases: tuple[type[Piece], ...]) -> bool:
    """Whether something is a class that can be chosen by name."""
    return (
        isinstance(item, type)
        and issubclass(item, bases)
        and not inspect.isabstract(item)
        and not item.__name__.startswith("_")
        and item not in bases
    )


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


@dataclass(frozen=True)
class Choice:
    """Marks an option whose value is a piece of a kind; the piece's own options are below its name."""

    kind: str


def chosen(kind: str, value: object) -> object:
    """A piece from its name, or from its name and options; anything else is left to validation."""
    if isinstance(value, str):
        return validated(find(kind, value), {}, kind)
    if isinstance(value, Mapping) and "name" in value:
        options = {key: each for key, each in value.items() if key != "name"}
        return validated(find(kind, str(value["name"])), options, kind)
    return value


def said(piece: Piece) -> Any:
    """The inverse of `chosen`: just the name if no option differs from its default."""
    options = piece.plain()
    defaults = {name: each.default for name, each in type(piece).model_fields.items()}
    return piece.name if options == defaults else {"name": piece.name, **options}
