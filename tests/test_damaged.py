"""Damaged inputs: exit code 2, one line that names the file and says what is right, no traceback.

Each case writes files to a folder and says which words the line must have. Here are one's own data, read by
`perdure run` and `perdure data check`; the sources of the other benchmarks are in test_damaged_sources.py.
"""

from __future__ import annotations

import contextlib
import gzip
import importlib.util
import io
import json
import re
import signal
import struct
import tarfile
import zipfile

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from perdure.benchmarks.arrays import Arrays
from perdure.benchmarks.sources.archives import npz, tar_members, unzipped
from perdure.cli import main
from perdure.errors import PerdureError

PARQUET = importlib.util.find_spec("pyarrow") is not None
HEAD = "sequence,split,f,g,label\n"
GOOD = HEAD + "".join(
    f"{split}{n},{split},{n}.5,{step},{'ab'[n % 2]}\n"
    for split, count in (("train", 8), ("val", 2), ("test", 2))
    for n in range(count)
    for step in range(3)
)
"""36 rows below the header: 12 sequences of 3 steps."""


@pytest.fixture(autouse=True)
def _signals_as_before():
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGINT, before[0])
    signal.signal(signal.SIGTERM, before[1])


def text(content, name="task.csv"):
    """A case: a file with this text or these bytes."""
    return lambda folder: (folder / name).write_bytes(
        content.encode() if isinstance(content, str) else content
    )


def line(number, content):
    """A case: the good file with one line (the header is line 1) replaced."""
    lines = GOOD.splitlines()
    lines[number - 1] = content
    return text("\n".join(lines) + "\n")


def arrays(name="task.npz", **changes):
    """A case: a good npz file with some arrays changed, or left out where None."""
    good = {"x": np.zeros((20, 4, 2)), "y": np.arange(20) % 2} | changes
    good = {key: value for key, value in good.items() if value is not None}
    return lambda folder: np.savez(folder / name, **good)


def zipped(members, name="task.npz"):
    def write(folder):
        with zipfile.ZipFile(folder / name, "w", zipfile.ZIP_DEFLATED) as archive:
            for member, content in members.items():
                archive.writestr(member, content)

    return write


def npy(array):
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


def npz_bytes(**changes):
    buffer = io.BytesIO()
    np.savez(buffer, **({"x": np.zeros((20, 4, 2)), "y": np.arange(20) % 2} | changes))
    return buffer.getvalue()


def header_of(shape):
    """An npy file that claims a shape and holds nothing of it."""
    said = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", 118) + said.encode()


def both(*makers):
    def write(folder):
        for make in makers:
            make(folder)

    return write


def within(sub, *makers):
    """Files of a sub-folder."""

    def write(folder):
        (folder / sub).mkdir()
        for make in makers:
            make(folder / sub)

    return write


def nan_at(*place, value=np.nan):
    x = np.zeros((20, 4, 2))
    x[place] = value
    return x


flat = {"x": np.zeros((60, 2)), "lengths": np.full(20, 3)}
bits = np.zeros((20, 2, 3), dtype=int)

