"""What a run works with: loaded models by role, where to search, what compares texts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from pipelines.models.base import Model, ScoreRequest, SimilarityRequest
from pipelines.models.limiter import Limiter
from pipelines.models.providers import LOCAL_SLOTS
from pipelines.retrieval.base import Retriever, Similarity
from pipelines.run.cache import Cache
from pipelines.run.events import ModelCalled
from pipelines.run.ledger import Ledger
from pipelines.text import Entity, EntityRecognizer
from pipelines.types import Language


@dataclass
class Slot:
    """A model with what its callers share: slots and answered requests.

    Without a cache every request is made: an illustration is played from the start each time.
    `identity` tells the model from others that share the cache.
    """

    model: Model
    limiter: Limiter = field(default_factory=lambda: Limiter(LOCAL_SLOTS))
    cache: Cache | None = field(default_factory=Cache)
    identity: str = ""


def cache_scope(owner: str, slot: Slot) -> str:
    """Return under which name the replies of this model are kept for an owner."""
    return f"{owner}:{slot.identity}"


class Recognizer(Protocol):
    """Finds named entities: what is installed here, or what a recorded run found."""

    def recognize(self, text: str, language: Language) -> list[Entity]:
        """Return the entities of `text`, in order and without overlaps; called from any thread."""
        ...

    def source_for(self, language: Language) -> str:
        """Return what finds them, for example "rules" or "spacy:en_core_web_sm 3.8.0"."""
        ...


@dataclass(frozen=True)
class Materials:
    """Models and evidence of one run.

    `retriever` searches the chosen evidence, None when no method needs any. `dense` searches
    the same evidence by vectors where that can be done in the question's language; otherwise the
    chosen search is used. `similarity` compares texts in the question's language; `recognizer`
    finds named entities. `owner` is whose run it is: replies are given again to the same owner
    only. `ledger` admits every call of the run, within its limits.
    """

    slots: Mapping[str, Slot]
    retriever: Retriever | None = None
    dense: Retriever | None = None
    similarity: Similarity | None = None
    recognizer: Recognizer = field(default_factory=EntityRecognizer)
    owner: str = ""
    ledger: Ledger = field(default_factory=Ledger)

    def remember(self, calls: Iterable[ModelCalled]) -> None:
        """Put what these calls were answered into the caches, as if this owner had made them."""
        for call in calls:
            slot = self.slots.get(call.role)
            if slot is None or slot.cache is None or call.error is not None:
                continue
            request = call.request
            if isinstance(request, SimilarityRequest):
                continue
            # What is not cached when it is asked is not found in the cache either.
            reply = call.choice if call.choice is not None else call.generations
            if isinstance(request, ScoreRequest):
                (reply,) = call.generations
            slot.cache.remember(request, reply, scope=cache_scope(self.owner, slot))
