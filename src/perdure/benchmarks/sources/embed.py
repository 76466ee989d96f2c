"""Word vectors learnt from the training text itself, and a sub-word model for out-of-vocabulary words.

1. Each word of the text has a row of counts: which words occur one and two positions before and after it.
   Positions are counted separately, which is what distinguishes a noun from a verb. Counts become positive
   pointwise mutual information, PPMI = max(0, log p(w, c) / p(w) p(c)), with p(c) raised to 0.75 (Levy and
   Goldberg 2015).
2. The same is done for features of its form: prefixes, suffixes, shape and length.
3. A truncated singular value decomposition of both gives vectors E.
4. A ridge regression predicts E from the features of the form alone: P.
5. A word that occurs c times gets the vector (c E + prior P) / (c + prior), so an unseen word gets P;
   all are scaled to the same length.
Tags are not used. The result depends only on text, options and seed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from perdure.benchmarks.sources.vectors import without_digits
from perdure.benchmarks.task import Array

SMOOTHING = 0.75
"""Exponent of the frequency of contexts; below 1, rare contexts do not look too informative."""
POWER = 0.5
"""Exponent of the singular values in the vectors."""
RIDGE = 10.0
"""Strength of the ridge regression."""
PRIOR = 10.0
"""How many occurrences the prediction from the form is worth."""
DOUBT = 2.0
"""A word that occurs c times has weight c / (c + DOUBT) in the regression."""
SPREAD = 1.5
"""Root mean square of the entries of a vector."""
ENDINGS, BEGINNINGS = 4, 3
"""The longest suffix and prefix of a word used as features."""
SHARED = 5
"""Number of words that must share a feature for it to be used."""
MOST_FEATURES = 3000
"""Maximum number of features; the most frequent ones are kept."""
LONG = 8
"""Words with at least this many letters count as equally long."""
NEGLIGIBLE = 1e-5
"""Singular values below this fraction of the largest count as zero."""
OVERSAMPLING, SWEEPS = 16, 4
"""Extra columns, and passes over the matrix, in the decomposition."""

Sparse = Any
"""A scipy.sparse matrix; scipy is imported where it is used, since that takes a while."""


@dataclass(frozen=True)
class Recipe:
    """Options of the vectors."""

    dimensions: int = 64
    window: int = 2
    """Positions before and after a word that count."""
    contexts: int = 2000
    """Number of most frequent words that are distinguished as neighbours."""
    minimum: int = 3
    """Minimum number of occurrences for a word to take part in the decomposition."""
    seed: int = 42


class Lexicon(NamedTuple):
    """Words, most frequent first, their vectors [V, D], and a guess for out-of-vocabulary words."""

    words: list[str]
    table: Array
    guess: Callable[[Sequence[str]], Array]


class FormModel:
    """Predicts the vector of a word from its form."""

    def __init__(self, words: Sequence[str], vectors: Array, weights: Array | None = None) -> None:
        """Fit a ridge regression to the vectors [V, D] of words; weights [V] say how much each is trusted."""
        self.features = FormFeatures(words)
        design = self.features.design(words)
        self.coefficients = ridge(design, vectors, np.ones(len(words)) if weights is None else weights)

    def __call__(self, words: Sequence[str]) -> Array:
        """Vectors, float32 [len(words), D]."""
        plain = [without_digits(word) for word in words]
        return np.asarray(self.features.design(plain) @ self.coefficients, np.float32)


def learn_lexicon(sentences: Iterable[Sequence[str]], recipe: Recipe) -> Lexicon:
    """The words of a text with vectors learnt from it; digits are replaced by #."""
    words, counts, text = number(sentences, recipe.window)
    vectors = contextual(words, counts, text, recipe)
    predict = FormModel(words, vectors, counts / (counts + DOUBT))
    trust = (counts / (counts + PRIOR))[:, None]
    mixed = trust * vectors + (1 - trust) * predict(words)
    return Lexicon(words, sized(mixed), lambda others: sized(predict(others)))


def sized(vectors: Array) -> Array:
    """Vectors with a root mean square of SPREAD, float32; otherwise frequent words would have longer ones."""
    size = np.sqrt(np.mean(np.square(vectors), axis=1, keepdims=True))
    return np.asarray(vectors * (SPREAD / np.where(size > 0, size, 1)), np.float32)


def contextual(words: Sequence[str], counts: Array, text: Array, recipe: Recipe) -> Array:
    """Vectors E [V, dimensions] of words, from their neighbours in the text and from their forms."""
    from scipy import sparse

    forms = FormFeatures(words).design(words)[:, :-1]
    tables = [ppmi(table) for table in neighbours(text, len(words), recipe.contexts, recipe.window)]
    everything = sparse.hstack([*tables, ppmi(forms, smoothing=1.0)], format="csr", dtype=np.float32)
    # Rare words do not take part in the decomposition, but are projected onto the directions it found.
    frequent = max(int(np.count_nonzero(counts >= recipe.minimum)), 1)
    _, sizes, directions = truncated_svd(everything[:frequent], recipe.dimensions, recipe.seed)
    shrink = np.where(sizes > sizes[0] * NEGLIGIBLE, sizes, np.inf) ** (POWER - 1)
    vectors = (everything @ directions.T) * shrink
    missing = recipe.dimensions - vectors.shape[1]  # in a text of very few words
    return np.pad(vectors, ((0, 0), (0, missing))).astype(np.float64)


