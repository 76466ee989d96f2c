"""Whether a term keeps the contract of hooks: one from outside may break it, and nothing would say so."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any, NamedTuple, get_args

from torch import Tensor

from perdure.errors import PerdureError
from perdure.hooks import Hook, PhaseContext, Term, Watched
from perdure.networks.batch import Batch
from perdure.networks.layout import Vectors

FLAGS = {
    "observe": ("watches", 'watches = "task" or "total"'),
    "transform": ("transforms", "transforms = True"),
    "redirect": ("redirects", "redirects = True"),
}
"""Methods of a term that are called only if a flag says so: the flag, and how it is set."""
METHODS = tuple(name for name, value in vars(Term).items() if inspect.isroutine(value) and name[0] != "_")
"""All methods of a term that are called."""
WATCHED = (*get_args(get_args(Watched)[0]), None)
"""The values of `watches`."""
NEAR = 0.8
"""How alike the name of a method must be to one that is called to be taken for it: 1 is the same."""


class Wanted(NamedTuple):
    """What a method of a term must return: a dict with keys and values of these types."""

    said: str
    keys: type[Any] = str
    values: type[Any] = Tensor
    single: bool = False
    """Whether each value must be one number."""


RETURNS = {
    "along": Wanted("a dict of batches by task", keys=object, values=Batch),
    "losses": Wanted("a dict of losses by name, each a tensor with one number", single=True),
    "transform": Wanted("the gradients, a dict of tensors by name"),
    "redirect": Wanted("the moves, a dict of tensors by name"),
    "state": Wanted("a dict of tensors by name"),
    "finish": Wanted("its memory, a dict of tensors by name"),
}
"""What must be returned, by method."""


def begun(hook: Hook, memory: Vectors, context: PhaseContext) -> Term:
    """The hook's term for a phase; an error if it defines what would never be called.

    Such a method would be left out in silence, and the results would be those of another method.
    """
    term: object = hook.begin(memory, context)
    if not isinstance(term, Term):
        raise PerdureError(f"{hook.name}: begin() must return a Term, but it returned {_told(term)}.")
    _check_names(hook.name, type(term))
    _check_flags(hook.name, term)
    return term


def _check_names(owner: str, kind: type[Term]) -> None:
    """Refuse a method that is called as one of the contract almost is, in a class that lacks that one."""
    for part in kind.__mro__[: kind.__mro__.index(Term)]:
        for name, value in vars(part).items():
            if name in METHODS or name.startswith("_") or not inspect.isroutine(value):
                continue
            near = get_close_matches(name.lower(), METHODS, n=1, cutoff=NEAR)
            if near and near[0] not in vars(part):
                raise PerdureError(
                    f"{owner}: {part.__name__} defines {name}(), which is never called; rename it "
                    f"{near[0]}(), or begin its name with an underscore if it is a method of its own."
                )


def _check_flags(owner: str, term: Term) -> None:
    """Refuse a method whose flag was forgotten; a flag that a class or the term sets is a decision."""
    kind = type(term)
    for method, (flag, set_so) in FLAGS.items():
        places = [vars(term), *(vars(part) for part in kind.__mro__ if part is not Term)]
        decided = any(flag in place for place in places)
        if getattr(kind, method) is not getattr(Term, method) and not decided:
            raise PerdureError(
                f"{owner}: {kind.__name__} defines {method}(), which is never called unless {flag} is set; "
                f"write {set_so} in the class."
            )
    if term.watches not in WATCHED:
        raise PerdureError(
            f"{owner}: {kind.__name__}.watches must be 'task', 'total' or None, but it is {term.watches!r}."
        )


def returned(owner: str, method: str, given: Any, like: Vectors | None = None) -> Any:
    """What a method of a term has returned, checked; `like` has the names and shapes that it may have.

    This is done in every iteration, so only types and shapes are looked at, no numbers.
    """
    wanted = RETURNS[method]
    if not isinstance(given, Mapping):
        fault: str | None = f"it returned {_told(given)}"
    else:
        faults = (_fault_of(wanted, name, value, like) for name, value in given.items())
        fault = next((each for each in faults if each is not None), None)
    if fault is None:
        return given
    raise PerdureError(f"{owner}: {method}() must return {wanted.said}, but {fault}.")


def _fault_of(wanted: Wanted, name: Any, value: Any, like: Vectors | None) -> str | None:
    """What is wrong with one entry of what was returned, if anything."""
    if not isinstance(name, wanted.keys):
        return f"a name in it is {_told(name)}"
    if not isinstance(value, wanted.values) or (wanted.single and value.numel() != 1):
        return f"'{name}' is {_told(value)}"
    if like is not None and name not in like:
        return f"'{name}' is none of what is trained ({', '.join(like)})"
    if like is not None and value.shape != like[name].shape:
        return f"'{name}' is {_told(value)} instead of {tuple(like[name].shape)}"
    return None


def _told(given: object) -> str:
    """What something is, in words."""
    if given is None:
        return "None"
    if isinstance(given, type):
        return f"the class {given.__name__}, not an object of it"
    if isinstance(given, Tensor):
        return f"a tensor of shape {tuple(given.shape)}"
    return f"a value of type {type(given).__name__}"
