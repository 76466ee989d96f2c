"""Where runs are carried out: this process, local processes, a Dask cluster, Slurm."""
