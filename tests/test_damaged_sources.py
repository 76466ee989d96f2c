"""Damaged raw files of the benchmarks: exit code 2 and one line that names the file.

Each case is a made-up data folder with one flaw.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import lzma
import pickle
import signal
import struct
import tarfile
from pathlib import Path

import numpy as np
import pytest

from perdure.benchmarks.sources import strokes_file
from perdure.benchmarks.sources.archives import tar_members
from perdure.benchmarks.sources.tfrecord import crc32c, masked
from perdure.errors import PerdureError
from strokes.__main__ import main as converter
from test_damaged import lines_of, text


@pytest.fixture(autouse=True)
def _signals_as_before():
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGINT, before[0])
    signal.signal(signal.SIGTERM, before[1])


ONTOLOGY = [{"id": f"/m/{n}", "name": f"sound {n}", "child_ids": [], "restrictions": []} for n in range(3)]
LABELS = "index,mid,display_name\n" + "".join(f"{n},/m/{n},sound {n}\n" for n in range(3))
QUALITY = "".join(f"sound {n}\t80%\n" for n in range(3))
PACKED = {
    "x": np.zeros((40, 128), np.uint8),
    "lengths": np.full(4, 10),
    "labels": np.array([0, 1, 2, 0]),
    "label_counts": np.ones(4, int),
    "ids": np.array(["a", "b", "c", "d"]),
}


def audioset(**changes):
    """A case: AudioSet's files, some replaced by these bytes or arrays, or left out where None."""
    files = {
        "ontology.json": json.dumps(ONTOLOGY),
        "class_labels_indices.csv": LABELS,
        "confidence_data.csv": QUALITY,
        "bal_train.npz": PACKED,
        "eval.npz": PACKED,
    }
    named = {
        "ontology": "ontology.json",
        "labels": "class_labels_indices.csv",
        "quality": "confidence_data.csv",
    }
    named |= {"clips": "bal_train.npz", "evaluation": "eval.npz"}
    files |= {named[key]: value for key, value in changes.items()}

    def write(folder):
        (folder / "audioset").mkdir()
        for name, content in files.items():
            if isinstance(content, dict):
                np.savez(folder / "audioset" / name, **content)
            elif content is not None:
                text(content, name)(folder / "audioset")

    return write


def records(*contents):
    """A case: AudioSet as one TFRecord file a part, with these bytes."""

    def write(folder):
        audioset(clips=None, evaluation=None)(folder)
        for part in ("bal_train", "eval"):
            (folder / "audioset" / part).mkdir()
            (folder / "audioset" / part / "00.tfrecord").write_bytes(b"".join(contents))

    return write


def framed(content):
    """A record whose checksums are right."""
    length = struct.pack("<Q", len(content))
    crcs = [struct.pack("<I", masked(crc32c(part))) for part in (length, content)]
    return length + crcs[0] + content + crcs[1]


SOUNDS = {
    "nothing there": (lambda folder: None, ["audioset' does not exist", "perdure data list"]),
    "no ontology": (audioset(ontology=None), ["ontology.json' does not exist"]),
    "an ontology that is cut": (audioset(ontology=json.dumps(ONTOLOGY)[:-9]), ["ontology.json'", "JSON"]),
    "an ontology that is no list": (audioset(ontology="{}"), ["ontology.json' must be a list"]),
    "a class without children": (audioset(ontology='[{"id": "a", "name": "b"}]'), ["class 1", "child_ids"]),
    "an ontology that nests": (audioset(ontology="[" * 100_000), ["ontology.json'", "JSON"]),
    "labels without header": (audioset(labels=LABELS.partition("\n")[2]), ["class_labels", "columns index"]),
    "a label that is no number": (audioset(labels=LABELS + "x,/m/9,what\n"), ["class_labels", "line 5"]),
    "a label twice": (audioset(labels=LABELS + "0,/m/9,what\n"), ["class_labels", "line 5", "appears twice"]),
    "labels that are not UTF-8": (audioset(labels=LABELS.encode() + b"\xff"), ["class_labels", "UTF-8"]),
    "a quality beyond reason": (
        audioset(quality="sound 0\t800%\n"),
        ["confidence_data.csv'", "line 1", "80%"],
    ),
    "a quality without tab": (audioset(quality="sound 0 80%\n"), ["confidence_data.csv'", "line 1", "tab"]),
    "no clips": (audioset(evaluation=None), ["lacks clips", "eval"]),
    "clips that are no zip": (audioset(clips="hello"), ["bal_train.npz'", "npz"]),
    "clips without lengths": (
        audioset(clips={name: array for name, array in PACKED.items() if name != "lengths"}),
        ["bal_train.npz' lacks the array 'lengths'"],
    ),
    "clips of other features": (
        audioset(clips=PACKED | {"x": np.zeros((40, 64), np.uint8)}),
        ["bal_train.npz'", "[frames, 128]", "(40, 64)"],
    ),
    "clips that are pickled": (
        audioset(clips=PACKED | {"ids": np.array(["a", 1, 2, 3], dtype=object)}),
        ["bal_train.npz'", "never unpickled"],
    ),
    "lengths that do not sum up": (
        audioset(evaluation=PACKED | {"lengths": np.full(4, 9)}),
        ["eval.npz'", "36 frames", "hold 40"],
    ),
    "negative lengths": (
        audioset(clips=PACKED | {"lengths": np.array([-10, 30, 10, 10])}),
        ["bal_train.npz'", "non-negative"],
    ),
    "too few classes": (audioset(), ["only 3 of the 3", "100 are needed"]),
    "a record that is cut": (records(framed(b"hello")[:-6]), ["00.tfrecord', record 1", "ends after"]),
    "a header that is cut": (records(b"abc"), ["00.tfrecord', record 1", "12 bytes"]),
    "a wrong length": (records(b"\x05" + bytes(30)), ["00.tfrecord', record 1", "CRC of its length"]),
    "a wrong content": (
        records(framed(b"hello").replace(b"hello", b"hallo")),
        ["record 1", "CRC of its content"],
    ),
    "no message": (records(framed(b"\xff" * 20)), ["record 1", "longer than ten bytes"]),
    "a message without clip": (records(framed(b"")), ["record 1", "no 'video_id'"]),
    "no record": (records(), ["has no clips"]),
}


