"""Data files that are damaged, hostile or no files at all: tasks, or one sentence for each fault."""

from __future__ import annotations

import io
import json
import os
import pickle
import shutil
import struct
import time
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostile import ODD_TEXTS, cases, command, odd_texts
from made_data import make_audioset
from perdure.benchmarks.sources.tfrecord import crc32c, masked
from test_audioset import example, field, varint
from test_damaged import GOOD, npy, npz_bytes
from test_trust_records import NO_FILES

MANY = 40
"""Sentences that `perdure data check` may need for one file."""


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("PERDURE_DATA", raising=False)
    (tmp_path / "data").mkdir()


def checked(name, content, *words):
    """`perdure data check` of a folder with one file; the file is gone afterwards."""
    path = Path("data", name)
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content)
    try:
        return command(["data", "check", "data", *words], most=MANY)
    finally:
        path.unlink()


ROWS = GOOD.splitlines()
CELLS = st.one_of(
    odd_texts,
    st.sampled_from(
        ["1e39", "1,5", "-0", "0x1F", "1_000", "+", "true", '"', '""', "'", ";", "\t", "9" * 5000]
    ),
    st.text(max_size=5),
)


@cases(260)
@given(data=st.data())
def test_csv_with_odd_cells(data):
    rows = [row.split(",") for row in ROWS]
    for _ in range(data.draw(st.integers(1, 3))):
        row = data.draw(st.integers(0, len(rows) - 1))
        if rows[row]:
            rows[row][data.draw(st.integers(0, len(rows[row]) - 1))] = data.draw(CELLS)
    if data.draw(st.booleans()):
        rows.insert(data.draw(st.integers(0, len(rows))), data.draw(st.lists(CELLS, max_size=7)))
    text = data.draw(st.sampled_from(["\n", "\r\n", "\r"])).join(",".join(row) for row in rows)
    name = data.draw(st.sampled_from(["a.csv", "a.tsv", "a.csv.gz"]))
    checked(name, text.encode("utf-8", "surrogatepass"), *data.draw(st.sampled_from([(), ("--json",)])))


def test_csv_of_many_columns_takes_time_in_proportion():
    """Five times as many columns take about five times as long; the quadratic way took 25 times as long."""

    def seconds(columns):
        head = ",".join(["sequence", "label", *(f"f{n}" for n in range(columns))])
        rows = [",".join([f"s{n}", "ab"[n % 2], *["1"] * columns]) for n in range(20)]
        begun = time.process_time()
        assert checked("a.csv", "\n".join([head, *rows]).encode()).code == 0
        return time.process_time() - begun

    few, many = (min(seconds(columns) for _ in range(2)) for columns in (20_000, 100_000))
    assert many < 12 * few


@cases(140)
@given(data=st.data())
def test_npz_with_odd_arrays(data):
    kinds = st.sampled_from(["f4", "f8", "i1", "u2", "i8", "U3", "S2", "M8[s]", "c8", "?", ">f4", "f2"])
    shapes = st.lists(st.integers(0, 5), max_size=4).map(tuple)
    arrays = {"x": np.zeros((20, 4, 2)), "y": np.arange(20) % 2}
    for _ in range(data.draw(st.integers(1, 2))):
        name = data.draw(st.sampled_from(["x", "y", "lengths", "split", "classes", "table", "x_train", "z"]))
        shape = data.draw(st.one_of(shapes, st.sampled_from([(20,), (20, 4), (20, 4, 2), (80, 2)])))
        arrays[name] = np.ones(shape).astype(data.draw(kinds))
    done = checked("a.npz", npz_of(arrays))
    assert done.code == 2 or "x" in arrays


def npz_of(arrays):
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


@cases(80)
@given(data=st.data())
def test_npz_with_odd_members(data):
    buffer = io.BytesIO()
    name = st.one_of(st.sampled_from(["x.npy", "y.npy", "x", "../x.npy", "/x.npy", "x.npy/", ""]), odd_texts)
    content = st.sampled_from(
        [npy(np.zeros((20, 4, 2))), npy(np.arange(20) % 2), b"", b"\x93NUMPY", b"x" * 200]
    )
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("y.npy", npy(np.arange(20) % 2))
        for _ in range(data.draw(st.integers(1, 3))):
            try:
                archive.writestr(zipfile.ZipInfo(data.draw(name)), data.draw(content))
            except (UnicodeEncodeError, UserWarning):
                continue
    checked("a.npz", buffer.getvalue())


