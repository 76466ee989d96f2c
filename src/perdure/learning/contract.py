"""Whether a term keeps the contract of hooks: one from outside may break it, and nothing would say so."""

from __future__ import annotations

import inspect
from difflib import get_close_matches
from typing import get_args

from perdure.errors import PerdureError
from perdure.hooks import Hook, PhaseContext, Term, Watched
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


def begun(hook: Hook, memory: Vectors, context: PhaseContext) -> Term:
    """The hook's term for a phase; an error if it defines what would never be called.

    Such a method would be left out in silence, and the results would be those of another method.
    """
    term = hook.begin(memory, context)
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
