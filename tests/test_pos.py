"""Part-of-speech tagging: readers against hand-written files, vectors against independent formulas."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import math
import os
import pickle
import struct
import tarfile
import tracemalloc
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from perdure.benchmarks import pos
from perdure.benchmarks.pos import PAPER, Pos
from perdure.benchmarks.sources import embed
from perdure.benchmarks.sources.embed import (
    FormModel,
    Recipe,
    form_features,
    learn_lexicon,
    neighbours,
    number,
    ppmi,
    ridge,
    shape,
    truncated_svd,
)
from perdure.benchmarks.sources.folder import VARIABLE
from perdure.benchmarks.sources.polyglot import read_polyglot
from perdure.benchmarks.sources.treebank import (
    SPLITS,
    TAGS,
    place_of,
    read_conllu,
    read_tagged,
    read_treebanks,
    treebank_names,
)
from perdure.benchmarks.sources.vectors import find, read_text, spellings, vector_file
from perdure.benchmarks.task import check_tasks
from perdure.config import build
from perdure.errors import PerdureError
from perdure.networks.cells.lstm import LSTM
from perdure.networks.network import Network
from perdure.options import validated
from perdure.randomness import generator
from perdure.targets.tags import Tags
from perdure.weights.source import Stock

SHARED = Path(os.environ.get(VARIABLE, Path(__file__).parents[2] / "shared" / "data")) / "ud"
real = pytest.mark.skipif(
    not (SHARED / "pos_tsv.tar.xz").exists(), reason="the collection of treebanks is not there"
)


def row(number, form, tag):
    return "\t".join([str(number), form, "_", tag, *["_"] * 6])


def conllu(*lines):
    return ("\n".join(lines) + "\n").encode()


def tags(*names):
    return [TAGS.index(name) for name in names]


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv(VARIABLE, raising=False)


# CoNLL-U and tagged words


def test_every_oddity_of_conllu():
    content = conllu(
        "# newdoc id = one",
        "# text = Vámonos al mar 10 000",
        row("1-2", "Vámonos", "_"),
        row(1, "Vamos", "VERB"),
        row(2, "nos", "PRON"),
        row("2.1", "(elided)", "VERB"),
        row("3-4", "al", "_"),
        row(3, "a", "ADP"),
        row(4, "el", "DET"),
        row(5, "mar", "NOUN"),
        row(6, "10 000", "NUM"),
        "",
        "",
        "# a sentence that begins with an empty node",
        row("0.1", "(elided)", "PRON"),
        row(1, "#", "SYM"),
        row(2, "a\u2028b", "X"),
    )
    for given in (content, content + b"\n", b"\xef\xbb\xbf" + content, content.replace(b"\n", b"\r\n")):
        first, second = read_conllu(given, "file")
        assert first.words == ["Vamos", "nos", "a", "el", "mar", "10 000"]
        assert first.tags == tags("VERB", "PRON", "ADP", "DET", "NOUN", "NUM")
        assert second.words == ["#", "a\u2028b"]
        assert second.tags == tags("SYM", "X")


def test_tagged_words():
    content = b"The\tDET\ncat\tNOUN\n\n\n#\tSYM\n10 000\tNUM"
    first, second = read_tagged(content, "file")
    assert (first.words, first.tags) == (["The", "cat"], tags("DET", "NOUN"))
    assert (second.words, second.tags) == (["#", "10 000"], tags("SYM", "NUM"))


@pytest.mark.parametrize(
    ("lines", "line", "message"),
    [
        (["# x", row(1, "a", "DET"), "2\tb\t_\tNOUN"], 3, "10 columns separated by tabs; found 4"),
        ([row(1, "a", "DET") + "\t_"], 1, "found 11"),
        ([row(1, "a", "DET"), row(3, "b", "NOUN")], 2, "word 3 appears where word 2 was expected"),
        ([row(1, "a", "DET"), row(1, "b", "NOUN")], 2, "word 1 appears where word 2 was expected"),
        (["", row(2, "a", "DET")], 2, "word 2 appears where word 1 was expected"),
        ([row("x", "a", "DET")], 1, "'x' is not an ID"),
        ([row("01", "a", "DET")], 1, "'01' is not an ID"),
        ([row("2-3", "a", "_")], 1, "2-3 must begin at the next word, 1"),
        ([row(1, "a", "DET"), row("2-1", "b", "_")], 2, "2-1 must begin"),
        ([row(1, "a", "NOM")], 1, "'NOM' is not a universal tag; the tags are ADJ"),
        ([row(1, "a", "_")], 1, "'_' is not a universal tag"),
        ([row(1, "", "DET")], 1, "the word is empty"),
        ([row(1, "a", "DET"), "# late", row(2, "b", "NOUN")], 2, "there is a comment within a sentence"),
    ],
)
def test_faults_of_conllu_are_named_with_their_line(lines, line, message):
    with pytest.raises(PerdureError) as caught:
        read_conllu(conllu(*lines), "x.conllu")
    assert str(caught.value).startswith(f"'x.conllu', line {line}: ")
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a\tDET\nb NOUN\n", "line 2: a line must be a token, one tab and its tag; found 0 tabs"),
        (b"a\tDET\n\nb\tX\tX\n", "line 3: .*found 2 tabs"),
        (b"a\tdet\n", "line 1: 'det' is not a universal tag"),
        (b" \tDET\n", "line 1: the word is empty"),
        (b"a\tDET\nb\xff\tDET\n", "line 2: byte 0xff is not UTF-8"),
        (b"a\tDET\nb\xc3", "line 2: byte 0xc3 is not UTF-8"),
        (b"", "has no sentences"),
        (b"\n\n", "has no sentences"),
    ],
)
def test_faults_of_tagged_words_are_named_with_their_line(content, message):
    with pytest.raises(PerdureError, match=message):
        read_tagged(content, "x.tsv")


def test_files_are_known_by_their_names():
    assert place_of("r/UD_English-GUM/en_gum-ud-train.conllu") == ("en_gum", "train")
    assert place_of("own-dev.tsv") == ("own", "dev")
    assert place_of("r/en/test.tsv") == ("en", "test")
    assert [place_of(name) for name in ("train.tsv", "a/train.txt", "a/stats.xml", "a/b.conllu")] == [
        None
    ] * 4


SPLIT_TEXT = {split: f"{split}\tNOUN\n.\tPUNCT\n".encode() for split in SPLITS}


def write_treebank(folder, name, contents=None):
    (folder / name).mkdir(parents=True, exist_ok=True)
    for split, content in (contents or SPLIT_TEXT).items():
        (folder / name / f"{split}.tsv").write_bytes(content)


@pytest.mark.parametrize("ending", ["", ".tar", ".tar.gz", ".tar.xz"])
def test_folders_and_archives_hold_the_same(tmp_path, ending):
    write_treebank(tmp_path / "banks", "aa")
    write_treebank(tmp_path / "banks", "bb")
    (tmp_path / "banks" / "cc-ud-test.conllu").write_bytes(conllu(row(1, "a", "X")))
    (tmp_path / "banks" / "readme.txt").write_bytes(b"\xff")
    path = tmp_path / f"banks{ending}"
    if ending:
        mode = "w:" + ending.removeprefix(".tar").removeprefix(".")
        with tarfile.open(path, mode) as archive:
            archive.add(tmp_path / "banks", "banks")
    assert treebank_names(path) == ["aa", "bb", "cc"]
    found = read_treebanks(path, ["aa", "cc"])
    assert {name: sorted(splits) for name, splits in found.items()} == {
        "aa": ["dev", "test", "train"],
        "cc": ["test"],
    }
    assert found["aa"]["dev"] == [(["dev", "."], tags("NOUN", "PUNCT"))]


def test_a_folder_that_is_one_treebank(tmp_path):
    write_treebank(tmp_path, "own")
    assert sorted(read_treebanks(tmp_path / "own", ["own"])["own"]) == ["dev", "test", "train"]


def test_faulty_collections_are_named(tmp_path):
    write_treebank(tmp_path, "aa")
    (tmp_path / "aa-train.tsv").write_bytes(SPLIT_TEXT["train"])
    with pytest.raises(PerdureError, match="holds the train split of 'aa' twice"):
        read_treebanks(tmp_path, ["aa"])
    (tmp_path / "aa-train.tsv").unlink()
    (tmp_path / "aa" / "dev.tsv").write_bytes(b"a\tDET\nb\n")
    with pytest.raises(PerdureError, match=r"aa/dev\.tsv', line 2"):
        read_treebanks(tmp_path, ["aa"])
    broken = tmp_path / "broken.tar.xz"
    broken.write_bytes(b"no archive")
    with pytest.raises(PerdureError, match="cannot be read as a tar archive"):
        read_treebanks(broken, ["aa"])


# Files of vectors

VALUES = np.array([[0.5, -1.25, 3.0], [0.1, 1e-7, -2e5]], np.float32)
WORDS = ["the", "Übung"]


def text_of(header, words=WORDS, values=VALUES):
    lines = [f"{len(words)} {values.shape[1]}"] if header else []
    lines += [" ".join([word, *map(repr, map(float, row))]) for word, row in zip(words, values, strict=True)]
    return ("\n".join(lines) + "\n").encode()


@pytest.mark.parametrize("header", [True, False])
@pytest.mark.parametrize("packed", [True, False])
def test_text_vectors_survive(tmp_path, header, packed):
    path = tmp_path / ("v.vec.gz" if packed else "v.vec")
    path.write_bytes(gzip.compress(text_of(header)) if packed else text_of(header))
    words, table = read_text(path)
    assert words == WORDS
    assert table.dtype == np.float32
    assert np.array_equal(table, VALUES)
    assert read_text(path, {"Übung"}).words == ["Übung"]
    assert np.array_equal(read_text(path, {"Übung"}).table, VALUES[1:])
    assert read_text(path, {"none"}).table.shape == (0, 3)


def test_odd_lines_of_text_vectors(tmp_path):
    path = tmp_path / "v.vec"
    path.write_bytes(b"4 2\na 1 2 \nNew York 3 4\r\na 5 6\nb\xc2\xa0c\t7\t8\n")
    words, table = read_text(path)
    assert words == ["a", "New York", "b\xa0c"]  # the first of two counts
    assert table.tolist() == [[1, 2], [3, 4], [7, 8]]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a 1 2\nb 1\n", "line 2: expected a word and 2 numbers"),
        (b"a 1 2\n\n", "line 2: expected a word and 2 numbers"),
        (b"a\n", "line 1: expected a word and 0 numbers"),
        (b"a 1 x\n", "line 1: could not convert string to float: .*x"),
        (b"a 1 nan\n", "line 1: the numbers of a vector must be finite"),
        (b"a 1 2\nb\xff 1 2\n", "line 2 is not UTF-8"),
        (b"3 2\na 1 2\n", "declares 3 words but has 1"),
        (b"", "has no vectors"),
        (b"a 1 2\n" + b"9" * 2**21, "line 2 is longer than"),
    ],
)
def test_damaged_text_vectors_are_named(tmp_path, content, message):
    path = tmp_path / "v.vec"
    path.write_bytes(content)
    with pytest.raises(PerdureError, match=message):
        read_text(path)


def test_damaged_gzip_is_named(tmp_path):
    path = tmp_path / "v.vec.gz"
    path.write_bytes(gzip.compress(text_of(False) * 50)[:-9])
    with pytest.raises(PerdureError, match="cannot be read"):
        read_text(path)


@pytest.mark.parametrize("protocol", range(5))
@pytest.mark.parametrize("values", [VALUES, VALUES.astype(">f8"), np.asfortranarray(VALUES)])
@pytest.mark.parametrize("kind", [tuple, list])
def test_pickles_of_polyglot_are_read_without_unpickling(tmp_path, protocol, values, kind):
    path = tmp_path / "polyglot-xx.pkl"
    path.write_bytes(pickle.dumps((kind(WORDS), values), protocol))
    words, table = read_polyglot(path)
    assert words == WORDS
    assert np.array_equal(table, values.astype(np.float32))


def python_2_pickle():
    """What Python 2's cPickle writes with protocol 2: bytes of the array as a plain string."""

    def text(word):
        return b"X" + struct.pack("<I", len(word.encode())) + word.encode()

    def string(content):
        return b"U" + bytes([len(content)]) + content

    dtype = b"cnumpy\ndtype\nq\x03" + string(b"f4") + b"K\x00K\x01\x87R(K\x03" + string(b"<") + b"NNN"
    dtype += b"J\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb"
    made = (
        b"cnumpy.core.multiarray\n_reconstruct\nq\x01cnumpy\nndarray\nq\x02K\x00\x85"
        + string(b"b")
        + b"\x87R"
    )
    content = VALUES.tobytes()
    state = b"(K\x01K\x02K\x03\x86" + dtype + b"\x89T" + struct.pack("<I", len(content)) + content + b"tb"
    words = text(WORDS[0]) + string(WORDS[1].encode()) + b"\x86"
    return b"\x80\x02" + words + made + state + b"\x86q\x04."


