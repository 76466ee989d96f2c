"""Generators derived from (seed, role); the global generator is never touched.

Each use of randomness has its own role, so that an additional draw in one place changes nothing elsewhere.
"""

from __future__ import annotations

import hashlib

import torch


def generator(seed: int, *role: object) -> torch.Generator:
    """A generator on the CPU that depends only on the seed and the role."""
    words = "/".join([str(seed), *(str(part) for part in role)])
    digest = hashlib.sha256(words.encode()).digest()
    return torch.Generator().manual_seed(int.from_bytes(digest[:8], "little") >> 1)
