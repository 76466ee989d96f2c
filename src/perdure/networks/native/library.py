"""The compiled library: finding and checking it, and choosing the best instruction set of this processor.

`PERDURE_KERNELS` in the environment overrides the choice: `python` turns the library off, `native` requires
it, and `avx512`, `avx2` and `baseline` select an instruction set.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING

from perdure.errors import PerdureError, unknown
from perdure.networks.native import build
from perdure.networks.native.build import LEVELS, LIBRARY, fingerprint

if TYPE_CHECKING:
    from torch import Tensor

VARIABLE = "PERDURE_KERNELS"
CHOICES = ("python", "native", *LEVELS)
PRECISION = {"torch.float32": "f32", "torch.float64": "f64"}
"""How functions of each precision end; by the name of the precision, to spare the import of torch."""

Function = Callable[..., int]
"""A C function of addresses and sizes; returns 1 on success, 0 if memory ran out."""

Signature = tuple[type, ...]
"""The types of a C function's arguments."""

SIZE, ADDRESS = ctypes.c_int64, ctypes.c_void_p
WAY: Signature = (SIZE, ADDRESS, SIZE, SIZE)
"""Steps, rows per step, direction, units."""
SIGNATURES: dict[str, Signature] = {
    "linear_map": (SIZE, SIZE, SIZE, SIZE, *[ADDRESS] * 4),
    "outer_sum": (SIZE, ADDRESS, SIZE, SIZE, SIZE, *[ADDRESS] * 4),
    "elementwise": (SIZE, SIZE, ADDRESS, ADDRESS),
    "elementwise_back": (SIZE, SIZE, *[ADDRESS] * 3),
    "layer_gradients": (SIZE, ADDRESS, *[SIZE] * 4, *[ADDRESS] * 6),
    "pack_plan": (SIZE, ADDRESS, SIZE, ADDRESS, ADDRESS),
    "last_rows": (SIZE, ADDRESS, ADDRESS, SIZE, ADDRESS),
    "join_rows": (SIZE, ADDRESS, ADDRESS, SIZE, ADDRESS, SIZE, ADDRESS, ADDRESS),
    "pack_rows": (SIZE, *[ADDRESS] * 4, SIZE, SIZE, SIZE, ADDRESS),
    "adam_step": (SIZE, *[ADDRESS] * 5),
    "adam_move": (SIZE, *[ADDRESS] * 6),
    "sum_of_squares": (SIZE, ADDRESS, ADDRESS),
    "weighted_distance": (SIZE, *[ADDRESS] * 4, SIZE, ADDRESS, ADDRESS),
    "weighted_difference": (SIZE, *[ADDRESS] * 4, SIZE, ADDRESS, ctypes.c_double, ADDRESS),
    "class_loss": (SIZE, SIZE, *[ADDRESS] * 4),
    "bit_loss": (SIZE, ctypes.c_double, *[ADDRESS] * 5),
    "teacher_loss": (SIZE, SIZE, ctypes.c_double, *[ADDRESS] * 5),
    "multiply_adds": (SIZE, ADDRESS, ADDRESS),
    "outer_measures": (SIZE, SIZE, ADDRESS, SIZE, ADDRESS, ADDRESS, SIZE, ADDRESS),
}


def describe() -> str:
    """The kernels that run on the CPU, in short: `native avx2`, or `python` and why."""
    level, why = _chosen()
    return f"python ({why})" if level is None else f"native {level}"


def available(tensor: Tensor) -> bool:
    """Whether the library runs for tensors like this one."""
    return tensor.is_cpu and _level_for(tensor.dtype) is not None


def function(name: str, tensor: Tensor, signature: Signature | None = None) -> Function | None:
    """A function of the library for tensors like this one; None where Python's sweeps are to run."""
    return _function(name, tensor.dtype, signature) if tensor.is_cpu else None


def plain_function(name: str) -> Function | None:
    """A function that does not depend on precision or instructions; None if the library is not to run."""
    return _plain_function(name) if _chosen()[0] is not None else None


def forget() -> None:
    """Read the environment and the library again; they are read only once, since every product asks."""
    for cached in (_chosen, _opened, _level_for, _function, _plain_function):
        cached.cache_clear()


@lru_cache
def _function(name: str, precision: object, signature: Signature | None) -> Function | None:
    level = _level_for(precision)
    if level is None:
        return None
    library, why = _opened()
    assert library is not None, why
    found = getattr(library, f"{name}_{level}_{PRECISION[str(precision)]}")
    found.argtypes, found.restype = signature or SIGNATURES[name], ctypes.c_int
    result: Function = found
    return result


@lru_cache
def _plain_function(name: str) -> Function:
    library, why = _opened()
    assert library is not None, why
    found = getattr(library, f"perdure_{name}")
    found.argtypes, found.restype = SIGNATURES[name], ctypes.c_int
    result: Function = found
    return result


@lru_cache
def _level_for(precision: object) -> str | None:
    return _chosen()[0] if str(precision) in PRECISION else None


@lru_cache
def _chosen() -> tuple[str | None, str]:
    """The instruction set that is used, or None and the reason."""
    choice = os.environ.get(VARIABLE, "")
    if choice and choice not in CHOICES:
        raise unknown(f"choice of {VARIABLE}", choice, CHOICES)
    if choice == "python":
        return None, f"requested by {VARIABLE}"
    library, why = _opened()
    if library is None:
        if choice:
            raise PerdureError(f"{VARIABLE}={choice}: there are no native kernels: {why}.")
        return None, why
    highest = list(LEVELS)[library.perdure_highest_level()]
    if choice in ("", "native"):
        return highest, ""
    if list(LEVELS).index(choice) > list(LEVELS).index(highest):
        raise PerdureError(
            f"{VARIABLE}={choice}: this processor does not support {choice}; its best is {highest}."
        )
    return choice, ""


@lru_cache
def _opened() -> tuple[ctypes.CDLL | None, str]:
    """The library, or None and what is wrong with it."""
    if not LIBRARY.is_file():
        return None, "no compiler was found when perdure was installed"
    try:
        library = ctypes.CDLL(str(LIBRARY))
        library.perdure_sources.restype = ctypes.c_char_p
        made_from = library.perdure_sources().decode()
    except (OSError, AttributeError) as error:
        return None, f"{LIBRARY.name} cannot be loaded: {error}"
    if made_from != fingerprint():  # its functions may take other arguments
        return None, f"{LIBRARY.name} is older than its sources; rebuild it with python -m {build.__name__}"
    return library, ""