def test_pickles_of_python_2(tmp_path):
    content = python_2_pickle()
    words, table = pickle.loads(content, encoding="latin-1")  # our bytes are a pickle indeed
    assert words[0] == "the"
    assert np.array_equal(table, VALUES)
    path = tmp_path / "polyglot-xx.pkl"
    path.write_bytes(content)
    assert read_polyglot(path)[0] == WORDS
    assert np.array_equal(read_polyglot(path)[1], VALUES)


class Malicious:
    def __init__(self, call, *arguments):
        self.call = call, arguments

    def __reduce__(self):
        return self.call


def refused(path, content):
    path.write_bytes(content)
    with pytest.raises(PerdureError, match=r"polyglot-xx\.pkl' (is rejected|cannot be read)") as caught:
        read_polyglot(path)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("protocol", range(6))
def test_malicious_pickles_are_refused_and_do_nothing(tmp_path, protocol):
    trace = tmp_path / "trace"
    for evil in (
        Malicious(os.system, f"touch {trace}"),
        Malicious(eval, f"open({str(trace)!r}, 'w')"),
        (WORDS, Malicious(os.mkdir, str(trace))),
        [Malicious(getattr, "text", "upper")],
    ):
        content = pickle.dumps(evil, protocol)
        assert "import '" in refused(tmp_path / "polyglot-xx.pkl", content)
        assert not trace.exists()
    pickle.loads(pickle.dumps(Malicious(os.mkdir, str(trace)), protocol))
    assert trace.exists()  # Python's own reader would have obeyed


