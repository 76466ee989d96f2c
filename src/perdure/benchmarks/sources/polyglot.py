"""Polyglot's pickles of word vectors, read without unpickling.

A pickle is a program for a small stack machine. Python's own machine imports what the program names and
calls it, so that an untrusted pickle can do anything. Here nothing is imported and nothing is called:
`pickletools` lists the steps without executing them, and the few that are needed for a tuple of words and one
array of numbers are executed by `_Machine`, which knows tuples, lists, strings and numbers. A call is only
noted down, with its arguments; a note that describes an array is read, any other is rejected.

`pickle.Unpickler` with a `find_class` that admits only these names would not run foreign code either, but it
is less safe: it keeps its memo in an array as long as the largest index that the program names, so that
the nine bytes 80 02 4e 72 00 87 93 03 2e make it allocate a gigabyte. Here the memo is a dictionary, and what
is built grows with the file, whose size is bounded.
"""

from __future__ import annotations

import pickletools
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from perdure.benchmarks.task import Array
from perdure.errors import PerdureError


def read_polyglot(path: Path) -> tuple[list[str], Array]:
    """Words, most frequent first, and their vectors, float32 [V, D], from a `polyglot-XX.pkl`."""
    try:
        if not path.is_file() or path.stat().st_size > LARGEST:
            raise _Refused(f"it is not a file of at most {LARGEST} bytes")
        content = _Machine().run(path.read_bytes())
        if not isinstance(content, (tuple, list)) or len(content) != 2:
            raise _Refused("it is not a pair of words and an array")
        words, table = [_text(word) for word in _items(content[0])], _array(content[1])
    except _Refused as fault:
        raise PerdureError(
            f"'{path}' is rejected: {fault}; polyglot-XX.pkl has only words and numbers."
        ) from None
    except (ValueError, IndexError, KeyError, TypeError, OSError) as error:
        raise PerdureError(
            f"'{path}' cannot be read as polyglot's pickle ({error}); download it again."
        ) from None
    if table.ndim != 2 or len(table) != len(words) or not np.isfinite(table).all():
        raise PerdureError(
            f"'{path}' has {len(words)} words and an array of shape {table.shape}; each word needs a row."
        )
    return words, table.astype(np.float32)


LARGEST = 2**29
"""Maximum size of a file in bytes; polyglot's largest has 30 million."""


class _Refused(Exception):
    """Why a pickle is rejected."""


class _Name(NamedTuple):
    """Something that would have been imported."""

    name: str


class _Call(NamedTuple):
    """A call that was not made, and the state that its result would have received."""

    name: str
    arguments: tuple[Any, ...]
    state: list[Any]


ADMITTED = {
    "numpy.core.multiarray._reconstruct",
    "numpy._core.multiarray._reconstruct",
    "numpy.ndarray",
    "numpy.dtype",
    "_codecs.encode",
}
"""Names in the pickle of an array; the last wraps bytes that Python 3 wrote for Python 2."""

_CONSTANTS = {
    "NONE": None, "NEWTRUE": True, "NEWFALSE": False, "EMPTY_TUPLE": (),
}  # fmt: skip
_VALUES = {
    "INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1",
    "UNICODE", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8",
    "BINBYTES", "SHORT_BINBYTES", "BINBYTES8",
}  # fmt: skip
_OLD_STRINGS = {"STRING", "BINSTRING", "SHORT_BINSTRING"}
"""Strings of Python 2 are bytes; `pickletools` shows them as Latin-1."""
_COUNTED = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}
_NOTHING = {"PROTO", "FRAME", "STOP"}


