"""What README.md, docs/ and examples/ show works: Python runs (at a small size), commands are known.

Python stands in blocks marked as such; commands stand in other blocks, indented lines, or between backticks.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import multiprocessing
import os
import re
import shutil
import sys
import traceback
from pathlib import Path

import numpy as np
import pytest
import torch

from perdure.cli import main

ROOT = Path(__file__).parent.parent
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
PLUGINS = ROOT / "examples" / "plugins"
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^(?:\$ )?(?:\.venv/bin/)?perdure( .*)?$")
PLACEHOLDERS = {"BENCHMARK": "permuted-copy", "METHOD": "fine-tuning"}


def python_in(path: Path) -> dict[str, str]:
    """Pieces of code by place; each begins with as many empty lines as stand before it in its file."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        return {path.name: text}
    found = {}
    for block in FENCE.finditer(text):
        if block[1] == "python":
            before = text.count("\n", 0, block.start(2))
            found[f"{path.name}:{before + 1}"] = "\n" * before + block[2]
    return found


CODE = {place: code for path in [*DOCUMENTS[1:], *EXAMPLES] for place, code in python_in(path).items()}
"""All but the README's, which test_readme.py runs as programs of their own."""
if importlib.util.find_spec("pandas") is None:  # lines about data frames need it
    CODE = {place: re.sub(r"(?m)^ *(frame = |print\(frame).*$", "", code) for place, code in CODE.items()}


def commands_in(path: Path) -> list[str]:
    """The words after `perdure` of each command in a document."""
    text = FENCE.sub(lambda block: "" if block[1] else block[2], path.read_text(encoding="utf-8"))
    lines = [line.strip() for line in text.splitlines() if line.startswith("    ") or not line[:1].isspace()]
    spans = [*lines, *re.findall(r"`([^`\n]+)`", text)]
    found = [COMMAND.match(re.sub(r"\s+#.*", "", span)) for span in spans]
    return [(command[1] or "").strip() for command in found if command]


def help_of(*words: str) -> str:
    """What a command says of itself; a fault where it knows the words not."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main([*words, "--help"])
    if code != 0:
        raise ValueError(err.getvalue().strip())
    return out.getvalue()


def listing(*words: str) -> str:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        assert main(list(words)) == 0
    return out.getvalue()


def fault(command: str) -> str | None:
    """What is wrong with the words of a command, if anything; nothing is run."""
    words = [PLACEHOLDERS.get(word, word) for word in re.sub(r"[\[\]|]", " ", command).split()]
    options = [word.partition("=")[0] for word in words if word.startswith("--")]
    name, *rest = words or ["--help"]
    plain = rest[: next((n for n, word in enumerate(rest) if word.startswith("--")), len(rest))]
    if name in ("--help", "--version"):
        return None
    try:
        # As it stands, unless it is a usage line, whose options exclude each other.
        text = help_of(name, *(plain if "[" in command else rest)) + help_of(name)
    except ValueError as error:
        return str(error)
    unknown = [o for o in options if o != "--help" and not re.search(rf"{re.escape(o)}(?![\w.-])", text)]
    if name == "reproduce":
        known = listing("reproduce")
        unknown += [item for item in plain if item != "all" and not re.search(rf"\b{item}\b", known)]
    if name == "data" and not re.search(rf"\bdata {plain[0] if plain else ''}\b", text):
        unknown += plain[:1]
    return f"unknown: {', '.join(unknown)}" if unknown else None


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_commands_in_documents_are_known(path, tmp_path):
    shutil.copytree(PLUGINS, tmp_path, dirs_exist_ok=True)  # the documents speak of files there
    source = np.random.default_rng(0)
    for task in ("mine/a.npz", "mine/b.npz"):  # and of a folder with data
        (tmp_path / "mine").mkdir(exist_ok=True)
        np.savez(tmp_path / task, x=source.normal(size=(40, 5, 2)), y=np.arange(40) % 2)
    with contextlib.chdir(tmp_path):
        faults = {command: what for command in commands_in(path) if (what := fault(command))}
    assert not faults


def test_commands_are_found_and_faults_in_them_too():
    assert len(commands_in(ROOT / "README.md")) > 12
    assert "data check mine" in commands_in(ROOT / "docs" / "own-data.md")
    good = "run BENCHMARK METHOD [--seed S | --seeds N] [--scale smoke|laptop|paper]"
    assert fault(good) is None
    for wrong in (
        "rum permuted-copy si",
        "run permuted-copi si",
        "run permuted-copy six",
        "run permuted-copy si --training.iteration 500",
        "run permuted-copy si --scale large",
        "run BENCHMARK METHOD [--sead S | --seeds N]",
        "show 3fa9 --plott accuracy.pdf",
        "reproduce table-11",
        "reproduce table-1 --seed 5",
        "analyse dimension 3fa9",
        "data chek mine",
    ):
        assert fault(wrong), wrong


def of_the_reader() -> dict[str, object]:
    """What the documents leave to their readers: sequences of their own in several forms."""
    source = np.random.default_rng(0)
    x, y = source.normal(size=(60, 7, 3)), np.arange(60) % 2
    dataset = torch.utils.data.TensorDataset(torch.from_numpy(x), torch.from_numpy(y))
    parts = {"x1": x[:40], "y1": y[:40], "x2": x[40:], "y2": y[40:]}
    return {"np": np, "x": x, "y": y, "lengths": np.full(60, 7), "dataset": dataset, **parts}


def perform(place: str, code: str, folder: str) -> None:
    """Run code in a folder, small; what it says goes to the file `said`. In a process of its own."""
    os.chdir(folder)
    Path("mine").mkdir()
    for plugin in PLUGINS.glob("*.py"):
        shutil.copy(plugin, folder)
    torch.set_num_threads(1)
    import perdure.config

    build = perdure.config.build

    def small(benchmark, method, **options):
        build(benchmark, method, **options)  # as it stands it must be understood too
        few = {"training.iterations": 3, "training.validate_every": 3}
        kept = {k: v for k, v in options.items() if k.replace("__", ".") not in few and k != "scale"}
        return build(benchmark, method, scale="smoke", **kept, **few)

    perdure.config.build = small
    given = of_the_reader() if place.startswith("own-data") else {}
    with open("said", "w") as said, contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        try:
            exec(compile(code, place, "exec"), {"__name__": "__main__", **given})
        except BaseException:
            traceback.print_exc()
            said.flush()
            sys.exit(1)


@pytest.fixture(scope="module")
def server():
    """Processes that start at once because torch is loaded before they fork."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["perdure.config", "torch._dynamo"])
    return context


@pytest.mark.parametrize("place", CODE)
def test_code_in_documents_and_examples_runs(place, tmp_path, server):
    process = server.Process(target=perform, args=(place, CODE[place], str(tmp_path)))
    process.start()
    process.join()
    said = (tmp_path / "said").read_text() if (tmp_path / "said").exists() else ""
    assert process.exitcode == 0, said
    assert bool(said) == ("print(" in CODE[place])


def test_code_is_found():
    places = {place.partition(":")[0] for place in CODE}
    assert {"own-data.md", *(path.name for path in EXAMPLES)} <= places