def test_other_pickles_are_refused(tmp_path):
    path = tmp_path / "polyglot-xx.pkl"
    assert "not a pair" in refused(path, pickle.dumps((1, 2, 3)))
    assert "not a list" in refused(path, pickle.dumps((1, VALUES), 2))
    assert "one of its words is a int" in refused(path, pickle.dumps(([1, 2], VALUES), 2))
    assert "not an array" in refused(path, pickle.dumps((WORDS, WORDS), 2))
    assert "its array holds" in refused(path, pickle.dumps((WORDS, np.array([1, 2])), 2))
    assert "EMPTY_DICT" in refused(path, pickle.dumps({}, 2))
    refused(path, pickle.dumps((WORDS, np.array([None, "x"])), 2))
    path.write_bytes(pickle.dumps((WORDS, VALUES[:, 0].copy()), 2))
    with pytest.raises(PerdureError, match=r"2 words and an array of shape \(2,\)"):
        read_polyglot(path)


BOMBS = {
    "a memo with a far place": b"\x80\x02Nr\xff\xff\xff\x7f.",
    "a memo with a far place, as text": b"N" + b"p9999999999\n" + b".",
    "bytes longer than the file": b"\x80\x04\x8e" + (2**40).to_bytes(8, "little") + b"x.",
    "text longer than the file": b"\x80\x04\x8d" + (2**40).to_bytes(8, "little") + b"x.",
    "a frame longer than the file": b"\x80\x04\x95" + (2**60).to_bytes(8, "little") + b"N.",
    "an array larger than its bytes": pickle.dumps((WORDS, VALUES), 2).replace(
        b"K\x02K\x03", b"M\xff\xffM\xff\xff"
    ),
}


