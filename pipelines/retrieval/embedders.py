"""Which embedder a collection uses: the bundled one, a sentence-transformers model, or a service.

Vectors are kept under the embedder's `identity`, so that those of one are never compared with those
of another.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import httpx2
import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from pipelines.base import Frozen, Language, quiet_transformers
from pipelines.error_words import Fact, phrase
from pipelines.errors import VeriscopeError, failure
from pipelines.models.devices import device_for
from pipelines.remote import (
    HEADERS,
    OPENAI_URL,
    PublicTransport,
    RetryPolicy,
    TooLargeError,
    bounded,
    connection_failure,
    not_again,
    read_address,
    retry_after,
    server_words,
    showable,
    usable_key,
)
from pipelines.retrieval.base import Embedder
from pipelines.retrieval.indexes import (
    Encode,
    EnglishEmbedder,
    LexicalEmbedder,
    LoadedEmbedder,
    SentenceTransformersModel,
    bundled_embedder,
    default_embedder,
)

if TYPE_CHECKING:
    pass

EmbedderKind = Literal["default", "none", "words", "sentence_transformers", "openai"]

ENGLISH_EMBEDDER = EnglishEmbedder.name
"""The bundled embedder that reads English alone."""

_TIMEOUT, _LONGEST_CALL = 60.0, 300.0
"""Seconds until the next bytes come, and that one request may take in all: 64 texts take a server
without a GPU a minute or two."""

_AT_ONCE = 64
"""Texts in one request."""

_LONGEST = 8000
"""Characters of a text that is sent: about 2,000 tokens, and most services take 8,000."""


class EmbedderSpec(Frozen):
    """An embedder. `model` is an id or a folder, or a service's name of it.

    "default" is a bundled model: the one called `model`, else the default one. "none" searches by
    words alone, "words" is a vector of hashed words. `languages` are those that the model reads.
    `base_url` is the address of a service, None for OpenAI's own.
    """

    kind: EmbedderKind = "default"
    model: Annotated[str, Field(max_length=500)] = ""
    base_url: Annotated[str, Field(max_length=500)] | None = None
    languages: tuple[Language, ...] = ("en", "zh")

    @property
    def title(self) -> str:
        """What people see: the model's name, or its kind."""
        return self.model or self.kind

    @property
    def address(self) -> str:
        """The address of the service, "" for a model on this machine."""
        return (self.base_url or OPENAI_URL).rstrip("/") if self.kind == "openai" else ""


class Recommended(NamedTuple):
    """A model worth trying: its id, its languages, and its parameters in millions."""

    model: str
    languages: tuple[Language, ...]
    millions: int
    licence: str


RECOMMENDED = (
    Recommended("intfloat/multilingual-e5-small", ("en", "zh"), 118, "MIT"),
    Recommended(
        "sentence-transformers/paraphrase-multilingual-MiniLM-L12-v2",
        ("en", "zh"),
        118,
        "Apache-2.0",
    ),
    Recommended("BAAI/bge-m3", ("en", "zh"), 568, "MIT"),
    Recommended("Qwen/Qwen3-Embedding-0.6B", ("en", "zh"), 596, "Apache-2.0"),
    Recommended("BAAI/bge-small-zh-v1.5", ("zh",), 24, "MIT"),
)
"""Multilingual models of the hub, small ones first, and one for Chinese alone."""

# Models of the E5 family want to be told what a text is, and their files do not say so.
_E5 = {"query": "query: ", "document": "passage: "}


class SentenceEmbedder(LoadedEmbedder):
    """A sentence-transformers model of the hub or in a folder.

    A model that says how queries and documents are to begin is given them so. It is loaded, and
    downloaded, when first used. Raises UnknownModelError where that fails.
    """

    def __init__(self, model: str, languages: Sequence[Language]) -> None:
        super().__init__()
        self.name = model.rstrip("/").rsplit("/", 1)[-1]
        self.languages = frozenset(languages)
        self._source = model
        self._prompts: Mapping[str, str] = {}
        self._loading = threading.Lock()

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return unit vectors of passages, shape [len(texts), d], float32."""
        return super().embed([self._prompt("document") + text for text in texts])

    def embed_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return unit vectors of queries, shape [len(texts), d], float32."""
        return super().embed([self._prompt("query") + text for text in texts])

    def _prompt(self, kind: str) -> str:
        if self._model is None:
            with self._loading:
                super().embed([])
        other = "passage" if kind == "document" else "query"
        return self._prompts.get(kind) or self._prompts.get(other) or ""

    def _load(self) -> Encode:
        with quiet_transformers():
            from sentence_transformers import SentenceTransformer

            try:
                model = SentenceTransformer(self._source, device=str(device_for("reading")))
            except Exception as error:
                # The hub, the files and the network each have errors of their own.
                said = type(error).__name__
                raise failure(
                    "embedding.not_loaded", self.name, name=self.name, said=said
                ) from error
        own = {name: text for name, text in (model.prompts or {}).items() if text}
        self._prompts = own or (_E5 if "e5" in self._source.lower().split("/")[-1] else {})
        # Else it would be put before every text once more.
        model.default_prompt_name = None
        return SentenceTransformersModel(model)