def number(sentences: Iterable[Sequence[str]], window: int) -> tuple[list[str], Array, Array]:
    """Words (most frequent first, digits as #), their counts [V], and the text as their indices.

    In the text, V marks the end of a sentence; there are `window` of them before and after each.
    """
    plain = [[without_digits(word) for word in sentence] for sentence in sentences]
    counted = Counter(word for sentence in plain for word in sentence)
    words = sorted(counted, key=lambda word: (-counted[word], word))
    place = {word: number for number, word in enumerate(words)}
    ends = [len(words)] * window
    text = list(ends)
    for sentence in plain:
        text += [place[word] for word in sentence]
        text += ends
    return words, np.array([counted[word] for word in words], np.float64), np.array(text, np.int64)


def neighbours(text: Array, words: int, contexts: int, window: int) -> list[Sparse]:
    """Counts [V, contexts + 2] for each offset from -window to window: word w has context c there.

    The last two columns stand for a rarer word and for the end of the sentence.
    """
    from scipy import sparse

    seen = np.where(text == words, contexts + 1, np.minimum(text, contexts))
    here = np.flatnonzero(text < words)
    tables = []
    for offset in (*range(-window, 0), *range(1, window + 1)):
        pairs = (np.ones(len(here)), (text[here], seen[here + offset]))
        tables.append(sparse.coo_array(pairs, shape=(words, contexts + 2)).tocsr())
    return tables


def ppmi(counts: Sparse, smoothing: float = SMOOTHING) -> Sparse:
    """max(0, log n_wc / (n_w q_c)) with q_c = n_c^smoothing / sum, where n_wc > 0."""
    from scipy import sparse

    counts = counts.tocoo()
    rows, columns = counts.sum(1), counts.sum(0) ** smoothing
    values = np.log(counts.data / (rows[counts.row] * (columns / columns.sum())[counts.col]))
    kept = values > 0
    return sparse.coo_array((values[kept], (counts.row[kept], counts.col[kept])), shape=counts.shape).tocsr()


def truncated_svd(matrix: Sparse, rank: int, seed: int) -> tuple[Array, Array, Array]:
    """U [N, k], s [k], V^T [k, M] of the k = min(rank, N, M) largest singular values.

    Uses a random start and repeated passes over the matrix (Halko, Martinsson and Tropp 2011).
    """
    rank = min(rank, *matrix.shape)
    columns = min(rank + OVERSAMPLING, *matrix.shape)
    basis = np.random.default_rng(seed).standard_normal((matrix.shape[1], columns)).astype(matrix.dtype)
    product = matrix @ basis
    for _ in range(SWEEPS):
        basis, _ = np.linalg.qr(product)
        product = matrix @ (matrix.T @ basis)
    basis, _ = np.linalg.qr(product)
    left, sizes, right = np.linalg.svd((matrix.T @ basis).T, full_matrices=False)
    return (basis @ left)[:, :rank], sizes[:rank], right[:rank]


def ridge(design: Sparse, targets: Array, weights: Array) -> Array:
    """B [F, D] that minimises sum_n w_n ||x_n B - y_n||^2 + RIDGE ||B||^2."""
    weighted = design.multiply(weights[:, None]).tocsr()
    square = (design.T @ weighted).toarray()
    square[np.diag_indices_from(square)] += RIDGE
    return np.asarray(np.linalg.solve(square, weighted.T @ targets))


class FormFeatures:
    """Features of a word's form: prefixes, suffixes, shape and length."""

    def __init__(self, words: Sequence[str]) -> None:
        """Choose the features that enough of the words share."""
        shared = Counter(feature for word in words for feature in form_features(word))
        chosen = sorted(
            (feature for feature, count in shared.items() if count >= SHARED),
            key=lambda feature: (-shared[feature], feature),
        )
        self.column = {feature: column for column, feature in enumerate(chosen[:MOST_FEATURES])}

    def design(self, words: Sequence[str]) -> Sparse:
        """A matrix of 0 and 1, [len(words), features + 1]; the last column is all ones."""
        from scipy import sparse

        column, width = self.column, len(self.column)
        found = [[column[name] for name in form_features(word) if name in column] for word in words]
        starts = np.cumsum([0, *(len(row) + 1 for row in found)])
        places = np.array([place for row in found for place in (*row, width)], np.int64)
        return sparse.csr_array((np.ones(len(places)), places, starts), shape=(len(words), width + 1))


def form_features(word: str) -> list[str]:
    """Names of the features of a word's form; < and > mark its boundaries."""
    whole = f"<{word.lower()}>"
    return [
        f"shape {shape(word)}",
        f"length {min(len(word), LONG)}",
        *(f"... {whole[-size:]}" for size in range(2, min(ENDINGS + 2, len(whole)))),
        *(f"{whole[:size]} ..." for size in range(2, min(BEGINNINGS + 2, len(whole)))),
    ]


def shape(word: str) -> str:
    """How a word is written, as one name."""
    if word.isupper():
        return "capitals" if len(word) > 1 else "capital"
    if word[0].isupper():
        return "title"
    if any(letter == "#" or letter.isdigit() for letter in word):
        return "digits"
    if not any(letter.isalnum() for letter in word):
        return "signs"
    return "hyphen" if "-" in word else "letters"
