"""The contract tests, for pieces from inside and outside alike.

Whoever writes a method, a penalty, a cell or a benchmark can call these from a test of their own:

    import perdure.testing

    def test_mine():
        perdure.load_plugin("mine.py")
        perdure.testing.check_method("mine")

Each raises an AssertionError that says which promise was broken. They take a few seconds.
"""

from __future__ import annotations

from perdure.testing.benchmarks import check_benchmark as check_benchmark
from perdure.testing.cells import check_cell as check_cell
from perdure.testing.methods import check_device as check_device
from perdure.testing.methods import check_later_tasks_are_not_needed as check_later_tasks_are_not_needed
from perdure.testing.methods import check_method as check_method
from perdure.testing.methods import check_old_data_are_not_needed as check_old_data_are_not_needed
from perdure.testing.methods import check_options as check_options
from perdure.testing.methods import check_random_numbers as check_random_numbers
from perdure.testing.methods import check_resumes as check_resumes
from perdure.testing.methods import check_strength_zero as check_strength_zero
from perdure.testing.methods import small as small