@pytest.mark.parametrize("bomb", BOMBS)
def test_small_pickles_take_little_memory(tmp_path, bomb):
    tracemalloc.start()
    try:
        refused(tmp_path / "polyglot-xx.pkl", BOMBS[bomb])
        assert tracemalloc.get_traced_memory()[1] < 2**21
    finally:
        tracemalloc.stop()


def test_large_pickles_and_other_things_are_not_read(tmp_path):
    path = tmp_path / "polyglot-xx.pkl"
    with path.open("wb") as file:
        file.truncate(2**29 + 1)  # a hole, which takes no room
    with pytest.raises(PerdureError, match="not a file of at most"):
        read_polyglot(path)
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(PerdureError, match="not a file of at most"):
        read_polyglot(path)


def test_damaged_pickles_are_refused(tmp_path):
    path = tmp_path / "polyglot-xx.pkl"
    for whole in (python_2_pickle(), pickle.dumps((WORDS, VALUES), 2)):
        for end in range(0, len(whole), 3):
            refused(path, whole[:end])
        for place in range(0, len(whole), 2):  # a flipped byte may go unseen, but must not do anything else
            path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x15]) + whole[place + 1 :])
            with contextlib.suppress(PerdureError):
                read_polyglot(path)


def test_spellings_and_their_order_by_hand():
    assert spellings("Route66") == ("Route66", "Route##", "route##", "ROUTE##", "Route##")
    vocabulary = ["<UNK>", "PARIS", "Paris", "####", "US", "us", "route##", "1999", "straße"]
    rank = {word: place for place, word in enumerate(vocabulary)}
    expected = {
        "Paris": 2,  # exact, although PARIS is more frequent
        "paris": 1,  # no exact one: the most frequent of the cases
        "1999": 7,  # exact, before digits become #
        "2024": 3,
        "Route66": 6,  # digits first, then the case
        "us": 5,
        "Us": 4,
        "Straße": 8,
        "24": None,
        "Unknown": None,
    }
    assert {form: find(form, rank) for form in expected} == expected


def test_files_of_vectors_are_found(tmp_path):
    (tmp_path / "wiki.en.vec").touch()
    assert vector_file(tmp_path, ("en_gum", "en"), "text").name == "wiki.en.vec"
    (tmp_path / "en_gum.vec").touch()
    assert vector_file(tmp_path, ("en_gum", "en"), "text").name == "en_gum.vec"
    with pytest.raises(PerdureError, match=r"no vectors for 'en_gum'; put polyglot-en_gum\.pkl or"):
        vector_file(tmp_path, ("en_gum", "en"), "polyglot")


