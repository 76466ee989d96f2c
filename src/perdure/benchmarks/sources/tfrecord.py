"""TFRecord files of AudioSet's official features, read without TensorFlow.

A TFRecord file is a sequence of records: the length (8 bytes, little-endian), a masked CRC32C of these bytes,
the content, a masked CRC32C of it. The content is a SequenceExample, a protocol-buffer message:

    SequenceExample  1: Features context        2: FeatureLists feature_lists
    Features         1: map name -> Feature     FeatureLists  1: map name -> FeatureList
    FeatureList      1: repeated Feature        a map's entry 1: key  2: value
    Feature          1: BytesList               2: FloatList  3: Int64List, each with 1: repeated value
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from perdure.benchmarks.task import Array
from perdure.errors import PerdureError

FEATURES = 128
"""Bytes of one frame of an embedding."""
USUAL = b"\x0a\x86\x01\x0a\x83\x01\x0a\x80\x01"
"""The usual bytes before a frame: Feature, BytesList and value, with their lengths."""
POLYNOMIAL = 0x82F63B78
"""Castagnoli's polynomial, with its bits reversed."""
MASK = 0xA282EAD8
"""Added to a rotated CRC, since the CRC of data that contain CRCs is weak."""
BLOCK = 2048
"""Number of bytes whose CRC is computed at once; the table for them takes BLOCK kilobytes."""
HEADER = struct.Struct("<QI")
"""Length of a record and the masked CRC of the length."""
FOOTER = struct.Struct("<I")
"""Masked CRC of a record's content."""
VARINT, FIXED64, DELIMITED, FIXED32 = 0, 1, 2, 5
"""Wire types of protocol buffers; 3 and 4 (groups) are deprecated and rejected."""
BYTES, FLOATS, INTEGERS = 1, 2, 3
KINDS = {BYTES: "byte strings", FLOATS: "floats", INTEGERS: "integers"}
"""The kinds of a Feature's values, by field number."""
LONGEST = 10
"""Bytes of the longest varint."""


@dataclass(frozen=True)
class Clip:
    """One clip: its video, its human labels, and its embedding uint8 [T, 128]."""

    video: str
    labels: tuple[int, ...]
    frames: Array
    start: float | None = None
    """Where the clip begins in the video, in seconds, if known."""
    end: float | None = None
    """Where it ends."""


class _Fault(Exception):
    """What is wrong with a record; the caller adds where."""


def read_clips(content: bytes, name: str) -> Iterator[Clip]:
    """The clips of a TFRecord file; `name` is used in error messages."""
    for number, record in enumerate(records(content, name), 1):
        try:
            yield sequence_example(record)
        except _Fault as fault:
            raise _broken(name, number, fault) from None


def records(content: bytes, name: str) -> Iterator[memoryview]:
    """The contents of a TFRecord file's records, each checked against its CRC."""
    view, place, number = memoryview(content), 0, 0
    while place < len(view):
        number += 1
        try:
            record, place = _record(view, place)
        except _Fault as fault:
            raise _broken(name, number, fault) from None
        yield record


def _broken(name: str, number: int, fault: _Fault) -> PerdureError:
    return PerdureError(f"'{name}', record {number}: {fault}; the file is damaged, download it again.")


def _record(view: memoryview, place: int) -> tuple[memoryview, int]:
    """The record at a position, and the position of the next one."""
    if len(view) - place < HEADER.size:
        raise _Fault(
            f"its header should have {HEADER.size} bytes, but the file ends after {len(view) - place}"
        )
    length, header_crc = HEADER.unpack_from(view, place)
    if masked(crc32c(view[place : place + 8])) != header_crc:
        raise _Fault("the CRC of its length does not match")
    begin = place + HEADER.size
    if len(view) - begin < length + FOOTER.size:
        there = max(len(view) - begin - FOOTER.size, 0)
        raise _Fault(f"it should have {length} bytes, but the file ends after {there}")
    record = view[begin : begin + length]
    (crc,) = FOOTER.unpack_from(view, begin + length)
    if masked(crc32c(record)) != crc:
        raise _Fault("the CRC of its content does not match")
    return record, begin + length + FOOTER.size