def test_an_array_twice_is_not_accepted():
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name in ("x.npy", "y.npy"):
            archive.writestr(name, npy(np.zeros((20, 4, 2)) if name == "x.npy" else np.arange(20) % 2))
        with pytest.warns(UserWarning, match="Duplicate"):
            archive.writestr("x.npy", npy(np.ones((20, 4, 2))))
    done = checked("a.npz", buffer.getvalue())
    assert done.code == 2
    assert "twice" in done.sentences[0]


SHAPES = [
    "(True,5,3)",
    "(5,)",
    "(-1,5)",
    "()",
    "(" + "9" * 400 + ",)",
    "(2**9,)",
    "(1.5,)",
    "('a',)",
    "[5]",
    "None",
    "(" * 90 + ")" * 90,
    "(20,4,2)",
    "(0x7fffffffffffffff,2)",
    "(1,)*9",
    "(99999999999,99999999999)",
    "5",
    "(5,,)",
]
DESCRS = [
    "'<f8'",
    "'|O'",
    "'<i4'",
    "'<U9'",
    "'V8'",
    "[('a','<f8')]",
    "'<f8,<f8'",
    "None",
    "5",
    "'" + "x" * 300 + "'",
]


@cases(220)
@given(data=st.data())
def test_npy_with_odd_headers(data):
    shape, descr = data.draw(st.sampled_from(SHAPES)), data.draw(st.sampled_from(DESCRS))
    order = data.draw(st.sampled_from(["False", "True", "1", "None", "[]"]))
    said = f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}"
    said = data.draw(st.sampled_from([said, said[:-1], said + "x", "", "{}", said.replace("'descr'", "'d'")]))
    version = data.draw(st.sampled_from([b"\x01\x00", b"\x02\x00", b"\x03\x00", b"\x09\x00"]))
    text = said.encode() + b"\n"
    size = struct.pack("<H" if version == b"\x01\x00" else "<I", len(text))
    content = b"\x93NUMPY" + version + size + text + bytes(data.draw(st.sampled_from([0, 7, 1280, 40])))
    Path("data/one").mkdir(exist_ok=True)
    Path("data/one/y.npy").write_bytes(npy(np.arange(20) % 2))
    checked("one/x.npy", content)


TREE = [
    "\t".join([str(number), word, "_", tag, *["_"] * 6])
    for number, (word, tag) in enumerate(
        [("the", "DET"), ("cat", "NOUN"), ("sat", "VERB"), (".", "PUNCT")], 1
    )
]


@pytest.fixture(scope="module")
def vectors():
    words = ["<UNK>", "the", "cat", "sat", "."]
    table = np.arange(10, dtype=np.float32).reshape(5, 2)
    return pickle.dumps((tuple(words), table), 2)


def build_pos(content, vectors):
    folder = Path("data/banks/xx")
    if not folder.exists():
        folder.mkdir(parents=True)
        Path("data/vectors").mkdir()
        Path("data/vectors/polyglot-xx.pkl").write_bytes(vectors)
    whole = ("\n".join(TREE) + "\n\n").encode() * 3
    for split in ("train", "dev", "test"):
        (folder / f"xx-ud-{split}.conllu").write_bytes(content if split == "train" else whole)
    words = [
        "--benchmark.languages",
        "xx_xx",
        "--benchmark.treebanks",
        "banks",
        "--benchmark.embeddings",
        "polyglot",
    ]
    words += ["--benchmark.tasks", "1"]
    return command(["data", "build", "pos", "--scale", "smoke", "--data", "data", *words])


def test_a_good_treebank_is_read(vectors):
    done = build_pos(("\n".join(TREE) + "\n\n").encode() * 3, vectors)
    assert done.code == 0, done.err


IDS = [
    "9" * 5000,
    "1-" + "9" * 5000,
    "0." + "9" * 5000,
    "0",
    "-1",
    "1-0",
    "2-1",
    "1.0",
    "1e3",
    "٣",
    "",
    "1 ",
    "01",
]