# Vectors that are learnt

TOY = [
    ["the", "cat", "sees", "the", "dog"],
    ["the", "dog", "sees", "12", "cats"],
    ["a", "cat", "sleeps"],
    ["the", "cat", "sleeps", "in", "19", "rooms"],
    ["a"],
]


def toy_text(count=400, seed=0):
    """Sentences of determiners, nouns and verbs with endings of their own."""
    source = np.random.default_rng(seed)
    stems = ["".join(source.choice(list("bdfgklmnprst"), 3)) for _ in range(60)]
    nouns, verbs = [stem + "ung" for stem in stems], [stem + "en" for stem in stems]
    pick = source.choice
    return [["die", pick(nouns), pick(verbs), "eine", pick(nouns), "."] for _ in range(count)]


def test_ppmi_equals_a_brute_force_count():
    words, counts, text = number(TOY, 2)
    contexts = 4
    frequent = words[:contexts]
    counted = Counter("".join("#" if c.isdigit() else c for c in word) for line in TOY for word in line)
    assert dict(zip(words, counts, strict=True)) == counted
    assert list(counts) == sorted(counts, reverse=True)
    for offset, table in zip((-2, -1, 1, 2), neighbours(text, len(words), contexts, 2), strict=True):
        pairs: Counter[tuple[str, str]] = Counter()
        for line in TOY:
            plain = ["##" if word.isdigit() else word for word in line]
            for place, word in enumerate(plain):
                other = place + offset
                if not 0 <= other < len(plain):
                    pairs[word, "END"] += 1
                else:
                    pairs[word, plain[other] if plain[other] in frequent else "RARE"] += 1
        columns = [*frequent, "RARE", "END"]
        of_word, of_context = Counter(), Counter()
        for (word, context), count in pairs.items():
            of_word[word] += count
            of_context[context] += count
        smooth = {context: count**0.75 for context, count in of_context.items()}
        expected = np.zeros((len(words), len(columns)))
        for (word, context), count in pairs.items():
            chance = smooth[context] / sum(smooth.values())
            value = math.log(count / of_word[word] / chance)
            expected[words.index(word), columns.index(context)] = max(0, value)
        assert table.sum() == sum(map(len, TOY))
        np.testing.assert_allclose(ppmi(table).toarray(), expected, rtol=1e-12, atol=1e-12)


def test_svd_reconstructs_and_equals_lapack():
    source = np.random.default_rng(1)
    low = source.normal(size=(60, 5)) @ source.normal(size=(5, 40))
    left, sizes, right = truncated_svd(sparse.csr_array(low), 5, 0)
    np.testing.assert_allclose(left * sizes @ right, low, atol=1e-10)
    decaying = source.normal(size=(80, 80)) * 0.7 ** np.arange(80)
    left, sizes, right = truncated_svd(sparse.csr_array(decaying), 8, 0)
    _, exact, _ = np.linalg.svd(decaying)
    np.testing.assert_allclose(sizes, exact[:8], rtol=1e-6)
    np.testing.assert_allclose(left.T @ left, np.eye(8), atol=1e-9)
    np.testing.assert_allclose(right @ right.T, np.eye(8), atol=1e-9)
    assert truncated_svd(sparse.csr_array(low[:3]), 64, 0)[1].shape == (3,)


def test_ridge_minimises_its_loss():
    source = np.random.default_rng(2)
    x, y, w = source.integers(0, 2, (30, 4)) * 1.0, source.normal(size=(30, 3)), source.random(30)
    found = ridge(sparse.csr_array(x), y, w)
    gradient = x.T @ (w[:, None] * (x @ found - y)) + embed.RIDGE * found
    np.testing.assert_allclose(gradient, 0, atol=1e-10)


def test_forms_by_hand():
    assert set(form_features("Hut")) == {
        "shape title", "length 3", "... t>", "... ut>", "... hut>", "<h ...", "<hu ...", "<hut ...",
    }  # fmt: skip
    assert form_features("a") == ["shape letters", "length 1", "... a>", "<a ..."]
    assert "length 8" in form_features("a" * 30)
    shapes = {"EU": "capitals", "A": "capital", "Hut": "title", "##.#": "digits", "...": "signs"}
    shapes |= {"e-mail": "hyphen", "hut": "letters"}
    assert {word: shape(word) for word in shapes} == shapes


def cosine(a, b):
    return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))


