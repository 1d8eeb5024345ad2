"""Words and sequences as arrays of integers: indices of words, padding, pairs and windows."""

from __future__ import annotations

import hashlib
import json
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

__all__ = [
    "PyDataset",
    "TimeseriesGenerator",
    "Tokenizer",
    "hashing_trick",
    "make_sampling_table",
    "pad_sequences",
    "skipgrams",
    "text_to_word_sequence",
    "tokenizer_from_json",
]

_SETTINGS = "num_words filters lower split char_level oov_token".split()
_COUNTS = "word_counts word_docs index_docs index_word word_index".split()
_FILTERS = '!"#$%&()*+,-./:;<=>?@[\\]^_`{|}~\t\n'


def text_to_word_sequence(
    text: str, filters: str = _FILTERS, lower: bool = True, split: str = " "
) -> list[str]:
    """Return the words of a text.

    Parameters
    ----------
    text
        The text.
    filters
        Characters that separate words, besides ``split``.
    lower
        Whether words are in lower case.
    split
        What separates words.

    Examples
    --------
    >>> gt.data.text_to_word_sequence("The cat, the mat.")
    ['the', 'cat', 'the', 'mat']
    """
    text = text.lower() if lower else text
    table = str.maketrans(dict.fromkeys(filters, split))
    return [word for word in text.translate(table).split(split) if word]


def hashing_trick(
    text: str,
    n: int,
    hash_function: str | Callable[[str], int] | None = None,
    filters: str = _FILTERS,
    lower: bool = True,
    split: str = " ",
) -> list[int]:
    """Return an integer from 1 to ``n - 1`` for each word; different words may have the same.

    Parameters
    ----------
    text, filters, lower, split
        As for :func:`text_to_word_sequence`.
    n
        The number of integers, with 0, which no word has.
    hash_function
        A function of a word; ``"md5"``; or None for Python's ``hash``, which differs between runs.
    """

    def md5(word: str) -> int:
        return int(hashlib.md5(word.encode(), usedforsecurity=False).hexdigest(), 16)

    number: Any = {None: hash, "md5": md5}.get(hash_function, hash_function)  # type: ignore[arg-type]
    if not callable(number):
        raise ValueError(
            f"hashing_trick: hash_function is 'md5' or a function, got {hash_function!r}"
        )
    words = text_to_word_sequence(text, filters, lower, split)
    return [number(word) % (n - 1) + 1 for word in words]