def masked(crc: int) -> int:
    """A CRC as TFRecord files store it."""
    return ((crc >> 15 | crc << 17) + MASK) & 0xFFFFFFFF


def crc32c(data: bytes | memoryview) -> int:
    """The CRC32C of data: block by block, each with one table look-up and one XOR over all bytes.

    A CRC is linear: each byte adds a value that depends on it and on how many bytes follow. The state
    before a block is treated as if it were part of the block's first four bytes.
    """
    table, values = _table(), np.frombuffer(data, np.uint8)
    state = 0xFFFFFFFF
    for start in range(0, len(values), BLOCK):
        block = values[start : start + BLOCK].astype(np.intp)
        first = min(4, len(block))
        block[:first] ^= [state >> 8 * n & 0xFF for n in range(first)]
        block += _offsets()[BLOCK - len(block) :]
        state = state >> 8 * first ^ int(np.bitwise_xor.reduce(table.take(block)))
    return state ^ 0xFFFFFFFF


@lru_cache(1)
def _offsets() -> Array:
    """Where the values of each byte of a block begin in the table: those of the last byte come first."""
    return np.arange(BLOCK - 1, -1, -1, dtype=np.intp) * 256


@lru_cache(1)
def _table() -> Array:
    """What a byte adds to the CRC if n bytes follow: uint32 [BLOCK * 256], at 256 n + byte."""
    table = np.empty((BLOCK, 256), np.uint32)
    values: Array = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        values = values >> 1 ^ (values & 1) * np.uint32(POLYNOMIAL)
    table[0] = values
    for number in range(1, BLOCK):
        values = values >> 8 ^ table[0][values & 0xFF]
        table[number] = values
    return table.reshape(-1)


def sequence_example(record: memoryview) -> Clip:
    """The clip that a SequenceExample describes."""
    context: dict[bytes, memoryview] = {}
    lists: dict[bytes, memoryview] = {}
    for message in _messages(record, 1, "context"):
        context |= _mapping(message, "context")
    for message in _messages(record, 2, "feature_lists"):
        lists |= _mapping(message, "feature_lists")
    for needed, where in ((b"video_id", context), (b"labels", context), (b"audio_embedding", lists)):
        if needed not in where:
            raise _Fault(f"it has no '{needed.decode()}'")
    (video,) = _bytes_list(context[b"video_id"], "video_id", 1)
    try:
        named = bytes(video).decode()
    except UnicodeDecodeError:
        raise _Fault("its 'video_id' is not UTF-8 text") from None
    return Clip(
        named,
        tuple(_integers(context[b"labels"], "labels")),
        _frames(lists[b"audio_embedding"]),
        _seconds(context, "start_time_seconds"),
        _seconds(context, "end_time_seconds"),
    )


def _frames(feature_list: memoryview) -> Array:
    """The embedding, uint8 [T, 128]."""
    if len(feature_list) % (len(USUAL) + FEATURES) == 0:  # as in all official files: much faster
        rows = np.frombuffer(feature_list, np.uint8).reshape(-1, len(USUAL) + FEATURES)
        if (rows[:, : len(USUAL)] == np.frombuffer(USUAL, np.uint8)).all():
            return rows[:, len(USUAL) :].copy()
    frames = []
    for number, feature in enumerate(_messages(feature_list, 1, "audio_embedding"), 1):
        (frame,) = _bytes_list(feature, "audio_embedding", 1)
        if len(frame) != FEATURES:
            raise _Fault(f"frame {number} has {len(frame)} bytes, but must have {FEATURES}")
        frames.append(frame)
    return np.frombuffer(b"".join(frames), np.uint8).reshape(-1, FEATURES)


