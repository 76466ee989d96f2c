"""The table of docs/results.md: methods on a benchmark over seeds, beside the published numbers.

python -m performance.results [BENCHMARK[:option=value,...] METHOD,METHOD,... [SEEDS]]
"""

from __future__ import annotations

import json
import subprocess
import sys

from perdure.analysis.statistics import mean_and_sem
from perdure.records.store import to_record

PUBLISHED = {
    ("permuted-copy", "multitask"): ("N/A", "99.87 ± 0.05"),
    ("permuted-copy", "from-scratch"): ("N/A", "100.00 ± 0.00"),
    ("permuted-copy", "fine-tuning"): ("99.99 ± 0.00", "71.05 ± 0.13"),
    ("permuted-copy", "hnet"): ("99.98 ± 0.00", "99.96 ± 0.01"),
    ("permuted-copy", "online-ewc"): ("99.93 ± 0.01", "98.66 ± 0.14"),
    ("permuted-copy", "si"): ("98.41 ± 0.06", "94.03 ± 0.24"),
    ("permuted-copy", "masking"): ("99.53 ± 0.26", "72.31 ± 0.82"),
    ("permuted-copy", "masking+si"): ("99.40 ± 0.25", "99.40 ± 0.25"),
    ("permuted-copy", "rtf"): ("100.00 ± 0.00", "100.00 ± 0.00"),
    ("permuted-copy", "coresets"): ("100.00 ± 0.00", "99.94 ± 0.00"),
    ("padded-copy", "hnet"): ("100.00 ± 0.00", "100.00 ± 0.00"),
    ("padded-copy", "online-ewc"): ("97.94 ± 0.09", "97.89 ± 0.10"),
    ("pattern-manipulation", "hnet"): ("100.00 ± 0.00", "99.84 ± 0.15"),
    ("pattern-manipulation", "online-ewc"): ("98.52 ± 0.27", "95.45 ± 0.17"),
}
"""The paper's Table 1 (n = 10) and Table 2 (n = 5, r = 1): during and final, mean and SEM."""

METHODS = (
    "multitask,from-scratch,fine-tuning,hnet,online-ewc,si,masking,masking+si,masking+online-ewc,"
    "rtf,hnet+r,coresets"
)


def row(benchmark: str, options: list[str], method: str, seeds: int) -> str:
    """Run a method over seeds (finished records are used again) and format its line."""
    command = [sys.executable, "-m", "perdure.cli", "run", benchmark, method, *options]
    command += ["--seeds", str(seeds), "--workers", "2", "--json"]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    records = [to_record(json.loads(line)) for line in done.stdout.splitlines()]
    cells = []
    for name, paper in zip(("during", "final"), PUBLISHED.get((benchmark, method), ("-", "-")), strict=True):
        mean, sem = mean_and_sem([getattr(record, name) for record in records])
        cells += [f"{mean:.2f}" + ("" if sem is None else f" ± {sem:.2f}"), paper]
    seconds = sum(record.seconds for record in records) / len(records)
    return f"| {method} | {' | '.join(cells)} | {len(records)} | {seconds:.0f} |"


def main(benchmark: str = "permuted-copy", methods: str = METHODS, seeds: str = "5") -> None:
    """Print the table."""
    name, _, options = benchmark.partition(":")
    words = [f"--{option}" for option in options.split(",") if option]
    print(f"{name} {' '.join(words)}, laptop scale")
    print("| method | during | paper | final | paper | n | seconds a run |\n|---|---|---|---|---|---|---|")
    for method in methods.split(","):
        print(row(name, words, method, int(seeds)), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
