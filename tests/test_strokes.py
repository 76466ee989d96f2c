"""From images to strokes against plain-Python oracles, the published sequences, and the files."""

from __future__ import annotations

import gzip
import os
import struct
from pathlib import Path

import numpy as np
import pytest

from perdure.benchmarks.sources.strokes_file import (
    Strokes,
    decode,
    pen_strokes,
    shipped,
    shipped_content,
)
from perdure.errors import PerdureError
from strokes import convert as converter
from strokes.bitmaps import (
    components,
    pack,
    pixels,
    thin,
    threshold,
    tips,
    unpack,
    without_specks,
)
from strokes.convert import convert, differing, regenerate, skeleton, start_points
from strokes.idx import read_digits, read_images, read_labels
from strokes.packing import encode
from strokes.tours import (
    TOURS,
    best_tours,
    closed_lengths,
    cost_matrix,
    nearest_neighbour_tours,
)

DATA = Path(os.environ.get("PERDURE_DATA") or Path(__file__).parents[2] / "shared" / "data")


def needs(*parts):
    path = DATA.joinpath(*parts)
    if not path.exists():
        pytest.skip(f"needs {'/'.join(parts)} in the data folder (PERDURE_DATA)")
    return path


@pytest.fixture(scope="module")
def digits():
    return shipped()


# Plain-Python oracles on sets of black pixels (row, column).


def around(pixel, four=False):
    row, column = pixel
    steps = [(r, c) for r in (-1, 0, 1) for c in (-1, 0, 1) if (r, c) != (0, 0)]
    return [(row + r, column + c) for r, c in steps if not four or r == 0 or c == 0]


def islands(black, four=False):
    """The connected components of a set of pixels, by flood fill."""
    rest, found = set(black), []
    while rest:
        island, border = set(), [rest.pop()]
        while border:
            pixel = border.pop()
            island.add(pixel)
            for other in around(pixel, four):
                if other in rest:
                    rest.remove(other)
                    border.append(other)
        found.append(island)
    return found


def thinned(black, height, width):
    """Two iterations of Zhang and Suen's thinning, by their definition."""
    black = set(black)
    ring = [(-1, 0), (-1, 1), (0, 1), (1, 1), (1, 0), (1, -1), (0, -1), (-1, -1)]
    for _ in range(2):
        for first in (True, False):
            removed = set()
            for row, column in black:
                if row in (0, height - 1) or column in (0, width - 1):
                    continue
                p = [int((row + r, column + c) in black) for r, c in ring]
                changes = sum(p[k] == 0 and p[(k + 1) % 8] == 1 for k in range(8))
                p2, p4, p6, p8 = p[0], p[2], p[4], p[6]
                products = (p2 * p4 * p6, p4 * p6 * p8) if first else (p2 * p4 * p8, p2 * p6 * p8)
                if 2 <= sum(p) <= 6 and changes == 1 and products == (0, 0):
                    removed.add((row, column))
            black -= removed
    return black


def black_of(image):
    return {(int(row), int(column)) for row, column in zip(*np.nonzero(image), strict=True)}


def level_of(image):
    """The threshold of one grey image, by the rule."""

    def facts(level):
        black = black_of(image > level)
        return len(black), len(islands(black, four=True)), len(islands(black))

    first, level = facts(0), 0
    while True:
        count, *parts = facts(level)
        if count < first[0] / 2 or parts != list(first[1:]) or level >= 250:
            return max(0, level - 25)
        level += 25


def start_of(black):
    """The pen's first point, by the rule."""
    ends = [p for p in sorted(black) if len(set(around(p)) & black) <= 1]
    candidates = ends or sorted(black, key=lambda p: (p[1], p[0]))
    return min(candidates, key=sum)  # min keeps the first of equals


def random_bitmaps(count, height=13, width=17, seed=0):
    chance = np.random.default_rng(seed)
    density = chance.uniform(0.1, 0.9, size=(count, 1, 1))
    return chance.random((count, height, width)) < density