@pytest.mark.parametrize("name", SOUNDS)
def test_audioset_that_is_damaged_gets_one_line(name, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PERDURE_DATA", "")  # restored afterwards, whatever --data sets
    monkeypatch.chdir(tmp_path)
    (tmp_path / "raw").mkdir()
    make, expected = SOUNDS[name]
    make(tmp_path / "raw")
    for command in (["data", "build", "audioset"], ["run", "audioset", "fine-tuning"]):
        (line,) = lines_of([*command, "--scale", "smoke", "--data", "raw"], capsys)
        assert line.startswith("perdure: ")
        assert "audioset" in line
        for words in expected:
            assert words in line, line
    assert not list(tmp_path.rglob("cache/*"))
    assert not (tmp_path / "runs").exists()


def idx(shape, content, kind=0x08):
    return struct.pack(f">{1 + len(shape)}I", kind << 8 | len(shape), *shape) + content


IMAGE = np.zeros((2, 28, 28), np.uint8)
IMAGE[:, 5:20, 8:11] = 255
DIGITS = {
    "train-images-idx3-ubyte.gz": gzip.compress(idx((2, 28, 28), IMAGE.tobytes())),
    "train-labels-idx1-ubyte.gz": gzip.compress(idx((2,), bytes([1, 7]))),
    "t10k-images-idx3-ubyte": idx((2, 28, 28), IMAGE.tobytes()),
    "t10k-labels-idx1-ubyte": idx((2,), bytes([1, 7])),
}
FIRST, SECOND = list(DIGITS)[:2]

MNIST = {
    "no files": (dict.fromkeys(DIGITS), [f"no file '{FIRST}'"]),
    "no labels": ({SECOND: None}, [f"no file '{SECOND}'", "four files"]),
    "a cut gzip file": ({FIRST: DIGITS[FIRST][:-9]}, [FIRST, "cut off"]),
    "a gzip file with a flaw": ({FIRST: DIGITS[FIRST][:20] + b"\0" * 40}, [FIRST, "damaged"]),
    "a wrong magic number": (
        {FIRST: idx((2, 28, 28), IMAGE.tobytes(), kind=0x0D)},
        [FIRST, "0x00000d03", "0x00000803"],
    ),
    "labels for images": ({FIRST: idx((8,), bytes(8))}, [FIRST, "begins with 0x00000801"]),
    "a header that is cut": ({FIRST: b"\0\0\x08"}, [FIRST, "within its header"]),
    "too few pixels": ({FIRST: idx((3, 28, 28), IMAGE.tobytes())}, [FIRST, "cut off", "3 x 28 x 28"]),
    "too many pixels": ({FIRST: idx((1, 28, 28), IMAGE.tobytes())}, [FIRST, "bytes to spare"]),
    "a shape beyond memory": ({FIRST: idx((2**31, 2**31, 2**31), b"")}, [FIRST, "cut off"]),
    "a label beyond nine": ({SECOND: idx((2,), bytes([1, 10]))}, [SECOND, "label 1", "is 10", "0 to 9"]),
    "more labels than images": ({SECOND: idx((3,), bytes(3))}, [FIRST, "2 images", "3 labels"]),
    "an image without ink": ({FIRST: idx((2, 28, 28), bytes(2 * 784))}, ["Image 0", "no stroke"]),
    "another MNIST": ({}, ["digits made from", "differ"]),
}


@pytest.mark.parametrize("name", MNIST)
def test_mnist_that_is_damaged_gets_one_line(name, tmp_path, capsys):
    changes, expected = MNIST[name]
    for file, content in (DIGITS | changes).items():
        if content is not None:
            (tmp_path / file).write_bytes(content)
    assert converter([str(tmp_path)]) == 2
    (line,) = [text for text in capsys.readouterr().err.splitlines() if text.startswith("strokes: ")]
    for words in expected:
        assert words in line


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda content: content[:-100], "strokes"),
        (lambda content: content[:5000] + b"\0" + content[5001:], "strokes"),
        (lambda content: b"hello", "strokes"),
        (lambda content: lzma.compress(b"hello"), "does not begin with"),
        (lambda content: lzma.compress(strokes_file.MAGIC + bytes(99)), "checksum"),
        (lambda content: b"", "strokes"),
    ],
)
def test_shipped_strokes_that_are_damaged_get_one_line(change, words, capsys, monkeypatch):
    content = change(strokes_file.shipped_content())
    monkeypatch.setattr(strokes_file, "shipped_content", lambda: content)
    (line,) = lines_of(["data", "build", "smnist", "--scale", "smoke"], capsys)
    assert "strokes.xz' is not a valid strokes file" in line
    assert words in line


