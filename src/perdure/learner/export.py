"""One task's network as a file that other programs run: ONNX, or TorchScript."""

from __future__ import annotations

import importlib.util
import io
import json
import warnings
from pathlib import Path

import torch

from perdure.config import Config
from perdure.errors import with_extra
from perdure.files import write
from perdure.learner.classes import to_json
from perdure.learner.faults import writing, wrong
from perdure.learner.knowledge import Knowledge
from perdure.learner.plain import PlainNetwork, plain_network

SUFFIXES = {".onnx": "ONNX", ".pt": "TorchScript"}


def export(config: Config, knowledge: Knowledge, task: str, path: Path) -> Path:
    """Write a task's network to a file; its suffix says in which format."""
    if path.suffix not in SUFFIXES:
        known = ", ".join(f"{suffix} ({name})" for suffix, name in SUFFIXES.items())
        raise wrong("path", f"'{path.name}' must end in {known}.")
    module = plain_network(config, knowledge, task)
    form = knowledge.formats[task]
    notes = {
        "task": task,
        "kind": form.kind,
        "classes": json.dumps([to_json(each) for each in form.classes]),
        "features": json.dumps(knowledge.features),
    }
    content = _onnx(module, knowledge.inputs, notes) if path.suffix == ".onnx" else _script(module, notes)
    with writing("path", path):
        write(path, content)
    return path


def _onnx(module: PlainNetwork, features: int, notes: dict[str, str]) -> bytes:
    if importlib.util.find_spec("onnx") is None:
        raise wrong("path", f"writing ONNX needs the package onnx: {with_extra('export')}.")
    from perdure.learner.onnx_graph import onnx_model

    content: bytes = onnx_model(module, features, notes).SerializeToString()
    return content


def _script(module: PlainNetwork, notes: dict[str, str]) -> bytes:
    buffer = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore"
        )  # torch announces the end of TorchScript, but still reads and writes it
        torch.jit.save(torch.jit.script(module), buffer, _extra_files=notes)
    return buffer.getvalue()
