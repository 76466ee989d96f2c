"""Open an engine: local processes, a Dask cluster by its address, or Slurm."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from perdure.engines.engine import Engine, ThisProcess
from perdure.errors import PerdureError

SLURM, SLURM_LOCAL = "slurm", "slurm-local"
"""Slurm, and the same through submitit's local executor."""
SCHEMES = ("tcp://", "tls://", "ucx://", "ws://")


def opened(
    workers: int = 1,
    cluster: str | None = None,
    folder: Path | None = None,
    settings: Mapping[str, str] | None = None,
) -> Engine:
    """The engine for `workers` processes or a cluster; `folder` is a shared folder for job files."""
    if cluster is None:
        from perdure.engines.local import LocalProcesses

        return ThisProcess() if workers == 1 else LocalProcesses(workers)
    if cluster in (SLURM, SLURM_LOCAL):
        from perdure.engines.slurm import Submitted

        assert folder is not None
        return Submitted(folder, workers, settings or {}, local=cluster == SLURM_LOCAL)
    if not cluster.startswith(SCHEMES):
        raise PerdureError(
            f"--cluster: '{cluster}' is not an address of a Dask scheduler (such as tcp://127.0.0.1:8786) "
            f"and not 'slurm'."
        )
    from perdure.engines.dask_cluster import DaskCluster

    return DaskCluster(cluster)
