"""A folder of made-up raw data in which `audioset`, `pos` and `dsa` find what they need."""

from __future__ import annotations

import io
import json
import lzma

import numpy as np

CLASSES, CLIPS = 100, 12
ACTIVITIES, WINDOWS = 18, 16
LANGUAGES = ("en", "ar", "cs")


def make_data(root):
    """Sounds whose class shows in one feature, and languages whose tags follow from the words' endings."""
    make_audioset(root / "audioset")
    for number, language in enumerate(LANGUAGES):
        for split, count in (("train", 60), ("dev", 15), ("test", 15)):
            folder = root / "ud" / "ud-treebanks-v2.6" / language
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"{split}.tsv").write_text(text(count, number), encoding="utf-8")
    make_dsa(root / "dsa")
    return root


def dsa_windows():
    """Levels uint16 [N, 125, 45] of the windows of 18 activities, and the number of each [N], from 1."""
    source = np.random.default_rng(0)
    levels = source.integers(0, 2**16, (ACTIVITIES * WINDOWS, 125, 45))
    return levels.astype(np.uint16), np.repeat(np.arange(1, ACTIVITIES + 1), WINDOWS).astype(np.int8)


def make_dsa(folder):
    """The windows as packed arrays: high and low bytes of differences along time, modulo 2^16."""
    folder.mkdir(parents=True)
    levels, activity = dsa_windows()
    moves = np.diff(levels, axis=1, prepend=np.zeros_like(levels[:, :1])).transpose(2, 0, 1)
    buffer = io.BytesIO()
    np.savez(
        buffer,
        planes=np.stack([moves >> 8, moves & 255]).astype(np.uint8),
        scale=np.full(45, 1e-3),
        offset=np.arange(45, dtype=float),
        activity=activity,
        subject=np.ones_like(activity),
    )
    (folder / "dsa.npz.xz").write_bytes(lzma.compress(buffer.getvalue(), preset=0))


def make_audioset(folder):
    folder.mkdir(parents=True)
    names = [f"Sound {number}" for number in range(CLASSES)]
    nodes = [
        {"id": f"/m/{n}", "name": name, "child_ids": [], "restrictions": []} for n, name in enumerate(names)
    ]
    (folder / "ontology.json").write_text(json.dumps(nodes))
    labels = "".join(f'{n},/m/{n},"{name}"\n' for n, name in enumerate(names))
    (folder / "class_labels_indices.csv").write_text("index,mid,display_name\n" + labels)
    (folder / "confidence_data.csv").write_text("".join(f"{name}\t90%\t1,000\t2.8\n" for name in names))
    source = np.random.default_rng(0)
    for part, (first, last) in {"bal_train": (0, CLIPS // 2), "eval": (CLIPS // 2, CLIPS)}.items():
        of = np.repeat(np.arange(CLASSES), last - first)
        x = source.integers(0, 100, (len(of), 10, 128), dtype=np.uint8)
        x[np.arange(len(of)), :, of] = 255
        np.savez(
            folder / f"{part}.npz",
            x=x.reshape(-1, 128),
            lengths=np.full(len(of), 10, np.uint8),
            labels=of.astype(np.uint16),
            label_counts=np.ones(len(of), np.uint8),
            ids=np.array([f"{part}-{number}" for number in range(len(of))]),
        )


def text(count, seed):
    """Sentences: a determiner, a noun, a verb, a full stop; tokens and tags, a line each."""
    source = np.random.default_rng(seed)
    stems = ["".join(source.choice(list("bdfgklmnprst"), 3)) for _ in range(30)]
    lines = []
    for _ in range(count):
        noun, verb = (stems[source.integers(len(stems))] for _ in range(2))
        lines += ["die\tDET", f"{noun}ung\tNOUN", f"{verb}en\tVERB", ".\tPUNCT", ""]
    return "\n".join(lines) + "\n"
