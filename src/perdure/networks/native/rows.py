"""How sequences lie in packed rows, by the compiled library: plans, and rows in one pass over memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from perdure.networks.native.library import plain_function

if TYPE_CHECKING:
    from collections.abc import Sequence

    from perdure.networks.packing import Packing, Way


def pack_rows(way: Way, order: Tensor, padded: Tensor, chosen: Tensor | None) -> Tensor | None:
    """Rows [S, ...] of sequences chosen[order] of padded [N, T, ...]; None where the library does not run.

    It copies numbers and no graph, so whatever requires a gradient is left to torch.
    """
    copied = padded.is_cpu and padded.is_contiguous() and not padded.requires_grad
    run = plain_function("pack_rows") if copied else None
    if run is None:
        return None
    count, length, *shape = padded.shape
    steps, sizes, _ = way.addresses
    if steps > length or order.shape[0] != way.sizes[0]:
        raise ValueError(
            f"pack_rows: {steps} steps of {way.sizes[0]} sequences do not fit {length} of {order.shape[0]}."
        )
    rows = padded.new_empty(way.rows, *shape)
    width = padded.element_size() * (rows.stride(0) if shape else 1)
    order = order.to("cpu").long().contiguous()
    address = None
    if chosen is not None:
        chosen = chosen.to("cpu").long().contiguous()
        address = chosen.data_ptr()
    if not run(
        steps, sizes, order.data_ptr(), address, padded.data_ptr(), count, length, width, rows.data_ptr()
    ):
        raise IndexError(f"pack_rows: a sequence was asked for that is not among {count}.")
    return rows


def pack_plan(lengths: Tensor, longest: int) -> tuple[Tensor, NDArray[np.int64]] | None:
    """The sequences by decreasing length [B], and how many run at each step [T]; None without the library."""
    run = plain_function("pack_plan")
    if run is None:
        return None
    order, sizes = torch.empty_like(lengths), np.empty(longest, dtype=np.int64)
    if not run(lengths.shape[0], lengths.data_ptr(), longest, order.data_ptr(), sizes.ctypes.data):
        raise ValueError(f"pack_plan: lengths must be from 1 to {longest}.")
    return order, sizes


def last_rows(way: Way, order: Tensor, count: int) -> Tensor | None:
    """Rows of the last `count` steps of each sequence [count * B]; None without the library."""
    run = plain_function("last_rows")
    if run is None:
        return None
    steps, sizes, _ = way.addresses
    rows = torch.empty(count * order.shape[0], dtype=torch.int64)
    run(steps, sizes, order.data_ptr(), count, rows.data_ptr())
    return rows


def join_rows(
    whole: Packing, packings: Sequence[Packing], parts: Sequence[Tensor]
) -> tuple[Tensor, Tensor] | None:
    """Rows [S, ...] of several packed batches as one, and for each row of each batch its place there [S].

    None without the library, and for whatever requires a gradient, which is left to torch.
    """
    like, run = parts[0], plain_function("join_rows")
    copied = all(part.is_cpu and part.dtype == like.dtype and not part.requires_grad for part in parts)
    if run is None or not copied:
        return None
    kept = [part.contiguous() for part in parts]
    shape = like.shape[1:]
    if any(part.shape != (each.forward.way.rows, *shape) for part, each in zip(kept, packings, strict=True)):
        raise ValueError(f"join_rows: rows {[list(part.shape) for part in parts]} do not fit their packings.")
    table = np.array(
        [
            (part.data_ptr(), each.forward.way.addresses[1], _address(each.order), each.steps)
            for part, each in zip(kept, packings, strict=True)
        ],
        dtype=np.int64,
    )
    steps, sizes, _ = whole.forward.way.addresses
    rows = like.new_empty(whole.forward.way.rows, *shape)
    places = torch.empty(len(rows), dtype=torch.int64)
    width = rows.element_size() * (rows.stride(0) if shape else 1)
    order = _address(whole.order) or None
    addresses = table.ctypes.data, width, rows.data_ptr(), places.data_ptr()
    if not run(steps, sizes, order, len(kept), *addresses):
        raise MemoryError("join_rows: not enough memory for its buffers.")
    return rows, places


def _address(order: Tensor | None) -> int:
    return 0 if order is None else order.data_ptr()