def blobs(count, seed=0, size=28):
    """Grey images somewhat like handwriting: thick random walks of varying darkness."""
    chance = np.random.default_rng(seed)
    images = np.zeros((count, size, size), dtype=np.uint8)
    for image in images:
        for _ in range(chance.integers(1, 4)):
            row, column = chance.integers(3, size - 3, size=2)
            for _ in range(25):
                row, column = np.clip(np.add((row, column), chance.integers(-2, 3, size=2)), 1, size - 2)
                patch = image[row - 1 : row + 2, column - 1 : column + 2]
                np.maximum(patch, chance.integers(1, 256, size=patch.shape, dtype=np.uint8), out=patch)
                image[row, column] = 255
    return images


SERPENT = """
#########
........#
#########
#........
#########
........#
#.#######
#.#.....#
###.#####
"""


@pytest.mark.parametrize("connectivity", [4, 8])
def test_components_are_those_of_a_flood_fill(connectivity):
    images = random_bitmaps(150)
    expected = [len(islands(black_of(image), four=connectivity == 4)) for image in images]
    assert components(pack(images), connectivity).tolist() == expected
    assert len(set(expected)) > 20
    serpent = np.array([[c == "#" for c in line] for line in SERPENT.split()])
    tricky = np.stack([serpent, serpent.T, serpent[::-1], serpent[:, ::-1], ~serpent, np.eye(9, dtype=bool)])
    expected = [len(islands(black_of(image), four=connectivity == 4)) for image in tricky]
    assert components(pack(tricky), connectivity).tolist() == expected


@pytest.mark.parametrize("width", [1, 9, 28, 32])
def test_packing_is_undone_by_unpacking(width):
    images = random_bitmaps(10, width=width)
    assert np.array_equal(unpack(pack(images), width), images)
    assert pixels(pack(images)).tolist() == images.sum((1, 2)).tolist()


@pytest.mark.parametrize("width", [17, 28, 32])
def test_thinning_is_that_of_zhang_and_suen(width):
    images = random_bitmaps(120, width=width, seed=1)
    made = unpack(thin(pack(images), width), width)
    for image, result in zip(images, made, strict=True):
        assert black_of(result) == thinned(black_of(image), *image.shape)
    assert made.sum() < images.sum()


def test_specks_and_tips_are_those_of_a_flood_fill():
    images = random_bitmaps(200, seed=2) & random_bitmaps(200, seed=3)
    clean, ends = unpack(without_specks(pack(images)), 17), unpack(tips(pack(images)), 17)
    for image, kept, end in zip(images, clean, ends, strict=True):
        black = black_of(image)
        large = [island for island in islands(black) if len(island) > 2]
        assert black_of(kept) == set().union(*large)
        assert black_of(end) == {p for p in black if len(set(around(p)) & black) <= 1}


def test_thresholds_follow_the_rule():
    images = blobs(60)
    levels = [level_of(image) for image in images]
    assert len(set(levels)) > 4
    expected = np.stack([image > level for image, level in zip(images, levels, strict=True)])
    assert np.array_equal(unpack(threshold(images), 28), expected)


def test_images_all_black_or_nearly_white():
    images = np.full((2, 6, 6), 255, dtype=np.uint8)
    images[1] = 3  # falls below half at the first look above 0
    assert unpack(threshold(images), 6).all()


def test_the_start_follows_the_rule():
    images = random_bitmaps(200, seed=4)
    images[:, 6, 8] = True  # none is empty
    images[0] = False
    images[0, 3:8, 5:9] = True  # a block has no tips; corner (3, 5)
    images[1] = False
    for pixel in [(2, 4), (3, 3), (4, 3), (5, 4), (5, 5), (4, 6), (3, 6), (2, 5)]:
        images[1][pixel] = True  # a ring: no tips, and (2, 4), (3, 3) equally near to the corner
    assert start_of(black_of(images[1])) == (3, 3)
    for image, number in zip(images, start_points(images), strict=True):
        row, column = np.nonzero(image)
        assert (row[number], column[number]) == start_of(black_of(image))