CASES = {
    # the folder
    "an empty folder": (lambda folder: None, ["has no tasks", ".npz"]),
    "nothing to read": (text("hello", "notes.md"), ["has no tasks"]),
    "an empty sub-folder": (both(within("one"), text(GOOD)), ["one'", "empty task"]),
    "one task twice": (both(text(GOOD), arrays("task.npz")), ["task.npz'", "both task 'task'"]),
    "splits without a task": (
        both(text(GOOD, "train.csv"), text(GOOD, "test.csv")),
        ["mine/test.csv'", "sub-folder"],
    ),
    "an unknown task in the list": (both(text(GOOD), text("tusk\n", "tasks.txt")), ["did you mean 'task'"]),
    "a task listed twice": (both(text(GOOD), text("task\ntask\n", "tasks.txt")), ["listed twice"]),
    "a list that is no text": (both(text(GOOD), text(b"\xff\xfe\x00", "tasks.txt")), ["tasks.txt'", "UTF-8"]),
    "other numbers of features": (
        both(text(GOOD), arrays("b.npz", x=np.zeros((20, 4, 3)))),
        ["task.csv' has 2 features", "has 3"],
    ),
    "other columns": (
        both(text(GOOD), text(GOOD.replace("f,g", "f,h"), "b.csv")),
        ["'g'", "'h'", "same columns"],
    ),
    "columns in another order": (
        both(text(GOOD), text(GOOD.replace("f,g", "g,f"), "b.csv")),
        ["b.csv'", "same order"],
    ),
    "labels here and tags there": (
        both(text(GOOD), arrays("b.npz", y=np.arange(80).reshape(20, 4) % 2)),
        ["kind tags", "kind label"],
    ),
    # csv: the text
    "an empty file": (text(""), ["task.csv', row 1", "no column 'sequence'"]),
    "a header alone": (text(HEAD), ["task.csv'", "no rows"]),
    "no header": (text(GOOD.removeprefix(HEAD)), ["row 1", "no column 'sequence'", "train0"]),
    "no label column": (text(GOOD.replace("label", "lable")), ["row 1", "no column 'label'"]),
    "no feature column": (text("sequence,label\n1,a\n"), ["row 1", "no feature"]),
    "a column twice": (text(GOOD.replace("f,g", "f,f")), ["row 1", "'f' appears twice"]),
    "a column without name": (text(GOOD.replace("f,g", "f,")), ["row 1", "column 4 has no name"]),
    "a short row": (line(9, "train2,train,2.5,0"), ["row 9", "4 cells", "header has 5"]),
    "a long row": (line(9, "train2,train,2.5,0,a,a"), ["row 9", "6 cells"]),
    "not UTF-8": (
        text(GOOD.encode().replace(b"train3,train", b"tr\xe9in3,train", 1)),
        ["row 11", "0xe9", "UTF-8"],
    ),
    "UTF-16": (text(GOOD.encode("utf-16")), ["row 1", "UTF-8"]),
    "an open quote": (line(5, '"train1,train,1.5,0,b'), ["task.csv', row", "quotes"]),
    "binary rubbish": (text(bytes(range(128)) * 20), ["task.csv'", "row 1"]),
    "a cut gzip file": (text(gzip.compress(GOOD.encode())[:-20], "task.csv.gz"), ["task.csv.gz'", "cut off"]),
    "a gzip file with a flaw": (
        text(gzip.compress(GOOD.encode())[:40] + b"\0" * 60, "task.csv.gz"),
        ["task.csv.gz'", "damaged"],
    ),
    # csv: the cells
    "a word for a number": (line(9, "train2,train,many,1,a"), ["row 9", "column 'f'", "'many'", "numbers"]),
    "a decimal comma": (text(GOOD.replace(",", ";").replace(".5", ",5")), ["row 2", "decimal point"]),
    "an empty cell": (line(9, "train2,train,,1,a"), ["row 9", "column 'f' is empty"]),
    "NaN": (line(9, "train2,train,1,nan,a"), ["row 9", "column 'g' is NaN", "finite"]),
    "infinite": (line(9, "train2,train,-inf,1,a"), ["row 9", "column 'f' is infinite"]),
    "too large for 32 bits": (line(9, "train2,train,1e39,1,a"), ["row 9", "too large for 32 bits"]),
    "no sequence": (line(9, ",train,1,1,a"), ["row 9", "'sequence' is empty"]),
    "a sequence twice": (text(GOOD + "train0,train,1,1,a\n"), ["row 38", "'train0' begins a second time"]),
    "an unknown split": (text(GOOD.replace("val", "valid")), ["did you mean 'val'"]),
    "no split": (line(9, "train2,,1,1,a"), ["row 9", "Unknown split ''", "train"]),
    "a split that changes": (line(9, "train2,test,1,1,a"), ["row 9", "'test' within sequence 'train2'"]),
    "a label that changes": (line(9, "train2,train,1,1,b"), ["row 9", "from 'a' to 'b'", "kind tags"]),
    "no label": (text(re.sub("(train2,.*),a", r"\1,", GOOD)), ["row 8", "no label"]),
    "a label that is never trained": (
        text(GOOD + "".join(f"t,test,1,{n},zebra\n" for n in range(3))),
        ["row 38", "'zebra' does not occur", "a, b"],
    ),
    "one class only": (
        text(GOOD.replace(",b\n", ",a\n")),
        ["task.csv'", "only the class 'a'", "at least two"],
    ),
    "no training split": (text(GOOD.replace("train,", "test,")), ["task.csv'", "no training sequences"]),
    "too few to split": (
        text("sequence,f,label\n1,0,a\n2,1,b\n3,0,a\n"),
        ["3 training sequences", "too few", "val and test"],
    ),
    "an endless label": (line(9, f"train2,train,1,1,{'a' * 600}"), ["row 9", "600 characters", "500"]),
    "an endless cell": (line(9, f"train2,train,1,1,{'a' * 200_000}"), ["task.csv', row 9", "csv"]),
    "a split twice": (within("one", text(GOOD, "train.csv")), ["train.csv'", "column 'split'; use only one"]),
    # npz: the archive
    "not a zip": (text("hello", "task.npz"), ["task.npz'", "npz"]),
    "an empty npz": (text("", "task.npz"), ["task.npz'", "npz"]),
    "a cut npz": (text(npz_bytes()[:-300], "task.npz"), ["task.npz'", "npz"]),
    "a flipped bit": (
        text(npz_bytes(x=np.ones((20, 4, 2))).replace(b"\xf0?", b"\xf1?", 1), "task.npz"),
        ["task.npz'", "npz"],
    ),
    "a name that climbs out": (zipped({"../x.npy": npy(np.zeros((3, 2)))}), ["'../x.npy'", "points outside"]),
    "an absolute name": (zipped({"/x.npy": npy(np.zeros((3, 2)))}), ["'/x.npy'", "points outside"]),
    "a zip bomb": (zipped({"x.npy": bytes(2**24)}), ["task.npz'", "compression ratio"]),
    "no array": (
        zipped({"x.npy": npy(np.zeros((20, 4, 2))), "y.txt": "0 1 0 1"}),
        ["'y.txt' is not an array"],
    ),
    "Python objects": (arrays(y=np.array([{}] * 20, dtype=object)), ["task.npz'", "never unpickled"]),
    "a ragged object array": (
        arrays(x=np.array([np.zeros((n, 2)) for n in range(1, 21)] + [None], dtype=object)[:-1]),
        ["task.npz'", "never unpickled"],
    ),
    "a shape beyond memory": (
        zipped({"x.npy": header_of((2**40, 2**10)), "y.npy": npy(np.arange(3))}),
        ["task.npz'", "npz"],
    ),
    "a shape without content": (zipped({"x.npy": header_of((20, 4, 2))}), ["task.npz'", "npz"]),
    "a header that is no header": (
        zipped({"x.npy": b"\x93NUMPY\x01\x00\x05\x00{'a':"}),
        ["task.npz'", "npz"],
    ),
    "an npy file that is cut": (
        within(
            "one",
            lambda f: np.save(f / "y.npy", np.arange(9)),
            lambda f: (f / "x.npy").write_bytes(npy(np.zeros((9, 2, 1)))[:-8]),
        ),
        ["x.npy'", "npy"],
    ),
    # npz: the arrays
    "no x": (arrays(x=None), ["lacks the array 'x'", "it has y"]),
    "no y": (arrays(y=None), ["lacks the array 'y'"]),
    "a misspelt array": (arrays(length=np.full(20, 3)), ["did you mean 'lengths'"]),
    "some arrays with a split": (arrays(x_test=np.zeros((3, 4, 2))), ["'x' as well as", "_test"]),
    "a split without targets": (
        arrays(
            x=None, y=None, x_train=np.zeros((9, 4, 2)), y_train=np.arange(9) % 2, x_test=np.zeros((3, 4, 2))
        ),
        ["lacks the array 'y_test'"],
    ),
    "four axes": (arrays(x=np.zeros((20, 4, 2, 1))), ["x has shape (20, 4, 2, 1)", "[N, T, F]"]),
    "one axis": (arrays(x=np.zeros(20)), ["x has shape (20,)", "[N, T, F]"]),
    "no sequences": (
        arrays(x=np.zeros((0, 4, 2)), y=np.zeros(0, int)),
        ["x has shape (0, 4, 2)", "not empty"],
    ),
    "no features": (arrays(x=np.zeros((20, 4, 0))), ["x has shape", "not empty"]),
    "flat rows without lengths": (arrays(x=np.zeros((60, 2))), ["no 'lengths'", "[N, T, F]"]),
    "text for numbers": (arrays(x=np.full((20, 4, 2), "1.5")), ["x is of type <U3", "numbers"]),
    "complex numbers": (arrays(x=np.zeros((20, 4, 2), complex)), ["x is of type complex128"]),
    "times": (arrays(x=np.zeros((20, 4, 2), "M8[s]")), ["x is of type datetime64[s]"]),
    "NaN in an array": (arrays(x=nan_at(7, 2, 1)), ["x[7, 2]", "feature 1 is NaN"]),
    "infinite in an array": (arrays(x=nan_at(7, 2, 1, value=-np.inf)), ["x[7, 2]", "feature 1 is infinite"]),
    "float64 beyond float32": (arrays(x=nan_at(7, 2, 1, value=1e200)), ["x[7, 2]", "too large for 32 bits"]),
    "NaN in flat rows": (arrays(**flat | {"x": nan_at().reshape(-1, 2)[:60] * np.nan}), ["x[0]", "NaN"]),
    "lengths that do not sum up": (arrays(**flat | {"lengths": np.full(20, 2)}), ["add up to 40", "60 rows"]),
    "a negative length": (arrays(lengths=np.r_[-1, np.full(19, 3)]), ["lengths [0] is -1", "1 to 4 steps"]),
    "a length of zero": (arrays(**flat | {"lengths": np.r_[0, 6, np.full(18, 3)]}), ["lengths [0] is 0"]),
    "a length beyond the array": (arrays(lengths=np.r_[np.full(19, 3), 5]), ["lengths [19] is 5", "1 to 4"]),
    "lengths that are floats": (arrays(lengths=np.full(20, 3.0)), ["lengths is float64", "integers"]),
    "lengths for others": (arrays(lengths=np.full(19, 3)), ["19 entries for 20 sequences"]),
    "floats for classes": (arrays(y=np.arange(20) % 2 * 1.0), ["y is of type float64", "y.astype(int)"]),
    "bytes for classes": (arrays(y=np.array([b"a", b"b"] * 10)), ["y is of type |S1", "strings"]),
    "too few targets": (arrays(y=np.arange(19) % 2), ["y has shape (19,)", "[20]"]),
    "tags of other steps": (
        arrays(y=np.zeros((20, 3), int)),
        ["y has shape (20, 3)", "[20, 4] (a class per step)"],
    ),
    "an unknown class in test": (
        arrays(
            x=None,
            y=None,
            x_train=np.zeros((9, 4, 2)),
            y_train=np.arange(9) % 2,
            x_test=np.zeros((3, 4, 2)),
            y_test=np.array([0, 1, 7]),
        ),
        ["y_test[2]", "'7' does not occur", "0, 1"],
    ),
    "tags that are never trained": (
        arrays(
            x=None,
            y=None,
            x_train=np.zeros((9, 2, 2)),
            y_train=np.arange(18).reshape(9, 2) % 2,
            x_test=np.zeros((3, 2, 2)),
            y_test=np.array([[0, 1], [0, 5], [-1, 1]]),
        ),
        ["y_test[1, 1]", "'5' does not"],
    ),
    "no tag at all": (arrays(y=np.full((20, 4), -1)), ["no class at all"]),
    "one class in an array": (arrays(y=np.full(20, 3)), ["only the class '3'", "at least two"]),
    "bits beyond one": (arrays(y=bits + 2), ["bits 0 and 1"]),
    "a pattern that does not fit": (arrays(y=np.zeros((20, 5, 3), int)), ["5 steps", "only 4"]),
    "classes twice": (arrays(classes=np.array([0, 1, 1])), ["distinct integers"]),
    "a class that is not listed": (arrays(classes=np.array([0, 2])), ["'1' does not occur", "0, 2"]),
    "unknown splits": (
        arrays(split=np.array(["train"] * 19 + ["tset"])),
        ["split[19]", "did you mean 'test'"],
    ),
    "splits for others": (arrays(split=np.array(["train"] * 19)), ["split must be strings [20]"]),
    "words beyond the table": (
        arrays(x=np.full((20, 4), 7), table=np.zeros((7, 2))),
        ["x[0, 0]: it is 7", "rows 0 to 6"],
    ),
    "words that are floats": (arrays(x=np.zeros((20, 4)), table=np.zeros((7, 2))), ["x is of type", "table"]),
    "a table with NaN": (
        arrays(x=np.zeros((20, 4), int), table=np.full((7, 2), np.nan)),
        ["row 0 of the table"],
    ),
    "a table of one axis": (arrays(x=np.zeros((20, 4), int), table=np.zeros(7)), ["table is float64 (7,)"]),
}


