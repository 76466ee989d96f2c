"""Every method, cell and benchmark that is found keeps its promises; see perdure.testing."""

from __future__ import annotations

import pytest

import perdure.testing
from helpers import CELLS, EVERY
from perdure.methods import COMBINATIONS
from perdure.registry import methods


@pytest.mark.parametrize("method", EVERY)
def test_methods(method):
    perdure.testing.check_method(method)


def test_no_method_is_left_out():
    assert {*methods(), *COMBINATIONS} <= set(EVERY)


@pytest.mark.parametrize("cell", CELLS)
def test_cells(cell):
    perdure.testing.check_cell(cell)
