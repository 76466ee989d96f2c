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

_SIZE, _ADDRESS = ctypes.c_int64, ctypes.c_void_p
_WAY = (_SIZE, _ADDRESS, _ADDRESS, _SIZE)
"""Steps, rows per step, moves, units."""
SIGNATURES: dict[str, tuple[type, ...]] = {
    "elman_forward": (*_WAY, *[_ADDRESS] * 3),
    "elman_backward": (*_WAY, *[_ADDRESS] * 4),
    "lstm_forward": (*_WAY, *[_ADDRESS] * 6),
    "lstm_backward": (*_WAY, *[_ADDRESS] * 6),
    "gru_forward": (*_WAY, _ADDRESS, _ADDRESS, _SIZE, *[_ADDRESS] * 4),
    "gru_backward": (*_WAY, *[_ADDRESS] * 7),
    "diagonal_forward": (*_WAY, _ADDRESS, _ADDRESS, _SIZE, _ADDRESS),
    "diagonal_backward": (*_WAY, _ADDRESS, _ADDRESS, _SIZE, _ADDRESS),
    "linear_map": (_SIZE, _SIZE, _SIZE, _SIZE, *[_ADDRESS] * 4),
    "outer_sum": (_SIZE, _ADDRESS, _ADDRESS, _SIZE, _SIZE, *[_ADDRESS] * 3),
    "adam_step": (_SIZE, *[_ADDRESS] * 5),
    "adam_move": (_SIZE, *[_ADDRESS] * 6),
    "sum_of_squares": (_SIZE, _ADDRESS, _ADDRESS),
    "outer_squares": (_SIZE, _ADDRESS, _SIZE, _SIZE, *[_ADDRESS] * 4),
}


def describe() -> str:
    """The kernels that run on the CPU, in short: `native avx2`, or `python` and why."""
    level, why = _chosen(_asked())
    return f"python ({why})" if level is None else f"native {level}"


def available(tensor: Tensor) -> bool:
    """Whether the library runs for tensors like this one."""
    return tensor.device.type == "cpu" and str(tensor.dtype) in PRECISION and _chosen(_asked())[0] is not None


def _asked() -> str:
    return os.environ.get(VARIABLE, "")


def function(name: str, tensor: Tensor) -> Function | None:
    """A function of the library for tensors like this one; None where Python's sweeps are to run."""
    if tensor.device.type != "cpu" or str(tensor.dtype) not in PRECISION:
        return None
    level, _ = _chosen(_asked())
    return None if level is None else _function(name, level, PRECISION[str(tensor.dtype)])


@lru_cache
def _function(name: str, level: str, precision: str) -> Function:
    library, why = _opened()
    assert library is not None, why
    found = getattr(library, f"{name}_{level}_{precision}")
    found.argtypes, found.restype = SIGNATURES[name], ctypes.c_int
    result: Function = found
    return result


@lru_cache
def _chosen(choice: str) -> tuple[str | None, str]:
    """The instruction set that is used, or None and the reason."""
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