def lines_of(words, capsys):
    code = main(words)
    out, err = capsys.readouterr()
    assert code == 2, out + err
    assert "Traceback" not in err
    return err.splitlines()


@pytest.mark.parametrize("name", CASES)
def test_own_data_that_are_damaged_get_one_line(name, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "mine"
    folder.mkdir()
    make, expected = CASES[name]
    make(folder)
    lines = lines_of(["run", "arrays", "fine-tuning", "--benchmark.folder", "mine"], capsys)
    assert len(lines) == 1, lines
    assert lines[0].startswith("perdure: ")
    assert lines[0].endswith((".", "?"))
    assert "'mine" in lines[0]
    for words in expected:
        assert words in lines[0], lines[0]
    assert not (tmp_path / "runs").exists()
    checked = lines_of(["data", "check", "mine"], capsys)
    assert all(line.startswith("perdure: ") for line in checked)
    assert lines[0].partition(" (and ")[0].rstrip(".") in checked[0]


def test_check_tells_all_faults_of_all_files(tmp_path, capsys):
    text(GOOD, "good.csv")(tmp_path)
    text(
        GOOD.replace("train1,train,1.5,0", "train1,train,x,0").replace("val1,val,1.5,2", "val1,val,y,2"),
        "a.csv",
    )(tmp_path)
    text(GOOD.replace(".5,", "?,"), "b.csv")(tmp_path)
    arrays("c.npz", x=nan_at(3, 1, 0))(tmp_path)
    assert main(["data", "check", str(tmp_path), "--json"]) == 2
    out, err = capsys.readouterr()
    found = json.loads(out)
    assert [task["name"] for task in found["tasks"]] == ["good"]
    assert found["failed"] == ["a", "b", "c"]
    assert err.splitlines() == [f"perdure: {fault}" for fault in found["faults"]]
    by_file = {
        name: [fault for fault in found["faults"] if f"{name}'" in fault]
        for name in ("a.csv", "b.csv", "c.npz")
    }
    assert ["row 5" in by_file["a.csv"][0], "row 31" in by_file["a.csv"][1]] == [True, True]
    assert len(by_file["a.csv"]) == 2
    assert len(by_file["b.csv"]) == 11
    assert "26 more faults" in by_file["b.csv"][-1]
    assert len(by_file["c.npz"]) == 1
    assert len(found["faults"]) == 14


@pytest.mark.parametrize("kind", ["label", "bits", "value"])
def test_a_kind_that_does_not_fit_is_refused(kind, tmp_path, capsys):
    arrays(y=np.arange(80).reshape(20, 4) % 2)(tmp_path)
    (line,) = lines_of(["data", "check", str(tmp_path), "--benchmark.kind", kind], capsys)
    assert "task.npz' has targets of kind tags" in line
    (tmp_path / "task.npz").unlink()
    text(GOOD)(tmp_path)
    if kind == "bits":
        (line,) = lines_of(["data", "check", str(tmp_path), "--benchmark.kind", kind], capsys)
        assert "cannot hold bits" in line


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["run", "arrays", "si"], "--benchmark.folder DIR"),
        (["run", "arrays", "si", "--benchmark.folder", "nowhere"], "'nowhere' does not exist"),
        (["run", "arrays", "si", "--benchmark.folder", "file"], "'file' is a file"),
        (
            ["run", "arrays", "si", "--benchmark.folder", "mine", "--benchmark.tasks", "tosk"],
            "did you mean 'task'",
        ),
        (
            ["run", "arrays", "si", "--benchmark.folder", "mine", "--benchmark.val_fraction", "0"],
            "val_fraction",
        ),
        (["run", "arrays", "si", "--benchmark.folder", "mine", "--benchmark.content", "0"], "has changed"),
        (["data", "check", "nowhere"], "'nowhere' does not exist"),
        (["data", "check", "mine", "--benchmark.kind", "lable"], "benchmark.kind"),
        (["data", "check", "mine", "--benchmark.knd", "label"], "did you mean '--benchmark.kind'"),
        (["data", "check", "mine", "--json=perhaps"], "switch"),
        (["data", "build", "nothing"], "Unknown benchmark 'nothing'"),
        (["data", "build", "copy", "--from", "mine"], "Unknown option '--from'"),
        (["data", "build", "copy", "--network.hidden", "3"], "which is not used here"),
        (["data", "list", "--data", "nowhere"], "'nowhere'"),
        (["data", "list", "mine"], "one argument too many"),
    ],
)
def test_mistakes_of_the_command_line(words, message, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine").mkdir()
    text(GOOD)(tmp_path / "mine")
    text("")(tmp_path)
    (tmp_path / "file").write_text("x")
    (line,) = lines_of(words, capsys)
    assert message in line


@pytest.mark.skipif(not PARQUET, reason="pyarrow is not installed")
@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"f": [1.0, None, 2.0, 3.0] * 5}, ["row 2", "column 'f' is NaN"]),
        ({"f": ["1"] * 20}, ["column 'f' is of type string", "numbers"]),
        ({"f": [[1.0]] * 20}, ["column 'f' is of type list"]),
        ({"label": [0.5] * 20}, ["row 1", "column 'label' holds 0.5"]),
        ({"label": None}, ["no column 'label'"]),
        ({"sequence": [None] * 20}, ["row 1", "'sequence' is empty"]),
        ({"f": None}, ["no feature"]),
    ],
)
def test_damaged_parquet(changes, expected, tmp_path, capsys):
    import pyarrow
    from pyarrow import parquet

    columns = {"sequence": list(range(20)), "f": [0.0] * 20, "label": ["a", "b"] * 10} | changes
    table = pyarrow.table({name: column for name, column in columns.items() if column is not None})
    parquet.write_table(table, tmp_path / "task.parquet")
    lines = lines_of(["data", "check", str(tmp_path)], capsys)
    for words in ["task.parquet'", *expected]:
        assert words in lines[0]