def _mapping(message: memoryview, what: str) -> dict[bytes, memoryview]:
    """A map from names to messages; as the format specifies, a later entry replaces an earlier one."""
    result: dict[bytes, memoryview] = {}
    for entry in _messages(message, 1, what):
        key, value = memoryview(b""), memoryview(b"")
        for number, wire, content in _fields(entry):
            if number in (1, 2) and wire != DELIMITED:
                raise _Fault(f"an entry of '{what}' has wire type {wire}, but must have {DELIMITED}")
            key, value = (content if number == 1 else key), (content if number == 2 else value)
        result[bytes(key)] = value
    return result


def _lists(feature: memoryview, kind: int, what: str) -> Iterator[memoryview]:
    """The lists of a feature, which must be of the given kind."""
    for number, wire, content in _fields(feature):
        if number in KINDS and (number != kind or wire != DELIMITED):
            raise _Fault(
                f"'{what}' must be a list of {KINDS[kind]}, but has field {number}, wire type {wire}"
            )
        if number == kind:
            yield content


def _bytes_list(feature: memoryview, what: str, count: int) -> list[memoryview]:
    """The values of a feature that is a BytesList of `count` entries."""
    values = [v for part in _lists(feature, BYTES, what) for v in _messages(part, 1, what)]
    if len(values) != count:
        raise _Fault(f"'{what}' has {len(values)} byte strings, but must have {count}")
    return values


def _integers(feature: memoryview, what: str) -> list[int]:
    """The values of a feature that is an Int64List, packed or one by one."""
    values: list[int] = []
    for part in _lists(feature, INTEGERS, what):
        for number, wire, content in _fields(part):
            if number != 1:
                continue
            if wire not in (VARINT, DELIMITED):
                raise _Fault(f"'{what}' has wire type {wire}, but must have {VARINT} or {DELIMITED}")
            place = 0
            while place < len(content):
                value, place = _varint(content, place)
                values.append(value - (value >> 63 << 64))
    return values


def _seconds(context: dict[bytes, memoryview], what: str) -> float | None:
    """The only value of a feature that is a FloatList, packed or not; None if it is missing."""
    feature = context.get(what.encode())
    if feature is None:
        return None
    values: list[float] = []
    for part in _lists(feature, FLOATS, what):
        for number, wire, content in _fields(part):
            if number != 1:
                continue
            if wire not in (FIXED32, DELIMITED) or len(content) % 4:
                raise _Fault(f"'{what}' is not a list of floats")
            values += struct.unpack(f"<{len(content) // 4}f", content)
    if len(values) != 1:
        raise _Fault(f"'{what}' has {len(values)} numbers, but must have 1")
    return values[0]


def _messages(message: memoryview, wanted: int, what: str) -> Iterator[memoryview]:
    """The contents of all fields with a number, which must be length-delimited; others are skipped."""
    for number, wire, content in _fields(message):
        if number == wanted:
            if wire != DELIMITED:
                raise _Fault(f"'{what}' has wire type {wire}, but must have {DELIMITED}")
            yield content


def _fields(message: memoryview) -> Iterator[tuple[int, int, memoryview]]:
    """Number, wire type and content of each field; the content of a varint is its own bytes."""
    place, stop = 0, len(message)
    while place < stop:
        key, place = _varint(message, place)
        wire = key & 7
        if wire == DELIMITED:
            length, place = _varint(message, place)
        elif wire == VARINT:
            length = _varint(message, place)[1] - place
        elif wire in (FIXED32, FIXED64):
            length = 4 if wire == FIXED32 else 8
        else:
            raise _Fault(f"a field has wire type {wire}, which is not supported")
        if length > stop - place:
            raise _Fault(f"a field of {length} bytes does not fit in the {stop - place} remaining bytes")
        yield key >> 3, wire, message[place : place + length]
        place += length


def _varint(message: memoryview, place: int) -> tuple[int, int]:
    """The number at a position, seven bits per byte, and the position after it."""
    if place < len(message) and message[place] < 0x80:  # most numbers are this small
        return message[place], place + 1
    value = 0
    for count, byte in enumerate(message[place : place + LONGEST]):
        value |= (byte & 0x7F) << 7 * count
        if byte < 0x80:
            return value & 0xFFFFFFFFFFFFFFFF, place + count + 1
    raise _Fault("a number is cut off or longer than ten bytes")
