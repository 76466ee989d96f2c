"""Imports go only downwards through the layers, and importing perdure has no side effects."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import perdure
from perdure.targets.finding import all_targets

ROOT = Path(perdure.__file__).parent
LAYERS = [
    {"errors", "alignment", "identity", "plugin_sources"},
    {"options", "randomness", "files"},
    {"checking"},
    {"targets"},
    {"methods"},
    {"registry"},
    {"benchmarks"},
    {"networks"},
    {"weights"},
    {"hooks"},
    {"penalties"},
    {"rehearsal"},
    {"learning", "presets"},
    {"config"},
    {"storage"},
    {"experiment"},
    {"testing"},
    {"mailbox"},
    {"fingerprint"},
    {"worker"},
    {"engines"},
    {"executors"},
    {"search"},
    {"analysis"},
    {"compare"},
    {"paper"},
    {"report"},
    {"learner"},
    {"commands"},
    {"cli"},
    {"__main__"},
]
"""From the bottom up; a module may import its own layer's folder and everything below."""


def layer(module: str) -> int:
    (found,) = [n for n, names in enumerate(LAYERS) if module.split(".")[1] in names]
    return found


def imports(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("perdure."):
            found.add(node.module)
        elif isinstance(node, ast.ImportFrom) and node.module == "perdure":
            found |= {f"perdure.{name.name}" for name in node.names}
        elif isinstance(node, ast.Import):
            found |= {name.name for name in node.names if name.name.startswith("perdure.")}
    return found


def test_imports_go_downwards():
    for path in ROOT.rglob("*.py"):
        relative = path.relative_to(ROOT.parent).with_suffix("")
        if relative.name == "__init__":
            continue
        module = ".".join(relative.parts)
        for other in imports(path):
            same_folder = other.split(".")[1] == relative.parts[1]
            assert layer(other) < layer(module) or same_folder, f"{module} imports {other}"


def test_only_who_makes_data_names_a_target():
    """Everyone else asks the target that the data have."""
    named = {f"perdure.targets.{name}" for name in all_targets()}
    makers = {ROOT / "targets", ROOT / "benchmarks", ROOT / "testing", ROOT / "learner"}
    for path in ROOT.rglob("*.py"):
        if path != ROOT / "__init__.py" and not makers & set(path.parents):
            assert not imports(path) & named, path
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Compare):
                    words = [part.value for part in ast.walk(node) if isinstance(part, ast.Constant)]
                    assert not {"bits", "tags", "value"} & {w for w in words if isinstance(w, str)}, path


def test_targets_need_no_torch_before_they_compute():
    code = (
        "import sys; from perdure.targets.finding import all_targets; all_targets();"
        "import perdure.benchmarks.arrays; sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_importing_changes_nothing():
    code = (
        "import sys; before = list(sys.path); import perdure; assert 'torch' not in sys.modules;"
        "import torch; state = torch.get_rng_state(); threads = torch.get_num_threads();"
        "import perdure.executors, perdure.commands.executing;"
        "assert sys.path == before and torch.equal(torch.get_rng_state(), state);"
        "assert torch.get_num_threads() == threads"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_public_names_are_there():
    for name in perdure.__all__:
        assert getattr(perdure, name).__doc__


def test_no_public_name_is_hidden_by_a_module():
    """Importing perdure.x puts the module into perdure.x, where a function x would be hidden."""
    modules = {path.stem for path in ROOT.iterdir() if path.is_dir() or path.suffix == ".py"}
    assert not modules & set(perdure.__all__)