class Tokenizer:
    """Replaces words by their places in the list of all words, most frequent first, from 1.

    Parameters
    ----------
    num_words
        Use only words with an index below this number; all by default.
    filters, lower, split
        As for :func:`text_to_word_sequence`.
    char_level
        Whether every character is a word.
    oov_token
        What stands for words that are not in the list, with index 1. By default, they are left out.
    analyzer
        A function of a text that returns its words, instead of :func:`text_to_word_sequence`.

    Attributes
    ----------
    word_index, index_word : dict
        All words, also those that ``num_words`` leaves out.
    word_counts, word_docs : dict
        How often each word occurs, and in how many texts.
    document_count : int
        The number of texts.

    Examples
    --------
    >>> words = gt.data.Tokenizer(oov_token="<?>")
    >>> words.fit_on_texts(["the cat sat", "the mat"])
    >>> words.texts_to_sequences(["the dog sat"])
    [[2, 1, 4]]
    """

    def __init__(
        self,
        num_words: int | None = None,
        filters: str = _FILTERS,
        lower: bool = True,
        split: str = " ",
        char_level: bool = False,
        oov_token: str | None = None,
        analyzer: Callable[[str], Iterable[str]] | None = None,
    ) -> None:
        self.num_words, self.filters, self.lower, self.split = num_words, filters, lower, split
        self.char_level, self.oov_token, self.analyzer = char_level, oov_token, analyzer
        self.document_count = 0
        self.word_counts: Counter[str] = Counter()
        self.word_docs: defaultdict[str, int] = defaultdict(int)
        self.index_docs: defaultdict[int, int] = defaultdict(int)
        self.word_index: dict[str, int] = {}
        self.index_word: dict[int, str] = {}

    def _words(self, text: Any) -> Any:
        if self.char_level or isinstance(text, (list, tuple)):
            parts = [x.lower() for x in text] if self.lower else text
            return "".join(parts) if isinstance(text, str) else parts
        if self.analyzer is not None:
            return self.analyzer(text)
        return text_to_word_sequence(text, self.filters, self.lower, self.split)

    def fit_on_texts(self, texts: Iterable[Any]) -> None:
        """Count the words of texts, or of lists of words, and number them."""
        for text in texts:
            words = list(self._words(text))
            self.document_count += 1
            self.word_counts.update(words)
            for word in set(words):
                self.word_docs[word] += 1
        ordered = sorted(self.word_counts, key=lambda word: -self.word_counts[word])
        first = [] if self.oov_token is None else [self.oov_token]
        self.word_index = {word: i for i, word in enumerate([*first, *ordered], 1)}
        self.index_word = {i: word for word, i in self.word_index.items()}
        for word, count in self.word_docs.items():
            self.index_docs[self.word_index[word]] = count

    def fit_on_sequences(self, sequences: Iterable[Any]) -> None:
        """Count in how many sequences each index occurs, for the mode ``"tfidf"``."""
        for sequence in sequences:
            self.document_count += 1
            for i in set(sequence):
                self.index_docs[i] += 1

    def _kept(self, indices: Iterable[int | None]) -> Iterator[int]:
        """Yield the indices that are used, and that of the missing word for others."""
        missing = self.word_index.get(self.oov_token) if self.oov_token is not None else None
        for i in indices:
            found = missing if i is None or (self.num_words and i >= self.num_words) else i
            if found is not None:
                yield found

    def texts_to_sequences(self, texts: Iterable[Any]) -> list[list[int]]:
        """Return the indices of the words of each text."""
        return list(self.texts_to_sequences_generator(texts))

    def texts_to_sequences_generator(self, texts: Iterable[Any]) -> Iterator[list[int]]:
        """Yield the indices of the words of each text."""
        for text in texts:
            yield list(self._kept(map(self.word_index.get, self._words(text))))

    def sequences_to_texts(self, sequences: Iterable[Any]) -> list[str]:
        """Return the words of indices, joined by spaces."""
        found = []
        for sequence in sequences:
            known = (i if i in self.index_word else None for i in map(int, sequence))
            found.append(" ".join(self.index_word[i] for i in self._kept(known)))
        return found

    def texts_to_matrix(self, texts: Iterable[Any], mode: str = "binary") -> np.ndarray[Any, Any]:
        """Return a row for each text; see :meth:`sequences_to_matrix`."""
        return self.sequences_to_matrix(self.texts_to_sequences(texts), mode)

    def sequences_to_matrix(
        self, sequences: Iterable[Any], mode: str = "binary"
    ) -> np.ndarray[Any, Any]:
        """Return a row for each sequence, with a number for each index.

        The number is 1 for ``mode="binary"``, how often the index occurs for ``"count"``, this
        divided by the length for ``"freq"``, and weighted by its rarity for ``"tfidf"``.
        """
        if mode not in ("binary", "count", "freq", "tfidf"):
            raise ValueError(f"mode must be 'binary', 'count', 'freq' or 'tfidf', got {mode!r}")
        if not self.num_words and not self.word_index:
            raise ValueError("Tokenizer: pass num_words, or call fit_on_texts first")
        if mode == "tfidf" and not self.document_count:
            raise ValueError("Tokenizer: mode 'tfidf' needs texts: call fit_on_texts first")
        sequences = list(sequences)
        size = self.num_words or len(self.word_index) + 1
        found = np.zeros((len(sequences), size))
        for row, sequence in zip(found, sequences):
            for i, count in Counter(i for i in sequence if i < size).items():
                rarity = np.log(1 + self.document_count / (1 + self.index_docs.get(i, 0)))
                row[i] = {
                    "binary": 1,
                    "count": count,
                    "freq": count / len(sequence),
                    "tfidf": (1 + np.log(count)) * rarity,
                }[mode]
        return found

    def get_config(self) -> dict[str, Any]:
        """Return the settings, and the counts as JSON texts."""
        settings = {name: getattr(self, name) for name in (*_SETTINGS, "document_count")}
        return settings | {name: json.dumps(getattr(self, name)) for name in _COUNTS}

    def to_json(self, **options: Any) -> str:
        """Return the configuration as JSON, with the options of ``json.dumps``."""
        return json.dumps({"class_name": "Tokenizer", "config": self.get_config()}, **options)