@pytest.mark.skipif(not PARQUET, reason="pyarrow is not installed")
def test_parquet_that_is_none(tmp_path, capsys):
    text("hello", "task.parquet")(tmp_path)
    (line,) = lines_of(["data", "check", str(tmp_path)], capsys)
    assert "task.parquet' cannot be read as parquet" in line


def test_without_pyarrow_the_extra_is_named(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    text("PAR1", "task.parquet")(tmp_path)
    (line,) = lines_of(["data", "check", str(tmp_path)], capsys)
    assert "pip install '.[parquet]' in a clone" in line


def damaged(content, places):
    changed = bytearray(content)
    for place, value in places:
        changed[place % len(changed)] = value
    return bytes(changed)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    form=st.sampled_from(["csv", "npz", "csv.gz"]),
    places=st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 255)), min_size=1, max_size=6),
    cut=st.integers(0, 3000),
)
def test_whatever_bytes_are_changed_there_are_tasks_or_one_sentence(form, places, cut, tmp_path):
    whole = {"csv": GOOD.encode(), "npz": npz_bytes(), "csv.gz": gzip.compress(GOOD.encode(), mtime=0)}[form]
    content = damaged(whole, places)
    (tmp_path / f"task.{form}").write_bytes(content[: len(content) - cut % len(content)])
    with contextlib.suppress(PerdureError):
        assert Arrays(folder=str(tmp_path)).build()
    (tmp_path / f"task.{form}").unlink()