WORDS = "1\tone\tone\tNUM\t_\t_\t0\troot\t_\t_\n2\tdog\tdog\tNOUN\t_\t_\t1\tdep\t_\t_\n\n"
TAGGED = "one\tNUM\ndog\tNOUN\n\n"

TREEBANKS = {
    "an unknown tag": (
        "xx-ud-train.conllu",
        WORDS.replace("NOUN", "N"),
        ["line 2", "'N' is not a universal tag"],
    ),
    "no tag": ("xx-ud-train.conllu", WORDS.replace("NOUN", "_"), ["line 2", "'_' is not a universal tag"]),
    "too few columns": ("xx-ud-train.conllu", "1\tone\tNUM\n", ["line 1", "10 columns", "found 3"]),
    "a word left out": (
        "xx-ud-train.conllu",
        WORDS.replace("2\tdog", "3\tdog"),
        ["line 2", "where word 2 was expected"],
    ),
    "a number that is none": (
        "xx-ud-train.conllu",
        WORDS.replace("2\tdog", "b\tdog"),
        ["line 2", "'b' is not an ID"],
    ),
    "an empty word": ("xx-ud-train.conllu", WORDS.replace("2\tdog", "2\t "), ["line 2", "word is empty"]),
    "a comment within": (
        "xx-ud-train.conllu",
        WORDS.replace("2\tdog", "# hello\n2\tdog"),
        ["line 2", "comment within"],
    ),
    "no sentence": ("xx-ud-train.conllu", "# hello\n\n", ["has no sentences"]),
    "not UTF-8": ("xx-ud-train.conllu", WORDS.encode() + b"\xe9", ["line 4", "0xe9"]),
    "two tabs": ("xx-train.tsv", TAGGED.replace("dog\t", "dog\t\t"), ["line 2", "found 2 tabs"]),
    "no tab": ("xx-train.tsv", TAGGED.replace("dog\t", "dog "), ["line 2", "found 0 tabs"]),
    "a foreign tag": ("xx-train.tsv", TAGGED.replace("NUM", "CD"), ["line 1", "'CD' is not a universal tag"]),
}


VECTORS = "2 3\none 0.5 1 2\ndog 1 2 3\n"
POLYGLOT = pickle.dumps((("one", "dog"), np.ones((2, 3), np.float32)), protocol=2)