def test_words_of_a_kind_are_near_and_unknown_ones_follow_their_form():
    words, table, guess = learn_lexicon(toy_text(), Recipe(dimensions=16))
    assert table.shape == (len(words), 16)
    assert table.dtype == np.float32
    np.testing.assert_allclose(np.sqrt((table**2).mean(1)), embed.SPREAD, rtol=1e-5)
    noun = table[[word.endswith("ung") for word in words]].mean(0)
    verb = table[[word.endswith("en") for word in words]].mean(0)
    assert cosine(noun, verb) < 0.5
    for new, near, far in (("xyzung", noun, verb), ("xyzen", verb, noun)):
        assert cosine(guess([new])[0], near) > 0.8 > cosine(guess([new])[0], far)
    assert np.array_equal(guess(["x12"]), guess(["x##"]))


def test_learning_vectors_is_deterministic_and_seeded():
    one, same, other = (learn_lexicon(toy_text(), Recipe(dimensions=8, seed=seed)) for seed in (1, 1, 2))
    assert one.words == same.words
    assert np.array_equal(one.table, same.table)
    assert np.array_equal(one.guess(["neu"]), same.guess(["neu"]))
    assert not np.array_equal(one.table, other.table)


def test_a_text_of_few_words_has_vectors_too():
    words, table, guess = learn_lexicon([["a", "b"], ["a"]], Recipe())
    assert (len(words), table.shape) == (2, (2, 64))
    assert np.isfinite(table).all()
    assert np.isfinite(guess(["c", "ab"])).all()


def test_forms_predict_given_vectors():
    """Where the ending decides, it decides for new words too (drawn a little to zero by the ridge)."""
    words = [f"{letter}{ending}" for letter in "bcdfghjklmnpqrstvwxz" * 40 for ending in ("ia", "ox")]
    vectors = np.array([[1.0, 0.0] if word.endswith("ia") else [0.0, 1.0] for word in words])
    np.testing.assert_allclose(FormModel(words, vectors)(["ülkia", "ülkox"]), np.eye(2), atol=0.2)


# The benchmark

TRAIN = b"the\tDET\ncat\tNOUN\n\nA\tDET\nDog\tNOUN\n12\tNUM\n\nzzz\tX\nthe\tDET\n"
DEV = b"The\tDET\ndog\tNOUN\n34\tNUM\n\nthe\tDET\nqqq\tX\n"
OWN = {"train": TRAIN, "dev": DEV, "test": b"cat\tNOUN\n\nCAT\tNOUN\n"}
GIVEN = ["<UNK>", "the", "cat", "##", "dog", "a", "The"]


@pytest.fixture
def own_data(tmp_path, monkeypatch):
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    write_treebank(tmp_path / "banks", "xx", OWN)
    table = np.arange(len(GIVEN) * 2, dtype=np.float32).reshape(-1, 2)
    (tmp_path / "vectors").mkdir()
    (tmp_path / "vectors" / "polyglot-xx.pkl").write_bytes(pickle.dumps((tuple(GIVEN), table), 2))
    (tmp_path / "vectors" / "xx.vec").write_bytes(text_of(True, GIVEN, table))
    return table


def own(**changes):
    return Pos(languages=("xx_own",), treebanks="banks", **changes)


def seen(split):
    """The vectors of each sentence, without padding."""
    return [split.table[x[:length]] for x, length in zip(split.x, split.lengths, strict=True)]


@pytest.mark.parametrize("kind", ["polyglot", "text"])
def test_sentences_with_unknown_words_are_dropped(own_data, kind):
    """The paper's rule, with vectors looked up by hand."""
    (task,) = own(embeddings=kind, unknown="drop-sentence").build()
    check_tasks([task])
    v = {word: own_data[place] for place, word in enumerate(GIVEN)}
    assert (task.name, task.target, task.outputs, task.inputs) == ("xx", Tags(), 17, 2)
    expected = {
        "train": [(["the", "cat"], ["DET", "NOUN"]), (["a", "dog", "##"], ["DET", "NOUN", "NUM"])],
        "val": [(["The", "dog", "##"], ["DET", "NOUN", "NUM"])],
        "test": [(["cat"], ["NOUN"]), (["cat"], ["NOUN"])],
    }
    for split, sentences in expected.items():
        data = getattr(task, split)
        assert (data.x.dtype, data.y.dtype, data.table.dtype) == (np.int32, np.int8, np.float32)
        assert len(data) == len(sentences)
        for found, y, (words, names) in zip(seen(data), data.y, sentences, strict=True):
            assert np.array_equal(found, [v[word] for word in words])
            assert list(y) == tags(*names) + [-1] * (len(y) - len(names))
    assert len(task.train.table) == 1 + 6  # none, and the, cat, ##, dog, a, The


