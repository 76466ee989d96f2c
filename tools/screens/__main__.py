"""Take the screens of docs/screens.md again: the commands in tmux, at 80 and at 120 columns, as they are.

`python -m screens FILE` writes the page; it needs tmux. Times differ from one machine to the next.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

WIDTHS = (80, 120)
LINES = 120
"""Height of the terminal; a screen that is longer would lose its beginning."""
TINY = "--scale smoke --training.iterations 40"
PREPARED = (
    f"run permuted-copy online-ewc {TINY} --seeds 2",
    f"run permuted-copy masking+si {TINY}",
    "run copy fine-tuning --scale smoke --training.iterations 40",
    f"run permuted-copy fine-tuning {TINY} --benchmark.repeats 4",
)
"""What has been run before the screens are taken; the last one has twelve tasks."""
SHOWN = (
    "list",
    f"run permuted-copy si {TINY}",
    "show",
    "show RUN",
    "reproduce",
    "reproduce theory --scale smoke",
    "data check mine",
    "show nothing",
)
CSV = "sequence,split,speed,height,label\n" + "".join(
    f"{split}-{number},{split},{len(split)}.{number},{step},{'walk' if number % 2 else 'run'}\n"
    for split, count in (("train", 12), ("val", 4), ("test", 4))
    for number in range(count)
    for step in range(5)
)
HEAD = """\
# Screens

What the commands look like in a terminal of 80 and of 120 columns, taken from tmux by `make screens`;
nothing is edited.
"""


def main(target: str) -> int:
    """Write the page."""
    if shutil.which("tmux") is None:
        print("The screens are taken from tmux, which is not installed.", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as folder:
        parts, before = [HEAD], Path(folder) / "before"
        run = _prepare(before)
        for width in WIDTHS:
            place = shutil.copytree(before, Path(folder) / str(width))
            parts.append(f"\n## {width} columns\n")
            parts += [_block(place, words.replace("RUN", run), width) for words in SHOWN]
    Path(target).write_text("".join(parts), encoding="utf-8")
    return 0


def _prepare(place: Path) -> str:
    """A folder with runs and data; returns the digits of the run with most tasks."""
    for name in ("north", "south"):
        (place / "mine" / name).mkdir(parents=True)
        (place / "mine" / name / "walks.csv").write_text(CSV, encoding="utf-8")
    for words in PREPARED:
        subprocess.run([*_python(), *words.split()], cwd=place, check=True, capture_output=True)
    newest = max(place.glob("runs/*/record.json"), key=lambda path: path.stat().st_mtime)
    return newest.parent.name[:6]


def _python() -> list[str]:
    return [sys.executable, "-m", "perdure"]


def _block(place: Path, words: str, width: int) -> str:
    """One command as typed, and what the terminal then shows."""
    name = f"screens-{os.getpid()}"
    script = place / "screen.sh"
    run = shlex.join([*_python(), *words.split()])
    script.write_text(
        f"echo '$ perdure {words}'\n{run}\ntmux wait-for -S {name}\nsleep 600\n", encoding="utf-8"
    )
    size = ["-x", str(width), "-y", str(LINES)]
    paths = ["-e", f"PYTHONPATH={os.environ.get('PYTHONPATH', '')}", "-c", str(place)]
    subprocess.run(
        [
            "tmux",
            "-L",
            name,
            "-f",
            "/dev/null",
            "new-session",
            "-d",
            "-s",
            name,
            *size,
            *paths,
            f"sh {script}",
        ],
        check=True,
    )
    try:
        subprocess.run(["tmux", "-L", name, "wait-for", name], check=True, timeout=900)
        taken = subprocess.run(
            ["tmux", "-L", name, "capture-pane", "-p", "-t", name], check=True, capture_output=True, text=True
        )
    finally:
        subprocess.run(["tmux", "-L", name, "kill-session", "-t", name], check=False, capture_output=True)
    return f"\n```text\n{taken.stdout.rstrip()}\n```\n"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else "docs/screens.md"))
