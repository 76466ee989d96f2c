"""A learner as a folder: learner.json, which people can read, and one file of tensors with a digest.

Nothing is pickled. The tensors are written first, under a new name, and learner.json last: a folder is
always either the old learner or the new one.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import replace
from fnmatch import fnmatch
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch

from perdure.benchmarks.task import Scaling
from perdure.config import Config, from_json
from perdure.errors import PerdureError
from perdure.experiment import learner_of
from perdure.files import Damaged, read_json, read_tensors, write_json, write_tensors
from perdure.learner.answers import Format
from perdure.learner.faults import ArgumentError, in_python, wrong
from perdure.learner.knowledge import Knowledge, Visit
from perdure.learner.looks import Look
from perdure.learner.observing import Watching
from perdure.learner.rows import Row
from perdure.learner.settings import PARAMETERS
from perdure.learning.packing import pack, unpack
from perdure.networks.batch import Data
from perdure.networks.layout import Vectors

FORMAT = "perdure learner"
VERSION = 1
"""Version of the folder's format."""
BESIDE = ("kept/", "waiting/", "before/")
"""What the names of tensors begin with that are not of the state."""
PARTS = ("x", "y", "lengths")
"""What is kept of a task's data, by methods that learn all tasks together."""


def write_learner(
    folder: Path, parameters: dict[str, Any], config: Config, knowledge: Knowledge | None
) -> None:
    """Write a folder, or replace the learner in it."""
    if folder.exists() and not folder.is_dir():
        raise wrong("folder", f"'{folder}' is a file; name a folder.")
    if folder.is_dir() and any(folder.iterdir()) and not (folder / "learner.json").exists():
        raise wrong("folder", f"'{folder}' holds other files; choose a new or empty folder.")
    said: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "perdure": version("perdure"),
        "parameters": parameters,
        "config": config.json,
        "tasks": {},
    }
    tensors: Vectors = {}
    if knowledge is not None:
        tensors = pack(knowledge.state) | _kept(knowledge) | _before_row(knowledge)
        for number, (x, _) in enumerate(knowledge.watching.waiting if knowledge.watching else ()):
            tensors[f"waiting/{number}"] = torch.from_numpy(np.ascontiguousarray(x))
        said |= _described(knowledge)
    said["tensors"] = _tensors_name(said, tensors)
    write_tensors(folder / said["tensors"], tensors, {"format": FORMAT})
    write_json(folder / "learner.json", said)
    for old in folder.glob("state-*.safetensors"):
        if old.name != said["tensors"]:
            old.unlink()


def _tensors_name(said: dict[str, Any], tensors: Vectors) -> str:
    """The name of the file of tensors: a digest of these and of all that learner.json says beside it."""
    beside = {key: value for key, value in said.items() if key != "tensors"}
    digest = hashlib.sha256(json.dumps(beside, sort_keys=True).encode())
    for name in sorted(tensors):
        flat = tensors[name].detach().cpu().contiguous().reshape(-1)
        digest.update(name.encode() + flat.view(torch.uint8).numpy().tobytes())
    return f"state-{digest.hexdigest()[:12]}.safetensors"


def _described(knowledge: Knowledge) -> dict[str, Any]:
    row, scaling = knowledge.row, None
    if knowledge.scaling is not None:
        scaling = [part.tolist() for part in knowledge.scaling]
    return {
        "inputs": knowledge.inputs,
        "scaling": scaling,
        "features": knowledge.features,
        "tasks": {name: form.json() for name, form in knowledge.formats.items()},
        "order": knowledge.tasks,
        "looks": {name: look.json() for name, look in knowledge.looks.items()},
        "row": None if row is None else {"samples": row.samples, "hooks": sorted(row.memories)},
        "stream": None if knowledge.watching is None else knowledge.watching.json(),
        "forgotten": sorted(knowledge.forgotten),
        "visits": [vars(visit) for visit in knowledge.visits],
        "scores": [[after, dict(scores)] for after, scores in knowledge.scores],
    }


def _kept(knowledge: Knowledge) -> Vectors:
    """Data that are kept, as tensors."""
    found: Vectors = {}
    for task, pair in knowledge.kept.items():
        for split, data in zip(("train", "val"), pair, strict=True):
            for part, values in zip(PARTS, (data.x, data.y, data.all_lengths), strict=True):
                found[f"kept/{task}/{split}/{part}"] = values
    return found


def _before_row(knowledge: Knowledge) -> Vectors:
    """What was remembered before the task learnt last, as tensors."""
    memories = {} if knowledge.row is None else knowledge.row.memories
    return {f"before/{hook}/{name}": each for hook in memories for name, each in memories[hook].items()}


