"""100 SIGKILLs and 50 SIGTERM or SIGINT, from the first 10 ms of a command on, over eight methods.

`python -m fuzz [--kills N] [--stops N] [--seed S] [--real SHARE]`. A command that was disturbed is given
again until it ends; its record and every tensor that it keeps must equal those of an undisturbed one, bit
for bit.

Loading takes seconds, and the run itself tenths of one. A SHARE of the signals goes to real processes, half
of these within the first second after the start, the others at any moment until the end; the rest goes to
copies of this process, in which everything is loaded, so that all of their moments are within a run.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import torch

import perdure.commands.running
import perdure.executors
import perdure.report.progress  # noqa: F401  # copies of this process have loaded them
from fuzz.comparing import difference
from perdure.cli import main as main_of_perdure

METHODS = ("fine-tuning", "online-ewc", "si", "masking+si", "coresets", "hnet", "rtf", "hnet+r")
COMMON: dict[str, object] = {
    "benchmark.i": 3, "benchmark.p": 3, "benchmark.width": 3, "benchmark.tasks": 2, "benchmark.train": 60,
    "benchmark.val": 20, "benchmark.test": 20, "network.hidden": 10, "network.orthogonal": "false",
    "training.iterations": 12, "training.batch_size": 8, "training.validate_every": 4,
    "training.patience": "none",
}  # fmt: skip
OWN: dict[str, dict[str, object]] = {
    "coresets": {"rehearsal.size": 9},
    "hnet": {"weights.hidden": "6", "weights.chunk": 60},
    "rtf": {"rehearsal.hidden": 6},
    "hnet+r": {"rehearsal.hidden": 6},
}
FIRST = 0.01
"""Seconds after which a command may be disturbed at the earliest."""
EARLY = 1.0
"""Seconds after the start of a real process within which half of its signals arrive."""
SHARE = 0.5
"""Of all signals, those for real processes."""


@dataclass
class Tally:
    """What happened."""

    ends: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)


def command(method: str, runs: Path) -> list[str]:
    """A tiny run, whose checkpoints follow each other as fast as they can."""
    options = COMMON | OWN.get(method, {})
    words = ["run", "permuted-copy", method, "--scale", "smoke", "--runs", str(runs), "--save-every", "0"]
    return [
        sys.executable,
        "-m",
        "perdure",
        *words,
        *(f"--{name}={value}" for name, value in options.items()),
    ]


def started(method: str, runs: Path, told: Path, *, forked: bool) -> int:
    """Start the command with its words going to a file; returns the number of its process.

    Forked, it is a copy of this process, in which everything is loaded: faster by the seconds that takes.
    """
    words, handled = command(method, runs), (signal.SIGINT, signal.SIGTERM)
    how = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    if not forked:
        streams = [(os.POSIX_SPAWN_OPEN, 1, str(told), how, 0o666), (os.POSIX_SPAWN_DUP2, 1, 2)]
        return os.posix_spawn(words[0], words, os.environ, file_actions=streams, setsigdef=handled)
    number = os.fork()
    if number == 0:
        for each in handled:
            signal.signal(each, signal.SIG_DFL)
        handle = os.open(told, how)
        os.dup2(handle, 1)
        os.dup2(handle, 2)
        sys.argv = words[2:]
        code = main_of_perdure()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    return number


def ended(process: int) -> int:
    """Wait for a process; returns its exit code, or minus the signal that ended it."""
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


def whole(method: str, runs: Path, *, forked: bool) -> float:
    """An undisturbed run; returns the seconds that it took."""
    begun, told = time.monotonic(), runs.parent.parent / "told"
    runs.parent.mkdir(parents=True, exist_ok=True)
    code = ended(started(method, runs, told, forked=forked))
    if code:
        raise SystemExit(f"{method}: undisturbed, but exit code {code}: {told.read_text()[-500:]}")
    return time.monotonic() - begun


def disturb(method: str, runs: Path, number: int, after: float, tally: Tally, *, forked: bool) -> bool:
    """Start the command, send a signal after some seconds; returns whether it was still there."""
    told = runs.parent.parent / "told"
    runs.parent.mkdir(parents=True, exist_ok=True)
    process = started(method, runs, told, forked=forked)
    time.sleep(after)
    there = os.waitid(os.P_PID, process, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None
    if there:
        os.kill(process, number)
    code = ended(process)
    if there:
        _judge(method, number, code, told.read_text(), tally)
    elif code != 0:
        tally.faults.append(f"{method}: undisturbed, but exit code {code}: {told.read_text()[-300:]}")
    return there


def _judge(method: str, number: int, code: int, told: str, tally: Tally) -> None:
    """Whether a command ended as it should after a signal: at once, with a sentence, or finished."""
    name = signal.Signals(number).name
    sentences = [line for line in told.splitlines() if line.startswith("perdure: ")]
    if number == signal.SIGKILL or code == 0:
        tally.ends[f"{name}: {'killed' if code else 'ended before'}"] += 1
    elif code == -number:
        tally.ends[f"{name}: ended by the system, before Python could handle it"] += 1
    elif code == 128 + number and len(sentences) == 1 and "Traceback" not in told:
        tally.ends[f"{name}: exit {code} and a sentence"] += 1
    elif "KeyboardInterrupt" in told and "perdure/" not in told:
        tally.ends[f"{name}: Python's own traceback, before our first line"] += 1
    else:
        tally.ends[f"{name}: wrong"] += 1
        tally.faults.append(f"{method}: {name} gave exit code {code}: {told[-500:]}")


def campaign(folder: Path, signals: list[int], chance: random.Random, tally: Tally, share: float) -> None:
    """Give each signal to a command of a method, in turn; now and then, end the run and compare it."""
    lengths = {method: whole(method, folder / "whole" / method, forked=True) for method in METHODS}
    real = whole(METHODS[0], folder / "disturbed" / METHODS[0], forked=False) if share else 0.0
    if share:
        _compare(METHODS[0], folder, tally)
    told = ", ".join(f"{name} {spent:.1f} s" for name, spent in lengths.items())
    print(f"Undisturbed: {told}; a real process {real:.1f} s", flush=True)
    left = {method: 0 for method in METHODS}
    for count, number in enumerate(signals):
        method = METHODS[count % len(METHODS)]
        runs, forked = folder / "disturbed" / method, chance.random() >= share
        longest = lengths[method] if forked else chance.choice((min(EARLY, real), real))
        tally.ends["signals to copies" if forked else "signals to real processes"] += 1
        after = FIRST + chance.random() * longest
        while not disturb(method, runs, number, after, tally, forked=forked):
            _compare(method, folder, tally)
            after = FIRST + chance.random() * after  # it was faster this time
        left[method] += 1
        if left[method] >= chance.randint(2, 5):  # several signals to one run, then to its end
            left[method] = 0
            whole(method, runs, forked=True)
            _compare(method, folder, tally)
        if count % 10 == 9:
            print(f"{count + 1} of {len(signals)} signals: {dict(tally.ends)}", flush=True)
    for method in METHODS:
        whole(method, folder / "disturbed" / method, forked=True)
        _compare(method, folder, tally)


def _compare(method: str, folder: Path, tally: Tally) -> None:
    """Compare a finished run with the undisturbed one, and make room for the next."""
    fault = difference(folder / "disturbed" / method, folder / "whole" / method)
    tally.ends["runs compared"] += 1
    if fault:
        tally.faults.append(f"{method}: {fault}")
    shutil.rmtree(folder / "disturbed" / method)


def main() -> int:
    """Count, compare, say what happened."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--stops", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--real", type=float, default=SHARE, help="of all signals, those for real processes")
    read = parser.parse_args()
    chance, tally = random.Random(read.seed), Tally()
    stops = [signal.SIGTERM if number % 2 else signal.SIGINT for number in range(read.stops)]
    signals = [int(number) for number in [*[signal.SIGKILL] * read.kills, *stops]]
    chance.shuffle(signals)
    torch.set_num_threads(1)  # a process with several threads must not be copied
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="perdure-fuzz-") as folder:
        campaign(Path(folder), signals, chance, tally, read.real)
    for what, count in sorted(tally.ends.items()):
        print(f"{count:5}  {what}")
    for fault in tally.faults:
        print(f"FAULT  {fault}")
    print(
        f"{len(signals)} signals, {len(tally.faults)} faults, {(time.monotonic() - begun) / 60:.1f} minutes"
    )
    return int(bool(tally.faults))


if __name__ == "__main__":
    sys.exit(main())