@cases(230)
@given(data=st.data())
def test_conllu_with_odd_lines(data, vectors):
    lines = [*TREE, ""] * 3
    for _ in range(data.draw(st.integers(1, 2))):
        place = data.draw(st.integers(0, len(lines) - 1))
        columns = lines[place].split("\t")
        new = data.draw(st.one_of(st.sampled_from(IDS), odd_texts))
        columns[data.draw(st.integers(0, len(columns) - 1))] = new
        lines[place] = "\t".join(columns)
        if data.draw(st.integers(0, 4)) == 0:
            lines[place] = data.draw(
                st.sampled_from(["#", "# x", "\t" * 9, "\t" * 5000, "\ufeff1", "\x00", " "])
            )
    content = "\n".join(lines).encode("utf-8", "surrogatepass")
    build_pos(content[: data.draw(st.sampled_from([len(content), len(content) // 2, 3]))], vectors)


def framed(content):
    length = struct.pack("<Q", len(content))
    return b"".join(
        [
            length,
            struct.pack("<I", masked(crc32c(length))),
            content,
            struct.pack("<I", masked(crc32c(content))),
        ]
    )


CLIP = example("abc", [0, 1], np.zeros((10, 128), np.uint8))


def build_audioset(content):
    folder = Path("data/audioset")
    if not folder.exists():
        make_audioset(folder)
        for part in ("bal_train", "eval"):
            (folder / f"{part}.npz").unlink()
            (folder / part).mkdir()
    for part in ("bal_train", "eval"):
        (folder / part / "00.tfrecord").write_bytes(content)
    return command(["data", "build", "audioset", "--scale", "smoke", "--data", "data"])


@cases(170)
@given(data=st.data())
def test_tfrecords_with_odd_messages(data):
    odd = st.one_of(
        st.binary(max_size=30),
        st.tuples(st.integers(0, 2**70), st.binary(max_size=9), st.integers(0, 7)).map(
            lambda parts: field(parts[0] % 2**29, parts[1], parts[2] if parts[2] in (0, 1, 2, 5) else 2)
        ),
        st.integers(0, 2**64 - 1).map(varint),
        st.just(b"\xff" * 20),
    )
    place, new = data.draw(st.integers(0, len(CLIP))), data.draw(odd)
    kept = CLIP[place + data.draw(st.integers(0, 5)) :] if data.draw(st.booleans()) else b""
    content = framed(CLIP[:place] + new + kept)
    if data.draw(st.integers(0, 3)) == 0:
        content = content[: data.draw(st.integers(0, len(content)))]
    done = build_audioset(framed(CLIP) + content)
    assert done.code == 2  # even an intact one has clips of too few classes


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="only where there are pipes")
@pytest.mark.parametrize("make", NO_FILES)
@pytest.mark.parametrize(
    "name",
    [
        "a.csv",
        "a.csv.gz",
        "a.npz",
        "one/x.npy",
        "one/train.csv",
        "tasks.txt",
        "audioset/ontology.json",
        "audioset/bal_train/00.tfrecord",
        "banks/xx/xx-ud-train.conllu",
        "audioset/class_labels_indices.csv",
    ],
)
def test_what_is_no_file_is_not_read(make, name, vectors):
    if name.startswith("audioset"):
        build_audioset(framed(CLIP))
        words = ["data", "build", "audioset", "--scale", "smoke", "--data", "data"]
    elif name.startswith("banks"):
        build_pos(("\n".join(TREE) + "\n\n").encode() * 3, vectors)
        words = [
            "data",
            "build",
            "pos",
            "--scale",
            "smoke",
            "--data",
            "data",
            "--benchmark.languages",
            "xx_xx",
        ]
        words += [
            "--benchmark.treebanks",
            "banks",
            "--benchmark.embeddings",
            "polyglot",
            "--benchmark.tasks",
            "1",
        ]
    else:
        Path("data/good.csv").write_text(GOOD)
        words = ["data", "check", "data"]
    path = Path("data", name)
    path.parent.mkdir(exist_ok=True)
    path.unlink(missing_ok=True)
    make(path)
    done = command(words, most=MANY, bound=30)
    ignored = make.__name__ in ("folder", "nowhere", "loop") or name == "one/x.npy"
    assert done.code == 2 or ignored
    if path.is_symlink() or not path.is_dir():
        path.unlink()


@cases(60)
@given(data=st.data())
def test_names_of_files_and_tasks_are_shown_without_their_codes(data):
    name = data.draw(st.sampled_from(ODD_TEXTS)).replace("/", "_").replace("\x00", "_")
    name = os.fsdecode(name.encode("utf-8", "surrogatepass"))[:80]
    try:
        done = checked(
            f"a{name}.csv", data.draw(st.sampled_from([GOOD, "", GOOD.replace("train3", "?")])).encode()
        )
    except OSError:
        return  # this system has no such names
    assert "\x1b" not in done.out + done.err
    shutil.rmtree("data")
    os.mkdir("data")


def test_json_of_a_check_is_json_whatever_the_names_are():
    done = checked("a\x1b[31m.csv", GOOD.encode(), "--json")
    assert json.loads(done.out)["tasks"][0]["name"] == "a\x1b[31m"


def test_changed_bytes_of_an_npz():
    good = npz_bytes()
    for place in range(0, len(good), max(1, len(good) // 40)):
        content = bytearray(good)
        content[place] ^= 0xFF
        checked("a.npz", bytes(content))
