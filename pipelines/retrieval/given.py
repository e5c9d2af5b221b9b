"""One text that somebody gave, searched like a library."""

from __future__ import annotations

from pipelines.errors import InvalidInputError
from pipelines.retrieval.base import Retriever
from pipelines.retrieval.bm25 import BM25Index
from pipelines.retrieval.documents import Document
from pipelines.retrieval.passages import cut_document
from pipelines.retrieval.tokens import terms
from pipelines.text.languages import detect_language
from pipelines.types import Passage

__all__ = ["GivenText"]


class GivenText(Retriever):
    """The passages of a text, those that share most with the query (BM25) first.

    None is left out for sharing nothing: whoever gives a text means it as the evidence. Raises
    InvalidInputError for a text without a word.
    """

    name = "given"

    def __init__(self, text: str) -> None:
        text = text.strip()
        if not any(True for _ in terms(text)):
            raise InvalidInputError(
                "There is no text to search in.", remedy="Give a text, or choose other evidence."
            )
        document = Document(
            id="given", title="", language=detect_language(text), text=text, source="given"
        )
        self._passages = cut_document(document)
        self._index = BM25Index.build(passage.text for passage in self._passages)

    async def search(self, query: str, k: int) -> list[Passage]:
        """At most `k` passages."""
        scores = self._index.scores(query).tolist()
        order = sorted(range(len(scores)), key=lambda at: (-scores[at], at))[: max(k, 0)]
        return [
            self._passages[at].model_copy(
                update={"score": scores[at], "scores": {"bm25": scores[at]}, "rank": rank}
            )
            for rank, at in enumerate(order, start=1)
        ]
