"""The Python of the README runs as it stands there."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

README = Path(__file__).parents[1] / "README.md"
BLOCKS = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
SHORTER = [
    ('scale="smoke"', 'scale="smoke", training__iterations=20'),
    ("training__iterations=300", ""),
    ('"hidden": 64}', '"hidden": 16}, training={"iterations": 20}'),
]
"""What is replaced so that it takes less long; the second one stands beside the first."""
PANDAS = importlib.util.find_spec("pandas") is not None


@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_the_code_of_the_readme_runs(number, tmp_path):
    code = BLOCKS[number]
    for long, short in SHORTER:
        code = code.replace(long, short)
    if not PANDAS:
        code = re.sub(r"(?m)^ *(frame = |print\(frame).*\n", "", code)
    (tmp_path / "program.py").write_text(code)
    done = subprocess.run(
        [sys.executable, "program.py"], cwd=tmp_path, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


def test_the_readme_has_code_to_run():
    assert len(BLOCKS) >= 2