def read_learner(folder: Path) -> tuple[dict[str, Any], Config, Knowledge | None]:
    """The parameters, config and knowledge in a folder; anything wrong with it is named."""
    path = folder / "learner.json"
    if not path.is_file():
        raise wrong("folder", f"'{folder}' is not a saved learner (there is no learner.json).")
    try:
        said = read_json(path)
        if not isinstance(said, dict) or said.get("format") != FORMAT:
            raise wrong("folder", f"'{path}' is not a learner's; the folder belongs to something else.")
        if said.get("version") != VERSION:
            raise wrong(
                "folder",
                f"'{path}' has version {said.get('version')!r}, but this Perdure reads version {VERSION}.",
            )
        tensors = _checked_tensors(folder, said)
        config = from_json(said["config"])
        parameters = _parameters(path, said["parameters"])
        knowledge = _knowledge(said, tensors, config) if said["tasks"] else None
        return parameters, config, knowledge
    except Damaged as error:
        raise wrong("folder", f"'{folder}' is damaged ({error}); load another copy.") from None
    except ArgumentError:
        raise
    except PerdureError as error:
        raise wrong("folder", f"'{folder}' cannot be used here: {in_python(str(error))}") from None
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise wrong("folder", f"'{path}' is damaged ({error!r}); load another copy.") from None


def _checked_tensors(folder: Path, said: dict[str, Any]) -> Vectors:
    """The tensors; Damaged unless they and learner.json are what was written together."""
    name = said["tensors"]
    if not isinstance(name, str) or not fnmatch(name, "state-*.safetensors") or Path(name).name != name:
        raise Damaged("learner.json names no file of tensors")
    tensors, _ = read_tensors(folder / name)
    ordered = list(said["tasks"]) == said.get("order", list(said["tasks"]))  # a digest has no order of keys
    if name != _tensors_name(said, tensors) or not ordered:
        raise Damaged("learner.json or the tensors were changed after they had been written")
    return tensors


def _parameters(path: Path, given: Any) -> dict[str, Any]:
    """The constructor's parameters; wrong ones are named."""
    if not isinstance(given, dict):
        raise Damaged("the parameters are not a mapping")
    for name in given:
        if name not in PARAMETERS:
            known = ", ".join(PARAMETERS)
            raise wrong("folder", f"'{path}' has the parameter '{name}', which there is not, but {known}.")
    return given


def _scaling(given: Any, inputs: int) -> Scaling | None:
    """Offset and factor of each feature; Damaged unless all are finite."""
    if given is None:
        return None
    parts = [np.array(part, np.float32) for part in given]
    if [part.shape for part in parts] != [(inputs,)] * 2 or not np.isfinite(parts).all():
        raise Damaged(f"the scaling is not a finite offset and factor for each of {inputs} features")
    return parts[0], parts[1]


def _knowledge(said: dict[str, Any], tensors: Vectors, config: Config) -> Knowledge:
    formats = {name: Format.from_json(form) for name, form in said["tasks"].items()}
    learner = learner_of(config, said["inputs"])
    scaling = _scaling(said["scaling"], said["inputs"])
    known = {name: vector for name, vector in tensors.items() if not name.startswith(BESIDE)}
    state = unpack(known, learner, [form.outputs for form in formats.values()])
    wanted = learner.source.active(state.network, state.buffers, [0])
    if not set(wanted) <= set(state.parameters):
        raise Damaged("weights are missing")
    features = said["features"]
    blank = Knowledge(
        state,
        said["inputs"],
        scaling,
        None if features is None else tuple(features),
        formats,
        {name: Look.from_json(look) for name, look in said["looks"].items()},
        tuple(Visit(**visit) for visit in said["visits"]),
        tuple((after, scores) for after, scores in said["scores"]),
        row=_row(said.get("row"), tensors, Row.beginning(learner, state).memories),
        watching=_watching(said["stream"], tensors),
        forgotten=frozenset(said["forgotten"]),
    )
    return _with_kept(blank, tensors)


def _row(said: dict[str, Any] | None, tensors: Vectors, hooks: Iterable[str]) -> Row | None:
    """The visits of the task learnt last; None if what the hooks remembered before them was not saved."""
    if said is None or set(said["hooks"]) != set(hooks):
        return None
    memories: dict[str, Vectors] = {hook: {} for hook in said["hooks"]}
    for name, tensor in tensors.items():
        place, _, rest = name.partition("/")
        hook, _, entry = rest.partition("/")
        if place == "before":
            memories[hook][entry] = tensor
    return Row(memories, int(said["samples"]))


def _watching(said: dict[str, Any] | None, tensors: Vectors) -> Watching | None:
    if said is None:
        return None
    return Watching.from_json(said, [tensors[f"waiting/{n}"].numpy() for n in range(len(said["waiting"]))])


def _with_kept(knowledge: Knowledge, tensors: Vectors) -> Knowledge:
    """With the data that were kept."""
    kept: dict[int, tuple[Data, Data]] = {}
    for number, form in enumerate(knowledge.formats.values()):
        if f"kept/{number}/train/x" in tensors:
            like = knowledge.format_only(form)
            train, val = (
                like.having(*(tensors[f"kept/{number}/{split}/{part}"] for part in PARTS))
                for split in ("train", "val")
            )
            kept[number] = train, val
    return replace(knowledge, kept=kept)