@pytest.mark.parametrize("kind", ["own", "polyglot", "text"])
def test_sentences_with_unknown_words_are_kept(own_data, kind):
    (task,) = own(embeddings=kind, dimensions=5).build()
    check_tasks([task])
    assert [len(split) for split in (task.train, task.val, task.test)] == [3, 2, 2]
    assert task.inputs == (5 if kind == "own" else 2)
    assert np.isfinite(task.train.table).all()
    # Two spellings of a known word share a row; an unknown one has a row of its own.
    assert task.test.x[0, 0] == task.test.x[1, 0] != task.val.x[1, 1]
    if kind != "own":
        assert np.array_equal(seen(task.train)[0], own_data[[1, 2]])


def test_limits_of_words(own_data):
    (task,) = own(dimensions=5, tokens=3).build()
    # A split is read until it has 3 words: the sentence that reaches them is whole.
    assert [list(split.lengths) for split in (task.train, task.val, task.test)] == [[2, 3], [3], [1, 1]]
    (task,) = own(dimensions=5, longest=2).build()
    assert [list(split.lengths) for split in (task.train, task.val, task.test)] == [[2, 2, 2], [3, 2], [1, 1]]
    (task,) = own(dimensions=5, longest=None).build()
    assert list(task.train.lengths) == [2, 3, 2]


def test_test_words_do_not_change_training(own_data, tmp_path):
    """Vectors come from the training text alone."""
    (before,) = own(dimensions=5).build()
    write_treebank(tmp_path / "banks", "xx", OWN | {"test": b"wholly\tADV\nnew\tADJ\nthe\tDET\n"})
    (after,) = own(dimensions=5).build()
    for one, two in zip(seen(before.train), seen(after.train), strict=True):
        assert np.array_equal(one, two)


def test_what_was_built_is_kept_and_made_again_when_files_change(own_data, tmp_path, monkeypatch):
    calls = []
    monkeypatch.setattr(pos, "learn_lexicon", lambda *a: calls.append(1) or learn_lexicon(*a))
    said = []
    first = own(dimensions=5).build(lambda *words: said.append(words))[0]
    again = own(dimensions=5).build()[0]
    assert len(calls) == 1
    assert said == [("languages", 0, 1), ("languages", 1, 1)]
    assert np.array_equal(first.train.table, again.train.table)
    assert np.array_equal(first.val.x, again.val.x)
    own(dimensions=6).build()
    own(dimensions=5, data_seed=1).build()
    write_treebank(tmp_path / "banks", "xx", OWN | {"dev": b"one\tNUM\n"})
    assert len(own(dimensions=5).build()[0].val) == 1
    assert len(calls) == 4


def test_the_named_treebank_comes_before_the_language(own_data, tmp_path):
    write_treebank(tmp_path / "banks", "xx_own", {"dev": DEV, "test": DEV})
    assert own(dimensions=5).build()[0].name == "xx"  # xx_own lacks a split
    write_treebank(tmp_path / "banks", "xx_own", {"train": TRAIN})
    assert own(dimensions=5).build()[0].name == "xx_own"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"languages": ("yy",)}, "has no treebank 'yy'; it has xx, zz"),
        ({"languages": ("zz",)}, "lacks the train split of 'zz'"),
        ({"languages": ("xx", "xx_own")}, "two of them are 'xx'"),
        ({"treebanks": "nowhere"}, "nowhere' does not exist"),
        ({"vectors": "nowhere", "embeddings": "text"}, "nowhere' does not exist"),
        ({"languages": ("ww",), "embeddings": "text"}, "no vectors for 'ww'"),
    ],
)
def test_faults_of_the_benchmark_are_named(own_data, tmp_path, options, message):
    write_treebank(tmp_path / "banks", "zz", {"dev": DEV, "test": DEV})
    with pytest.raises(PerdureError, match=message):
        Pos(**{"languages": ("xx",), "treebanks": "banks", "dimensions": 5} | options).build()


def test_a_split_that_is_dropped_whole_is_named(own_data, tmp_path):
    write_treebank(tmp_path / "banks", "xx", OWN | {"test": b"qqq\tX\n"})
    with pytest.raises(PerdureError, match="every sentence of xx, test split, has a word without a vector"):
        own(unknown="drop-sentence", embeddings="text").build()
    (tmp_path / "vectors" / "xx.vec").write_bytes(b"foreign 1 2\n")
    with pytest.raises(PerdureError, match="has no word of the treebank"):
        own(embeddings="text").build()


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"languages": "en,de,en"}, "'en' is named twice"),
        ({"languages": ""}, "benchmark.languages"),
        ({"languages": "en,de", "tasks": 3}, "tasks = 3 exceeds the number of languages, 2"),
        ({"embeddings": "fast"}, "benchmark.embeddings"),
        ({"tokens": 0}, "benchmark.tokens"),
    ],
)
def test_faulty_options_are_named(values, message):
    with pytest.raises(PerdureError, match=message):
        validated(Pos, values, "benchmark")
    assert validated(Pos, {"languages": "a, b"}, "benchmark").languages == ("a", "b")


