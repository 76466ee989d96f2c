"""A tagger that learns languages one by one, and rehearses a few sentences of the old ones.

Treebanks as ud/pos_tsv.tar.xz below PERDURE_DATA: LANGUAGE/train.tsv and test.tsv, a word and its tag per
line, an empty line between sentences. A word is the sum of fixed random vectors of its pieces of three
letters.
"""

import os
import tarfile
import zlib
from pathlib import Path

import numpy as np

import perdure

PATH = Path(os.environ.get("PERDURE_DATA", "data")) / "ud" / "pos_tsv.tar.xz"
SIZE = 64


def vector(word: str) -> np.ndarray:
    """A fixed vector [64] of a word."""
    framed = f"<{word}>"
    pieces = [framed, *(framed[n : n + 3] for n in range(len(framed) - 2))]
    drawn = [np.random.default_rng(zlib.crc32(piece.encode())).normal(size=SIZE) for piece in pieces]
    return (sum(drawn) / len(drawn) ** 0.5).astype(np.float32)


def sentences(
    text: str, most: int, vectors: dict[str, np.ndarray]
) -> tuple[list[np.ndarray], list[list[str]]]:
    """Sequences of word vectors, and their tags."""
    x, y = [], []
    for block in text.split("\n\n")[:most]:
        pairs = [line.split("\t") for line in block.splitlines() if "\t" in line]
        if pairs:
            for word, _ in pairs:
                if word not in vectors:
                    vectors[word] = vector(word)
            x.append(np.stack([vectors[word] for word, _ in pairs]))
            y.append([tag for _, tag in pairs])
    return x, y


def main(
    languages: tuple[str, ...] = ("en", "fi", "pl"), most: int = 1000, iterations: int = 300
) -> perdure.ContinualLearner | None:
    """Learn one language after the other."""
    if not PATH.exists():
        print(f"There is no '{PATH}'; set PERDURE_DATA to the folder with ud/pos_tsv.tar.xz.")
        return None
    with tarfile.open(PATH) as archive:
        wanted = {f"pos_tsv/{language}/{split}.tsv" for language in languages for split in ("train", "test")}
        found = {m.name: archive.extractfile(m).read().decode() for m in archive if m.name in wanted}
    learner = perdure.ContinualLearner(
        "coresets",
        network={"cell": "lstm", "hidden": 32, "bidirectional": True},
        training={"iterations": iterations},
        verbose=0,
    )
    held_out, vectors = {}, {}
    for language in languages:
        train, test = (
            sentences(found[f"pos_tsv/{language}/{split}.tsv"], most, vectors) for split in ("train", "test")
        )
        tags = {tag for one in train[1] for tag in one}
        test = (
            test[0],
            [[tag if tag in tags else None for tag in one] for one in test[1]],
        )  # unknown: ignored
        learner.learn(language, *train)
        held_out[language] = test
        scores = learner.score(held_out)
        print(f"after {language}:", {each: round(score, 1) for each, score in scores.items()})
    return learner


if __name__ == "__main__":
    main()