def test_bombs_are_found_before_they_burst(tmp_path):
    """Small limits stand for the real ones of gigabytes."""
    packed, archive = tmp_path / "a.gz", tmp_path / "a.tar"
    packed.write_bytes(gzip.compress(bytes(100_000)))
    with pytest.raises(PerdureError, match=r"a.gz' holds more than 99999 bytes unpacked"):
        unzipped(packed, 99_999)
    assert unzipped(packed, 100_000) == bytes(100_000)
    with tarfile.open(archive, "w:gz") as file:
        member = tarfile.TarInfo("zeros")
        member.size = 100_000
        file.addfile(member, io.BytesIO(bytes(100_000)))
    with pytest.raises(PerdureError, match=r"a.tar' holds more than 99999 bytes unpacked"):
        list(tar_members(archive, largest=99_999))
    assert [len(content) for _, content in tar_members(archive, largest=100_000)] == [100_000]
    arrays("a.npz", x=np.random.default_rng(0).random((100, 100)))(tmp_path)
    with pytest.raises(PerdureError, match=r"a.npz': member 'x.npy' claims"):
        npz(tmp_path / "a.npz", largest=80_000)


@pytest.mark.parametrize("name", ["../a", "/a", "b/../../a", "c:\\..\\a"])
def test_archives_with_names_that_climb_out_are_refused(name, tmp_path):
    with tarfile.open(tmp_path / "a.tar", "w") as file:
        file.addfile(tarfile.TarInfo(name), io.BytesIO())
    with pytest.raises(PerdureError, match="points outside"):
        list(tar_members(tmp_path / "a.tar"))