class _Machine:
    """Runs the steps of a pickle that build tuples, lists, strings and numbers; never imports or calls."""

    def __init__(self) -> None:
        self.stack: list[Any] = []
        self.marks: list[int] = []
        self.memo: dict[int, Any] = {}

    def run(self, content: bytes) -> Any:
        for step, argument, _ in pickletools.genops(content):
            self._take(step.name, argument)
        return self.stack.pop()

    def _take(self, step: str, argument: Any) -> None:
        if step in _VALUES:
            self.stack.append(argument)
        elif step in _CONSTANTS:
            self.stack.append(_CONSTANTS[step])
        elif step in _OLD_STRINGS:
            self.stack.append(argument.encode("latin-1"))
        elif step in _COUNTED:
            self.stack.append(tuple(self._pop(_COUNTED[step])))
        elif step not in _NOTHING:
            own = getattr(self, f"_{step.lower()}", None)
            if own is None:
                raise _Refused(f"its step {step} is not one of those that build words and an array")
            own(argument)

    def _pop(self, count: int) -> list[Any]:
        if count > len(self.stack):
            raise ValueError("the stack is empty")
        taken = self.stack[len(self.stack) - count :]
        del self.stack[len(self.stack) - count :]
        return taken

    def _since_mark(self) -> list[Any]:
        return self._pop(len(self.stack) - self.marks.pop())

    def _mark(self, _: Any) -> None:
        self.marks.append(len(self.stack))

    def _tuple(self, _: Any) -> None:
        self.stack.append(tuple(self._since_mark()))

    def _list(self, _: Any) -> None:
        self.stack.append(self._since_mark())

    def _empty_list(self, _: Any) -> None:
        self.stack.append([])

    def _append(self, _: Any) -> None:
        self._extend(self._pop(1))

    def _appends(self, _: Any) -> None:
        self._extend(self._since_mark())

    def _extend(self, items: list[Any]) -> None:
        if not isinstance(self.stack[-1], list):
            raise _Refused("it appends to something that is not a list")
        self.stack[-1].extend(items)

    def _put(self, place: int) -> None:
        self.memo[place] = self.stack[-1]

    _binput = _long_binput = _put

    def _memoize(self, _: Any) -> None:
        self.memo[len(self.memo)] = self.stack[-1]

    def _get(self, place: int) -> None:
        self.stack.append(self.memo[place])

    _binget = _long_binget = _get

    def _global(self, name: str) -> None:
        self._named(name.replace(" ", "."))

    def _stack_global(self, _: Any) -> None:
        self._named(".".join(map(str, self._pop(2))))

    def _named(self, name: str) -> None:
        if name not in ADMITTED:
            raise _Refused(f"it tries to import '{name}', which is never done")
        self.stack.append(_Name(name))

    def _reduce(self, _: Any) -> None:
        called, arguments = self._pop(2)
        if not isinstance(called, _Name) or not isinstance(arguments, tuple):
            raise _Refused("it tries to call something that is not part of an array")
        self.stack.append(_Call(called.name, arguments, []))

    def _build(self, _: Any) -> None:
        (state,) = self._pop(1)
        if not isinstance(self.stack[-1], _Call):
            raise _Refused("it tries to change something that is not part of an array")
        self.stack[-1].state.append(state)


def _items(value: Any) -> list[Any]:
    if not isinstance(value, (tuple, list)):
        raise _Refused("its words are not a list")
    return list(value)


def _text(value: Any) -> str:
    if isinstance(value, bytes):
        return value.decode("utf-8")
    if not isinstance(value, str):
        raise _Refused(f"one of its words is a {type(value).__name__}")
    return value


def _plain(value: Any) -> Any:
    """Bytes, however they were written."""
    if isinstance(value, _Call) and value.name == "_codecs.encode":
        return value.arguments[0].encode("latin-1")
    return value


def _array(note: Any) -> Array:
    """The array that the note of a call describes."""
    if not isinstance(note, _Call) or not note.name.endswith("._reconstruct") or len(note.state) != 1:
        raise _Refused("its second part is not an array")
    _, shape, dtype, columns_first, content = note.state[0]
    if not isinstance(dtype, _Call) or dtype.name != "numpy.dtype":
        raise _Refused("its array has no type")
    kind = _text(dtype.arguments[0])
    if kind not in ("f4", "f8"):
        raise _Refused(f"its array holds '{kind}', not numbers of 4 or 8 bytes")
    order = _text(dtype.state[0][1])
    flat = np.frombuffer(_plain(content), np.dtype(f"{'>' if order == '>' else '<'}{kind}"))
    return flat.reshape(shape, order="F" if columns_first else "C")