def random_points(seed, images=20, count=15, size=12):
    chance = np.random.default_rng(seed)
    places = np.stack([chance.choice(size**2, count, replace=False) for _ in range(images)])
    points = np.stack([places % size, places // size], axis=2) + 1
    return points, chance.integers(count, size=images), chance.random((images, count, TOURS))


def cost(one, other):
    return abs(int(one[0]) - int(other[0])) ** 3 + abs(int(one[1]) - int(other[1])) ** 3


def test_each_step_of_a_tour_goes_to_a_nearest_point_and_the_best_tour_wins():
    points, start, draws = random_points(0)
    costs = cost_matrix(points)
    tours = nearest_neighbour_tours(costs, start, draws)
    lengths, best = closed_lengths(costs, tours), best_tours(points, start, draws)
    different = 0
    for place, begin, orders, closed, chosen in zip(points, start, tours, lengths, best, strict=True):
        for order, length in zip(orders, closed, strict=True):
            assert order[0] == begin
            assert sorted(order) == list(range(len(place)))
            for step in range(1, len(order)):
                ahead = [cost(place[order[step - 1]], place[p]) for p in order[step:]]
                assert ahead[0] == min(ahead)
            visited = place[order]
            pairs = zip(visited, np.roll(visited, -1, axis=0), strict=True)
            assert length == sum(cost(one, other) for one, other in pairs)
        assert any((chosen == order).all() for order in orders)
        assert closed[[(chosen == order).all() for order in orders].index(True)] == min(closed)
        different += len({tuple(order) for order in orders}) > 1
    assert different > 10  # ties were met, and chance decided them


def test_costs_fit_their_type():
    assert cost_matrix(np.array([[[1, 1], [32, 32]]]))[0, 0, 1] == 2 * 31**3 < 0xFFFF


def test_ties_are_decided_evenly():
    points = np.array([[[5, 5], [4, 5], [6, 5], [5, 4], [5, 6]]])
    draws = np.random.default_rng(0).random((1, 5, 4000))
    tours = nearest_neighbour_tours(cost_matrix(points), np.array([0]), draws)[0]
    counts = np.bincount(tours[:, 1], minlength=5)
    assert counts[0] == 0
    assert np.abs(counts[1:] - 1000).max() < 5 * np.sqrt(4000 * 0.25 * 0.75)


def test_rows_by_hand():
    moves = np.array([(5, 8), (1, -1), (2, 0), (0, 1), (0, 3), (2, 3), (0, 1), (1, 1)], dtype=np.int8)
    strokes = pen_strokes(moves, np.array([5, 3]), np.array([7, 1], dtype=np.uint8))
    assert strokes.digit(0).tolist() == [
        [5, 8, 0, 0],
        [1, -1, 0, 0],
        [0, 0, 1, 0],
        [2, 0, 0, 0],
        [0, 1, 0, 0],
        [0, 3, 0, 0],  # the pen is not lifted before the last point
        [0, 0, 1, 1],
    ]
    assert strokes.digit(1).tolist() == [[2, 3, 0, 0], [0, 1, 0, 0], [1, 1, 0, 0], [0, 0, 1, 1]]
    assert strokes.lengths.tolist() == [7, 4]


def points_of(rows):
    return np.cumsum(rows[rows[:, 2] == 0][:, :2].astype(int), axis=0)


def test_converted_images_keep_their_points_in_a_valid_order():
    images = blobs(40, seed=5)
    strokes = convert(images, np.arange(40, dtype=np.uint8) % 10, np.random.default_rng(3))
    for number, black in enumerate(skeleton(images)):
        points = points_of(strokes.digit(number))
        pixels_ = black_of(black)
        assert sorted(map(tuple, points)) == sorted((c + 1, r + 1) for r, c in pixels_)
        row, column = start_of(pixels_)
        assert tuple(points[0]) == (column + 1, row + 1)
        for step in range(1, len(points)):
            ahead = [cost(points[step - 1], other) for other in points[step:]]
            assert ahead[0] == min(ahead)


def test_the_first_digits_are_the_same_whatever_follows(monkeypatch):
    images, labels = blobs(30, seed=6), np.zeros(30, dtype=np.uint8)
    whole = convert(images, labels, np.random.default_rng(9))
    monkeypatch.setattr(converter, "CHUNK", 7)
    told = []
    part = convert(images[:20], labels[:20], np.random.default_rng(9), lambda *news: told.append(news))
    assert np.array_equal(part.rows, whole.slice(0, 20).rows)
    assert told == [("strokes", done, 20) for done in (0, 7, 14, 20)]


def test_images_without_strokes_are_named():
    images = blobs(3)
    images[1] = 0
    images[1, 5, 5] = 200
    with pytest.raises(PerdureError, match=r"Image 1 .* has no stroke"):
        convert(images, np.zeros(3, dtype=np.uint8), np.random.default_rng(0))
    with pytest.raises(PerdureError, match="at most 32 x 32"):
        convert(np.zeros((1, 40, 40), dtype=np.uint8), np.zeros(1), np.random.default_rng(0))


# Files.


def idx(values):
    values = np.asarray(values, dtype=np.uint8)
    return struct.pack(f">{1 + values.ndim}I", 0x800 | values.ndim, *values.shape) + values.tobytes()


def mnist_folder(folder, train=12, test=5):
    folder.mkdir()
    for part, count, seed in (("train", train, 1), ("t10k", test, 2)):
        (folder / f"{part}-images-idx3-ubyte.gz").write_bytes(gzip.compress(idx(blobs(count, seed))))
        (folder / f"{part}-labels-idx1-ubyte").write_bytes(idx(np.arange(count) % 10))
    return folder


def test_idx_files_are_read_zipped_or_not(tmp_path):
    digits = read_digits(mnist_folder(tmp_path / "mnist"), "train")
    assert np.array_equal(digits.images, blobs(12, 1))
    assert digits.labels.tolist() == [*range(10), 0, 1]


def packed(content):
    """As a gzip file without the time in it."""
    return gzip.compress(content, mtime=0)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "ends after 0 bytes"),
        (idx([1, 2])[:7], "ends after 7 bytes"),
        (idx([[1, 2]]), "begins with 0x00000802; .* begins with 0x00000801"),
        (idx([1, 2, 3])[:-1], "is cut off: .* 3 = 3 bytes, but 2 follow"),
        (idx([1, 2, 3]) + b"x", "bytes to spare: .* 3 bytes, but 4 follow"),
        (packed(idx([1, 2, 3]) + b"x"), "bytes to spare"),
        (packed(idx(range(10)))[:-9], "gzip file that is cut off"),
        (packed(idx(range(10))) + b"garbage", "cut off or damaged"),
        (packed(idx(range(10)))[:12] + b"\xff\xff\xff\xff\xff\xff\xff\xff", "cut off or damaged"),
        (idx([3, 10, 4]), "label 1 .* is 10; labels are digits from 0 to 9"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",  # contents would be names of tests otherwise
)
def test_faulty_idx_files_are_named(tmp_path, content, message):
    path = tmp_path / "some-labels"
    path.write_bytes(content)
    with pytest.raises(PerdureError, match=message) as caught:
        read_labels(path)
    assert "some-labels" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_faulty_folders_are_named(tmp_path):
    with pytest.raises(PerdureError, match=r"has no file 'train-images-idx3-ubyte\.gz'"):
        read_digits(tmp_path, "train")
    with pytest.raises(PerdureError, match="cannot be read"):
        read_images(tmp_path / "nothing")
    folder = mnist_folder(tmp_path / "mnist")
    (folder / "t10k-labels-idx1-ubyte").write_bytes(idx([1, 2]))
    with pytest.raises(PerdureError, match="5 images but 't10k-labels-idx1-ubyte' beside it 2 labels"):
        read_digits(folder, "test")


def same(one, other):
    return all(np.array_equal(getattr(one, n), getattr(other, n)) for n in ("rows", "lengths", "labels"))


def test_the_compact_file_loses_nothing(tmp_path):
    folder = mnist_folder(tmp_path / "mnist")
    content = regenerate(folder)
    assert regenerate(folder) == content
    parts = decode(content, "made")
    for number, (name, count) in enumerate((("train", 12), ("test", 5))):
        source = read_digits(folder, name)
        chance = np.random.Generator(np.random.PCG64([converter.SEED, number]))
        expected = convert(source.images, source.labels, chance)
        assert same(parts[name], expected)
        assert len(parts[name]) == count
    assert same(decode(encode(parts), "again")["test"], parts["test"])


def test_damaged_files_are_named(tmp_path):
    content = regenerate(mnist_folder(tmp_path / "mnist"))
    middle = len(content) // 2
    for fault in (
        b"",
        content[:middle],
        content[:middle] + b"\0\0\0" + content[middle + 3 :],
        b"what is this",
    ):
        with pytest.raises(PerdureError, match=r"'old\.xz' is not a valid strokes file") as caught:
            decode(fault, "old.xz")
        assert "\n" not in str(caught.value)


def test_differences_are_counted(tmp_path, digits, monkeypatch):
    few = {part: strokes.slice(0, 50) for part, strokes in digits.items()}
    monkeypatch.setattr(converter, "shipped", lambda: few)
    assert differing(encode(few)) == 0
    rows, labels = few["train"].rows.copy(), few["test"].labels.copy()
    rows[1 + few["train"].offsets[7]] *= -1
    labels[3] += 1
    moved = Strokes(rows, few["train"].lengths, few["train"].labels)
    named = Strokes(few["test"].rows, few["test"].lengths, labels)
    assert differing(encode(few | {"train": moved})) == 1
    assert differing(encode({"train": moved, "test": named})) == 2
    assert differing(encode(few | {"test": few["test"].slice(0, 45)})) == 5


def test_the_shipped_file_is_all_of_mnist(digits):
    assert len(shipped_content()) < 2_000_000
    frequencies = {
        "train": [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949],
        "test": [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009],
    }
    for part, expected in frequencies.items():
        strokes = digits[part]
        assert np.bincount(strokes.labels).tolist() == expected
        ends = strokes.lengths.cumsum() - 1
        assert np.array_equal(np.flatnonzero(strokes.rows[:, 3]), ends)
        assert not strokes.rows[strokes.rows[:, 2] == 1, :2].any()
        points = strokes.rows.astype(int)[:, :2].cumsum(axis=0)
        points -= np.repeat(
            points[strokes.offsets] - strokes.rows[strokes.offsets, :2], strokes.lengths, axis=0
        )
        assert points.min() >= 1
        assert points.max() <= 28
    assert 35 < digits["train"].lengths.mean() < 45


# Real data, where it is there.


def test_the_shipped_digits_come_from_mnist(digits):
    folder = needs("mnist")
    for number, part in enumerate(("train", "test")):
        source = read_digits(folder, part)
        chance = np.random.Generator(np.random.PCG64([converter.SEED, number]))
        made = convert(source.images[:400], source.labels[:400], chance)
        assert same(made, digits[part].slice(0, 400))
        assert np.array_equal(source.labels, digits[part].labels)


@pytest.mark.parametrize("number", [2, 12, 13, 25, 58])
def test_published_examples_come_out(number):
    from matplotlib.image import imread

    folder = needs("smnist", "fig")
    grey = (imread(folder / f"trainimg-{number}-input.png") * 255).round().astype(np.uint8)
    assert grey.shape == (28, 28)
    chosen = threshold(grey[None])
    for bitmap, name in ((chosen, "thresholded"), (thin(chosen, 28), "thinned")):
        picture = imread(folder / f"trainimg-{number}-{name}.png") > 0
        assert np.array_equal(unpack(bitmap, 28)[0], picture)
    rows = np.loadtxt(folder / f"trainimg-{number}-inputdata.txt", dtype=int)
    tries = convert(np.repeat(grey[None], 30, axis=0), np.zeros(30), np.random.default_rng(0))
    assert any(np.array_equal(rows, tries.digit(number)) for number in range(30))
    assert {tuple(point) for point in points_of(rows)} == {tuple(p) for p in points_of(tries.digit(0))}


def test_agreement_with_the_published_sequences(digits):
    """Points and start are the same; the order is, where chance decided alike."""
    with np.load(needs("smnist", "smnist.npz"), allow_pickle=False) as file:
        published = Strokes(file["x_test"], file["len_test"].astype(np.int64), file["y_test"])
    ours, theirs = digits["test"], published
    equal = alike = 0
    for number in range(0, 10_000, 20):
        one, other = ours.digit(number), theirs.digit(number)
        alike += np.array_equal(one, other)
        first, second = points_of(one), points_of(other)
        equal += sorted(map(tuple, first)) == sorted(map(tuple, second)) and (first[0] == second[0]).all()
    assert equal >= 0.995 * 500
    assert alike >= 0.85 * 500
