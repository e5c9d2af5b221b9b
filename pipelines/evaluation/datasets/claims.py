"""Records of claims with evidence, as in FEVER: people labelled whether it supports them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

from pydantic import AliasChoices, Field, field_validator

from pipelines.error_words import PhraseError
from pipelines.evaluation.datasets.records import ItemRecord, Record, make_item, make_passages
from pipelines.evaluation.items import Item


class Stance(Record):
    """Factcheck-GPT: a claim, a piece of a web page, and what the page says about the claim."""

    claim: str
    evidence: str
    stance: Literal["completely-support", "partially-support", "refute", "irrelevant"]


class ClaimItem(ItemRecord):
    """A claim, its evidence and its label.

    The columns are those of FEVER (whose evidence has numbers of sentences, and no texts),
    FEVER-symmetric, CLIMATE-FEVER, FoolMeTwice, WiCE and Factcheck-GPT.
    """

    id: str | int = Field(validation_alias=AliasChoices("id", "claim_id"), default="")
    claim: str
    label: str = Field(validation_alias=AliasChoices("label", "claim_label", "stance"))
    evidence: tuple[str, ...] = Field(
        validation_alias=AliasChoices(
            "evidence", "evidences", "gold_evidence", "evidence_sentence", "evidence_text"
        ),
        default=(),
    )

    @field_validator("evidence", mode="before")
    @classmethod
    def _texts(cls, value: Any) -> Any:
        pieces = [value] if isinstance(value, str) else value or []
        if all(isinstance(piece, str) for piece in pieces):
            # Sentences of one page.
            pieces = ["\n".join(pieces)]
        return [text for piece in pieces if (text := _text(piece)).strip()]

    @field_validator("label")
    @classmethod
    def _known(cls, value: str) -> str:
        known = "_".join(value.strip().lower().replace("-", "_").split())
        if known not in _LABELS:
            raise PhraseError("claims.no_label", value=value, known=[*_LABELS])
        return known

    def items(self) -> Iterator[Item]:
        """Yield the claim as the text to be checked; claims of the same words are one group.

        It counts as hallucinated when its evidence refutes it or supports it in part or not at
        all, as in LLM-AggreFact (Tang and others 2024). Without evidence, "not enough information"
        says nothing about it; nor does "disputed" with it.
        """
        passages = make_passages(self.evidence, "evidence")
        hallucinated = _LABELS[self.label]
        if hallucinated == "unknown":
            hallucinated = True if passages and self.label != "disputed" else None
        yield make_item(
            self.id,
            text=self.claim.strip(),
            hallucinated=hallucinated,
            passages=passages,
            group=" ".join(self.claim.split()),
            tags=(self.label,),
        )


_LABELS: dict[str, bool | Literal["unknown"]] = {
    "supports": False,
    "supported": False,
    "completely_support": False,
    "partially_supported": True,
    "partially_support": True,
    "refutes": True,
    "refuted": True,
    "refute": True,
    "not_supported": True,
    "not_enough_info": "unknown",
    "irrelevant": "unknown",
    "disputed": "unknown",
}


def _text(piece: Any) -> str:
    """Return the text of a piece of evidence; empty for FEVER's numbers of sentences."""
    if isinstance(piece, Mapping):
        piece = next((piece[name] for name in ("evidence", "text") if name in piece), "")
    return piece if isinstance(piece, str) else ""
