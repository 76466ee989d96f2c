"""Shared by all tests: one thread each, since they run in parallel."""

from __future__ import annotations

import signal
import threading

import pytest
import torch
from hypothesis import HealthCheck, settings

# A busy machine may stop for longer than the 200 ms that an example has by default; that is no failure.
settings.register_profile("perdure", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("perdure")


def pytest_configure() -> None:
    """Background jobs of a shell ignore Ctrl-C, and so would all processes that tests start and interrupt."""
    here = threading.current_thread() is threading.main_thread()
    if here and signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def _registry_as_before():
    """Pieces from outside that a test registers are gone after it."""
    from perdure import registry

    outside = registry.OUTSIDE
    pieces = {kind: dict(found) for kind, found in outside.pieces.items()}
    methods, origins, files, installed = (
        dict(outside.methods),
        dict(outside.origins),
        dict(outside.files),
        outside.installed,
    )
    before = outside.changes
    yield
    if outside.changes != before or outside.installed != installed:
        outside.pieces, outside.methods, outside.origins = pieces, methods, origins
        outside.files, outside.installed = files, installed
        outside.changes += 1