def tokenizer_from_json(json_string: str) -> Tokenizer:
    """Return a tokenizer from what :meth:`Tokenizer.to_json` returned.

    Parameters
    ----------
    json_string
        The text.
    """
    config = json.loads(json_string)["config"]
    made = Tokenizer(**{name: config[name] for name in _SETTINGS})
    made.document_count = config["document_count"]
    for name in _COUNTS:
        known = json.loads(config[name])
        numbered = name.startswith("index")
        found = {(int(key) if numbered else key): x for key, x in known.items()}
        getattr(made, name).update(found)
    return made


def pad_sequences(
    sequences: Iterable[Any],
    maxlen: int | None = None,
    dtype: Any = "int32",
    padding: str = "pre",
    truncating: str = "pre",
    value: Any = 0.0,
) -> np.ndarray[Any, Any]:
    """Return lists of different lengths as one array, padded and truncated.

    Parameters
    ----------
    sequences
        Lists of numbers, or arrays whose first axes differ.
    maxlen
        The length of the rows; by default, that of the longest.
    dtype
        The dtype of the array.
    padding, truncating
        Where to pad shorter rows and truncate longer ones: ``"pre"`` at the start, ``"post"`` at
        the end.
    value
        What to pad with.

    Examples
    --------
    >>> gt.data.pad_sequences([[1, 2, 3], [4]]).tolist()
    [[1, 2, 3], [0, 0, 4]]
    """
    for name, side in (("padding", padding), ("truncating", truncating)):
        if side not in ("pre", "post"):
            raise ValueError(f"pad_sequences: {name} must be 'pre' or 'post', got {side!r}")
    rows = [np.asarray(row) for row in sequences]
    single = next((row for row in rows if not row.ndim), None)
    if single is not None:
        raise ValueError(f"pad_sequences: a sequence is a list or an array, got {single}")
    length = max(map(len, rows), default=0) if maxlen is None else maxlen
    rest = next((row.shape[1:] for row in rows if len(row)), ())
    found = np.full((len(rows), length, *rest), value, dtype)
    for line, row in zip(found, rows):
        if len(row) and row.shape[1:] != rest:
            raise ValueError(
                f"pad_sequences: the elements of a sequence have shape {row.shape[1:]}, those "
                f"of an earlier one {rest}"
            )
        kept = row[max(len(row) - length, 0) :] if truncating == "pre" else row[:length]
        start = length - len(kept) if padding == "pre" else 0
        if len(kept):
            line[start : start + len(kept)] = kept
    return found


# -- pairs of words -------------------------------------------------------------------------------


def make_sampling_table(size: int, sampling_factor: float = 1e-5) -> np.ndarray[Any, Any]:
    """Return a probability of keeping each word of :func:`skipgrams`; frequent ones are rarer.

    Word ``i`` is the ``i``-th most frequent one. Frequencies follow Zipf's law.

    Parameters
    ----------
    size
        The number of words.
    sampling_factor
        The frequency above which words are left out at times.
    """
    rank = np.maximum(np.arange(size), 1)
    inverse = rank * (np.log(rank) + 0.577) + 0.5 - 1.0 / (12.0 * rank)
    return np.minimum(1.0, np.sqrt(sampling_factor * inverse))


def skipgrams(
    sequence: Any,
    vocabulary_size: int,
    window_size: int = 4,
    negative_samples: float = 1.0,
    shuffle: bool = True,
    categorical: bool = False,
    sampling_table: Any = None,
    seed: int | None = None,
) -> tuple[list[list[int]], list[Any]]:
    """Return pairs of words that are near each other, and random ones, with labels.

    Parameters
    ----------
    sequence
        Indices of words; 0 is none.
    vocabulary_size
        The number of indices.
    window_size
        How many places apart the words of a pair are at most.
    negative_samples
        The number of random pairs per pair of near words.
    shuffle
        Whether the pairs are in random order.
    categorical
        Whether labels are ``[0, 1]`` for near words and ``[1, 0]`` for others, instead of 1 and 0.
    sampling_table
        The probability of keeping each word; see :func:`make_sampling_table`.
    seed
        For the order. Python's ``random`` draws the pairs, and the order if it is None.
    """
    pairs: list[list[int]] = []
    near, other = ([0, 1], [1, 0]) if categorical else (1, 0)
    for i, word in enumerate(sequence):
        if not word or (sampling_table is not None and sampling_table[word] < random.random()):
            continue
        around = range(max(i - window_size, 0), min(i + window_size + 1, len(sequence)))
        pairs += [[word, sequence[j]] for j in around if j != i and sequence[j]]
    labels: list[Any] = [near] * len(pairs)
    words = [pair[0] for pair in pairs]
    random.shuffle(words)
    for i in range(int(len(pairs) * negative_samples)):
        pairs.append([words[i % len(words)], random.randint(1, vocabulary_size - 1)])
        labels.append(other)
    if shuffle:
        order = list(range(len(pairs)))
        (random if seed is None else random.Random(seed)).shuffle(order)
        pairs, labels = [pairs[i] for i in order], [labels[i] for i in order]
    return pairs, labels