CALLS = [
    # method, given, expected: the published calls of the original for PoS tagging
    ("multitask", {}, (5000, 5e-3, 100, 0)),
    ("from-scratch", {}, (5000, 5e-3, 100, 1)),
    ("fine-tuning", {}, (2500, 5e-4, 100, 1)),
    ("hnet", {}, (2500, 5e-3, None, 0)),
    ("online-ewc", {}, (2500, 5e-3, 100, 1)),
    ("online-ewc", {"network.task_identity": "true"}, (5000, 5e-3, 100, 1)),
    ("si", {}, (5000, 1e-3, 100, 1)),
    ("masking", {}, (2500, 5e-4, None, 1)),
    ("masking+si", {}, (5000, 1e-3, None, 1)),
    ("coresets", {}, (5000, 5e-3, None, 0)),
    ("coresets", {"rehearsal.size": "500"}, (2500, 5e-3, 100, 0)),
]


@pytest.mark.parametrize(("method", "given", "expected"), CALLS)
def test_paper_scale_has_the_published_values(method, given, expected):
    config = build("pos", method, scale="paper", **given)
    training, orthogonal = config.training, config.penalties["orthogonal"].strength
    assert (training.iterations, training.learning_rate, training.clip, orthogonal) == expected
    assert training.batch_size == 64
    network = config.network
    assert (network.cell, network.hidden, network.bidirectional, network.heads) == (
        LSTM(),
        (32,),
        True,
        "multi",
    )
    published = {"online-ewc": 10, "si": 1 if method == "masking+si" else 0.1, "hnet-regulariser": 0.5}
    for name, penalty in config.penalties.items():
        assert name == "orthogonal" or penalty.strength == published[name]
    if "masking" in method:
        assert config.weights.fraction == 0.2
    if method == "coresets":
        assert config.rehearsal.strength == 10


def test_the_published_hypernetwork_has_its_compression_ratio():
    """The original's ratio of hypernetwork to network, with 20 heads, is 0.83."""
    config = build("pos", "hnet", scale="paper")
    network = Network(config.network, 64, [len(TAGS)] * 20)
    parameters, _ = config.weights.grow(network, 0, Stock({}, {}), lambda *role: generator(0, *role))
    ratio = sum(vector.numel() for vector in parameters.values()) / network.layout.size
    assert round(ratio, 2) == 0.83


# Real treebanks


@real
def test_real_treebanks_are_what_their_manifest_says():
    archive = SHARED / "pos_tsv.tar.xz"
    manifest = json.loads((SHARED / "manifest.json").read_text(encoding="utf-8"))
    names = treebank_names(archive)
    assert set(names) == set(manifest)
    found = read_treebanks(archive, names)
    for name, splits in manifest.items():
        for split, told in splits.items():
            sentences = found[name][split]
            assert len(sentences) == told["sentences"]
            assert sum(len(sentence.words) for sentence in sentences) == told["tokens"]
            assert len({tag for sentence in sentences for tag in sentence.tags}) == told["tags"]
    chosen = [pos.chosen(language, found, archive) for language in PAPER]
    assert chosen == [language.partition("_")[0] for language in PAPER]
    assert len(set(chosen)) == 20


@real
def test_both_readers_agree_on_official_files():
    """The same splits, once as official CoNLL-U and once as words and tags."""
    official = read_treebanks(SHARED / "conllu_r2.6.tar.xz", ["en_gum", "fr_gsd", "it_isdt"])
    tagged = read_treebanks(SHARED / "pos_tsv.tar.xz", ["en", "fr", "it"])
    for name, splits in official.items():
        for split in ("dev", "test"):
            assert splits[split] == tagged[name[:2]][split]


@real
def test_a_real_language_becomes_a_task(monkeypatch):
    monkeypatch.setenv(VARIABLE, str(SHARED.parent))
    (task,) = Pos(languages=("lt_alksnis",)).build()
    check_tasks([task])
    assert (task.name, task.inputs, task.outputs) == ("lt", 64, 17)
    assert [len(split) for split in (task.train, task.val, task.test)] == [1051, 617, 684]
    assert task.train.x.shape[1] == 100
    assert task.test.lengths.sum() == 10846


def test_a_tar_of_one_file_in_memory_is_what_it_seems(tmp_path):
    """A member that points outside is refused before anything of it is read."""
    path = tmp_path / "evil.tar"
    with tarfile.open(path, "w") as archive:
        member = tarfile.TarInfo("../xx/train.tsv")
        member.size = len(TRAIN)
        archive.addfile(member, io.BytesIO(TRAIN))
    with pytest.raises(PerdureError, match="points outside"):
        read_treebanks(path, ["xx"])
