"""Every method, cell and benchmark that is found keeps its promises; see perdure.testing."""

from __future__ import annotations

from typing import ClassVar

import pytest
import torch

import perdure.testing
from helpers import CELLS, EVERY
from perdure import Method, Penalty, Term
from perdure.methods import COMBINATIONS
from perdure.registry import methods, register


@pytest.mark.parametrize("method", EVERY)
def test_methods(method):
    perdure.testing.check_method(method)


def test_no_method_is_left_out():
    assert {*methods(), *COMBINATIONS} <= set(EVERY)


@pytest.mark.parametrize("cell", CELLS)
def test_cells(cell):
    perdure.testing.check_cell(cell)


class Broken(Penalty):
    """A penalty that breaks one promise, named by its method."""

    strength: float = 1.0
    """A factor that it ignores."""
    breaks: ClassVar[str] = ""

    def begin(self, memory, context):
        return BrokenTerm(self.breaks, memory, context)


class BrokenTerm(Term):
    """A loss that depends on what it must not depend on."""

    steps: ClassVar[list[int]] = []
    first: ClassVar[list[object]] = []

    def __init__(self, breaks, memory, context):
        self.breaks, self.memory = breaks, memory
        if not context.known:
            self.first[:] = [context.data(context.tasks[0])]  # a reference that outlives the phase

    def losses(self, step):
        weight = sum(vector.square().sum() for vector in step.active.values())
        if self.breaks == "random-numbers":
            return {"broken": weight * torch.rand(())}
        if self.breaks == "resume":  # a counter that no checkpoint stores
            self.count = getattr(self, "count", 0) + 1
            return {"broken": weight * self.count}
        if self.breaks == "old-data":
            return {"broken": weight * self.first[0].x.float().square().mean()}
        return {"broken": weight}


PROMISES = {
    "random-numbers": "global generator",
    "resume": "differ",
    "old-data": "without the data of others",
    "strength": "with strength 0 changes",
}
"""Promises, and what the check says where they are broken."""


@pytest.mark.parametrize("promise", PROMISES)
def test_a_broken_promise_is_found(promise):
    piece = type(f"Broken_{promise}", (Broken,), {"__doc__": "Broken.", "__module__": __name__})
    piece.name, piece.breaks = f"broken-{promise}", promise
    piece.__qualname__ = "Broken"  # whose source it is
    register(piece, Method(piece.name, "breaks a promise", penalties=(piece.name,)))
    with pytest.raises(AssertionError, match=PROMISES[promise]):
        perdure.testing.check_method(piece.name)


def test_an_option_without_a_help_text_is_found():
    class Silent(Penalty):
        """No help."""

        factor: float = 1.0

        def begin(self, memory, context):
            return Term()

    register(Silent, Method("silent", "no help", penalties=("silent",)))
    with pytest.raises(AssertionError, match=r"factor has no help text"):
        perdure.testing.check_method("silent")


def test_too_few_tasks_prove_nothing():
    with pytest.raises(AssertionError, match="too few"):
        perdure.testing.check_method("si", **{"benchmark.tasks": 3})