class PyDataset:
    """Base class of batched data: ``self[i]`` is one of ``len(self)`` batches.

    ``fit`` takes any object with these methods.

    Parameters
    ----------
    workers, use_multiprocessing, max_queue_size
        Keras's options for processes, which are ignored.

    Examples
    --------
    >>> class Halves(gt.data.PyDataset):
    ...     def __len__(self):
    ...         return 2
    ...     def __getitem__(self, index):
    ...         return np.arange(4).reshape(2, 2)[index]
    >>> [batch.tolist() for batch in Halves()]
    [[0, 1], [2, 3]]
    """

    def __init__(
        self, workers: int = 1, use_multiprocessing: bool = False, max_queue_size: int = 10
    ) -> None:
        self.workers, self.use_multiprocessing = workers, use_multiprocessing
        self.max_queue_size = max_queue_size

    def __iter__(self) -> Iterator[Any]:
        yield from (self[i] for i in range(len(self)))  # type: ignore[arg-type, index]
        self.on_epoch_end()

    def on_epoch_end(self) -> None:
        """Run after each epoch; does nothing by default."""


class TimeseriesGenerator(PyDataset):
    """Batches of windows of a series, with the value after each window as its target.

    ``fit`` takes the object: ``self[i]`` is a pair of arrays, one of ``len(self)`` batches.

    Parameters
    ----------
    data, targets
        Arrays whose first axis is time.
    length
        The length of the windows, in time steps.
    sampling_rate
        The time steps between the values of a window.
    stride
        The time steps between windows.
    start_index, end_index
        Use only this part of the data; all by default.
    shuffle
        Whether windows are drawn at random.
    reverse
        Whether the last value of a window comes first.
    batch_size
        The number of windows in a batch.

    Examples
    --------
    >>> windows = gt.data.TimeseriesGenerator(range(10), range(10), 3, batch_size=4)
    >>> len(windows), windows[0][0][0].tolist(), windows[0][1].tolist()
    (2, [0, 1, 2], [3, 4, 5, 6])
    """

    def __init__(
        self,
        data: Any,
        targets: Any,
        length: int,
        sampling_rate: int = 1,
        stride: int = 1,
        start_index: int = 0,
        end_index: int | None = None,
        shuffle: bool = False,
        reverse: bool = False,
        batch_size: int = 128,
    ) -> None:
        super().__init__()
        self.data, self.targets = np.asarray(data), np.asarray(targets)
        if len(self.data) != len(self.targets):
            raise ValueError(
                f"TimeseriesGenerator: data has {len(self.data)} time steps, targets "
                f"{len(self.targets)}: they must be as many"
            )
        self.length, self.sampling_rate, self.stride = length, sampling_rate, stride
        self.start_index = start_index + length
        self.end_index = len(self.data) - 1 if end_index is None else end_index
        self.shuffle, self.reverse, self.batch_size = shuffle, reverse, batch_size
        if self.start_index > self.end_index:
            raise ValueError(
                f"TimeseriesGenerator: no window of {length} time steps fits between "
                f"{start_index} and {self.end_index}"
            )

    def __len__(self) -> int:
        step = self.batch_size * self.stride
        return (self.end_index - self.start_index + step) // step

    def __getitem__(self, index: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        if not 0 <= index < len(self):
            raise IndexError(f"TimeseriesGenerator: {index} is no batch from 0 to {len(self) - 1}")
        first, step = self.start_index, self.batch_size * self.stride
        if self.shuffle:
            # NumPy's seed, as in Keras
            rows = np.random.randint(first, self.end_index + 1, self.batch_size)  # noqa: NPY002
        else:
            start = first + step * index
            rows = np.arange(start, min(start + step, self.end_index + 1), self.stride)
        found = np.array([self.data[n - self.length : n : self.sampling_rate] for n in rows])
        return (found[:, ::-1] if self.reverse else found), self.targets[rows]