WORD_VECTORS = {
    "no vectors": ("text", "yy.vec", VECTORS, ["no vectors for 'xx'", "xx.vec"]),
    "too few numbers": ("text", "xx.vec", VECTORS.replace("1 2\n", "1\n"), ["line 2", "3 numbers"]),
    "a word for a number": ("text", "xx.vec", VECTORS.replace("0.5", "many"), ["line 2", "many"]),
    "NaN": ("text", "xx.vec", VECTORS.replace("0.5", "nan"), ["line 2", "finite"]),
    "fewer words than promised": ("text", "xx.vec", VECTORS.replace("2 3", "9 3"), ["declares 9", "has 2"]),
    "an empty file": ("text", "xx.vec", "", ["has no vectors"]),
    "not UTF-8": ("text", "xx.vec", VECTORS.encode().replace(b"dog", b"d\xf6g"), ["line 3", "UTF-8"]),
    "a cut gzip file": ("text", "xx.vec.gz", gzip.compress(VECTORS.encode())[:-12], ["cannot be read"]),
    "another language": (
        "text",
        "xx.vec",
        VECTORS.replace("one", "eins").replace("dog", "hund"),
        ["no word"],
    ),
    "a pickle that is cut": ("polyglot", "xx.pkl", POLYGLOT[:-9], ["cannot be read"]),
    "no pickle": ("polyglot", "xx.pkl", "hello", ["xx.pkl'"]),
    "a pickle that runs code": ("polyglot", "xx.pkl", b"cos\nsystem\n(S'true'\ntR.", ["import 'os.system'"]),
    "a pickle of something else": ("polyglot", "xx.pkl", pickle.dumps([1, 2, 3], protocol=2), ["not a pair"]),
    "fewer rows than words": (
        "polyglot",
        "xx.pkl",
        pickle.dumps((("one", "dog"), np.ones((1, 3), np.float32)), protocol=2),
        ["2 words", "(1, 3)"],
    ),
}


def tagging(files, capsys, *options):
    """The line that comes of a treebank xx with these files, in a data folder `raw`."""
    for place, content in files.items():
        path = Path("raw", place)
        path.parent.mkdir(parents=True, exist_ok=True)
        text(content, path.name)(path.parent)
    build = [
        "data",
        "build",
        "pos",
        "--benchmark.languages",
        "xx",
        "--benchmark.treebanks",
        "ud",
        "--data",
        "raw",
    ]
    (line,) = lines_of([*build, *options], capsys)
    assert not list(Path().rglob("cache/*"))
    return line


@pytest.fixture
def _raw(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PERDURE_DATA", "")  # restored afterwards, whatever --data sets
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("name", TREEBANKS)
@pytest.mark.usefixtures("_raw")
def test_treebanks_that_are_damaged_get_one_line(name, capsys):
    file, content, expected = TREEBANKS[name]
    good = WORDS if file.endswith("conllu") else TAGGED
    others = {f"ud/{file.replace('train', split)}": good for split in ("dev", "test")}
    line = tagging(others | {f"ud/{file}": content}, capsys)
    for words in [f"ud/{file}'", *expected]:
        assert words in line, line


@pytest.mark.parametrize("name", WORD_VECTORS)
@pytest.mark.usefixtures("_raw")
def test_word_vectors_that_are_damaged_get_one_line(name, capsys):
    kind, file, content, expected = WORD_VECTORS[name]
    files = {f"ud/xx-{split}.tsv": TAGGED for split in ("train", "dev", "test")} | {
        f"vectors/{file}": content
    }
    line = tagging(files, capsys, "--benchmark.embeddings", kind)
    for words in ["raw/vectors", *expected]:
        assert words in line, line


@pytest.mark.usefixtures("_raw")
def test_treebanks_that_lack_something_get_one_line(capsys):
    line = tagging({"ud/xx-train.tsv": TAGGED, "ud/xx-test.tsv": TAGGED}, capsys)
    assert "'raw/ud' lacks the dev split of 'xx'" in line
    line = tagging({}, capsys, "--benchmark.tasks", "2")
    assert "exceeds the number of languages" in line
    Path("raw/ud/xx-train.tsv").unlink()
    Path("raw/ud/xx-test.tsv").unlink()
    assert "no treebank 'xx'" in tagging({}, capsys)
    Path("raw/ud").rmdir()
    assert "raw/ud' does not exist" in tagging({}, capsys)


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:bz2", "w:xz"])
def test_archives_that_are_cut_or_flawed_lose_nothing_silently(mode, tmp_path):
    path = tmp_path / "ud.tar"
    with tarfile.open(path, mode) as archive:
        for number in range(3):
            content = np.random.default_rng(number).bytes(600)
            member = tarfile.TarInfo(f"m{number}")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    whole, members = path.read_bytes(), dict(tar_members(path))
    assert len(members) == 3
    cuts = [whole[:cut] for cut in range(0, len(whole), 29)]
    headers = (
        [whole[:place] + b"?" + whole[place + 1 :] for place in (150, 1536 + 150)] if mode == "w" else []
    )
    for damaged in [*cuts, *headers, whole[: len(whole) // 3]]:
        path.write_bytes(damaged)
        with contextlib.suppress(PerdureError):
            assert dict(tar_members(path)) == members  # all that is missing is an end mark
    with pytest.raises(PerdureError, match=r"ud.tar' cannot be read as a tar archive"):
        list(tar_members(path))
