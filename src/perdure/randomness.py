"""Generators derived from (seed, role); the global generator is never touched.

Each use of chance has a role of its own, so that one more draw in one place shifts nothing elsewhere.
"""

from __future__ import annotations

import hashlib

import torch


def generator(seed: int, *role: object) -> torch.Generator:
    """A generator on the CPU that depends on the seed and on the role alone."""
    words = "/".join([str(seed), *(str(part) for part in role)])
    digest = hashlib.sha256(words.encode()).digest()
    return torch.Generator().manual_seed(int.from_bytes(digest[:8], "little") >> 1)