class OpenAIEmbedder:
    """Embeddings of a service that speaks the OpenAI protocol (`/embeddings`).

    `public_only` keeps requests to addresses on the public internet, and one takes at most
    `longest` seconds. Blocks; not to be called on a thread with an event loop.
    """

    def __init__(
        self,
        model: str,
        languages: Sequence[Language],
        *,
        base_url: str | None = None,
        key: str | None = None,
        public_only: bool = False,
        longest: float = _LONGEST_CALL,
    ) -> None:
        address = read_address(
            base_url or OPENAI_URL,
            endpoint="/embeddings",
            example="https://example.com/v1",
            what=phrase("server.embedding"),
        )
        self.name = model
        self.languages = frozenset(languages)
        self._model = model
        self._address = address
        self._key = usable_key(key, address.host)
        self._public_only = public_only
        self._longest = longest
        self._retry = RetryPolicy(attempts=3, pause=1.0)

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return unit vectors, shape [len(texts), d], float32.

        Raises MissingKeyError, AuthenticationError, RateLimitError, UnreachableError and the like.
        """
        if not texts:
            return np.empty((0, 0), np.float32)
        return asyncio.run(self._all(texts))

    async def _all(self, texts: Sequence[str]) -> NDArray[np.float32]:
        async with httpx2.AsyncClient(
            timeout=httpx2.Timeout(_TIMEOUT, connect=10.0),
            headers=HEADERS | ({"Authorization": f"Bearer {self._key}"} if self._key else {}),
            event_hooks={"response": [bounded]},
            verify=self._address.encrypted,
            trust_env=not (self._public_only or self._address.on_this_machine),
            transport=PublicTransport(httpx2.AsyncHTTPTransport(verify=self._address.encrypted))
            if self._public_only
            else None,
        ) as client:
            parts = [
                await self._retry.run(
                    lambda _, part=texts[start : start + _AT_ONCE]: self._some(client, part)
                )
                for start in range(0, len(texts), _AT_ONCE)
            ]
        if len({part.shape[1] for part in parts}) != 1:
            raise self._error("invalid", "its vectors have different lengths")
        return np.concatenate(parts)

    async def _some(self, client: httpx2.AsyncClient, texts: Sequence[str]) -> NDArray[np.float32]:
        body = {"model": self._model, "input": [text[:_LONGEST] or " " for text in texts]}
        try:
            # A server that sends next to nothing for ever keeps to the time between two bytes.
            async with asyncio.timeout(self._longest):
                reply = await client.post(f"{self._address.url}/embeddings", json=body)
            content = reply.content
        except TimeoutError as error:
            raise not_again(self._error("timeout", "")) from error
        except TooLargeError as error:
            raise self._error("invalid", "its answer is too large") from error
        except httpx2.HTTPError as error:
            kind = connection_failure(error)
            known = kind if kind in ("no_connection", "timeout") else "invalid"
            found = self._error(known, type(error).__name__)
            raise (not_again(found) if known == "timeout" else found) from error
        if reply.status_code != 200:
            raise self._refusal(reply)
        try:
            return _vectors(reply.json(), len(texts))
        except (ValueError, LookupError, TypeError, OverflowError, RecursionError) as error:
            what = phrase("detail.unreadable_answer") if content else phrase("detail.empty_answer")
            raise self._error("invalid", what) from error

    def _refusal(self, reply: httpx2.Response) -> VeriscopeError:
        try:
            said = server_words(reply.json())
        except (ValueError, RecursionError):
            said = server_words(reply.text)
        status = reply.status_code
        if status in (401, 403):
            # A service that refuses a key may quote it.
            return self._error(
                "wrong_key" if self._key else "no_key", phrase("detail.status", status=status)
            )
        if status == 429:
            error = self._error("slow_down", said)
            error.retry_after = retry_after(reply.headers)
            return error
        if status == 404:
            return self._error("unknown_model", said or phrase("detail.status", status=status))
        return self._error(
            "failed" if status >= 500 else "refused", said or phrase("detail.status", status=status)
        )

    def _error(self, kind: str, said: Fact) -> VeriscopeError:
        if isinstance(said, str):
            said = showable(said, self._key)
        facts = {"host": self._address.host, "model": self._model}
        return failure(f"embedding.{kind}", self._address.host, said=said, **facts)


def _vectors(reply: Any, count: int) -> NDArray[np.float32]:
    """Return the unit vectors of an answer in the order of the texts."""
    rows = sorted(reply["data"], key=lambda row: row["index"])
    if [row["index"] for row in rows] != list(range(count)):
        raise ValueError("There are not as many vectors as texts.")
    vectors = np.array([row["embedding"] for row in rows], dtype=np.float32)
    if vectors.ndim != 2 or not vectors.shape[1] or not np.isfinite(vectors).all():
        raise ValueError("These are no vectors.")
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.maximum(norms, np.float32(1e-12))


class Embedders:
    """Makes embedders, each model once: loading one takes seconds.

    `find_default` gives the bundled one, None where it is not installed. With `public_only`
    visitors name no folder, no model but the recommended ones, and no address in this machine's
    own network.
    """

    def __init__(
        self,
        find_default: Callable[[], Embedder | None] = default_embedder,
        *,
        public_only: bool = False,
        switch: str = "VERISCOPE_ALLOW_ANY_ADDRESS",
    ) -> None:
        self._find_default = find_default
        self._public_only = public_only
        self._switch = switch
        self._loaded: dict[EmbedderSpec, Embedder] = {}
        self._lock = threading.Lock()

    def check(self, spec: EmbedderSpec) -> None:
        """Raise InvalidInputError for what cannot be an embedder, or is not allowed here."""
        if spec.kind in ("sentence_transformers", "openai") and not spec.model.strip():
            raise failure("embedding.no_name")
        if spec.kind == "openai":
            OpenAIEmbedder(spec.model, spec.languages, base_url=spec.base_url)
        if not spec.languages:
            raise failure("embedding.no_language")
        known = {one.model for one in RECOMMENDED}
        if self._public_only and spec.kind == "sentence_transformers" and spec.model not in known:
            raise failure("restricted.files", switch=self._switch)

    def settled(self, spec: EmbedderSpec) -> EmbedderSpec:
        """Return `spec` with the default embedder's name: a collection keeps the one it has."""
        default = self._find_default()
        if spec.kind != "default" or spec.model or default is None:
            return spec
        return spec.model_copy(update={"model": default.name})

    def get(self, spec: EmbedderSpec, key: str | None = None) -> Embedder | None:
        """Return the embedder of `spec`, None for words alone; no model is loaded yet."""
        if spec.kind == "none":
            return None
        if spec.kind == "default":
            default = self._find_default()
            if default is None or spec.model in ("", default.name):
                return default
            return bundled_embedder(spec.model)
        self.check(spec)
        if spec.kind == "openai":
            return OpenAIEmbedder(
                spec.model,
                spec.languages,
                base_url=spec.base_url,
                key=key,
                public_only=self._public_only,
            )
        with self._lock:
            if spec not in self._loaded:
                self._loaded[spec] = (
                    LexicalEmbedder()
                    if spec.kind == "words"
                    else SentenceEmbedder(spec.model, spec.languages)
                )
            return self._loaded[spec]

    def identity(self, spec: EmbedderSpec) -> str | None:
        """Return what tells its vectors from others, None where there are none."""
        if spec.kind in ("none", "default", "words"):
            embedder = self.get(spec)
            return None if embedder is None else embedder.name
        # Which languages are embedded is part of it: other passages have vectors.
        return " ".join(
            (spec.kind, spec.address, spec.model, "+".join(sorted(spec.languages)))
        ).strip()


def vectors_name(identity: str) -> str:
    """Return a part of a file's name for the vectors of an embedder."""
    return sha256(identity.encode()).hexdigest()[:16]
