"""Whether sizes can fit into memory at all: asked before anything is allocated.

A system that promises more memory than it has ends a process without a word once that is used.
"""

from __future__ import annotations

from pathlib import Path

from perdure.networks.network import Network

NUMBER = 4
"""Bytes of a single-precision number."""
COPIES = 2
"""Of each weight: itself and its gradient (of a masked network less, of most optimisers more)."""
MEMORY = Path("/proc/meminfo")
LIMIT = Path("/sys/fs/cgroup/memory.max")
"""What a container may use, in bytes, or "max". What it uses says little: cached files give way to others."""


def free_bytes() -> int | None:
    """Memory that is free, or None where the system does not say so in a file."""
    free: list[int] = []
    try:
        lines = dict(line.split(":", 1) for line in MEMORY.read_text().splitlines())
        free.append(1024 * int(lines["MemAvailable"].split()[0]))
        free.append(int(LIMIT.read_text()))
    except (OSError, ValueError, KeyError):
        pass  # another system, or no limit
    return min(free) if free else None


def least_bytes(network: Network, batch: int, steps: int, features: int) -> tuple[int, int]:
    """The least that weights, and a mini-batch [batch, steps], take while a network is trained."""
    weights = network.layout.size * NUMBER * COPIES
    return weights, batch * (steps * features + sum(network.units.values())) * NUMBER


def lacking_room(network: Network, batch: int, steps: int, features: int) -> str | None:
    """Why a network and a mini-batch cannot fit into the memory that is free, if they cannot."""
    free = free_bytes()
    weights, rows = least_bytes(network, batch, steps, features)
    if free is None or weights + rows <= free:
        return None
    if rows > weights:
        need, advice = f"a mini-batch needs at least {_size(rows)}", "a smaller --training.batch_size"
    else:
        need, advice = f"the weights need at least {_size(weights)}", "fewer units (--network.hidden)"
    return f"Not enough memory: {need}, but {_size(free)} are free; choose {advice}"


def _size(count: int) -> str:
    return f"{count / 1e9:.3g} GB"
