"""Claims that people labelled, with their evidence, in groups that share no text.

Records that share a claim or a sentence of evidence are one group, whichever half they are in. Odd
records are reported on; those of a group that is held out share no text with any training pair.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Sequence
from difflib import SequenceMatcher
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import BeforeValidator, Field

from pipelines.evaluation.datasets.published import Stance
from pipelines.evaluation.datasets.records import Record, read_records
from research.samples.files import Half
from research.samples.pairs import Label

_MIN_SHARED = 40
"""Characters of a sentence that two records must share to be one group; shorter ones are common."""

_WORD = re.compile(r"\w+(?:['’.-]\w+)*")


class LabelledClaim(NamedTuple):
    """A claim with sentences of evidence, the sentences beside them, and what people said.

    `essential` are the sentences on which the label rests, empty where nobody named them; `beside`
    are sentences of the same page that were not needed. `group` names what shares a text with it.
    """

    claim: str
    evidence: tuple[str, ...]
    label: Label
    group: str
    essential: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()


def _listed(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


_Sentences = Annotated[tuple[str, ...], BeforeValidator(_listed)]
_Fever = Literal["SUPPORTS", "REFUTES"]


class _Hard(Record):
    claim: str
    label: _Fever
    gold_evidence: _Sentences
    other_evidence: _Sentences = ()


class _Symmetric(Record):
    claim: str
    label: _Fever
    evidence: str


class _Cited(Record):
    claim: str
    label: Literal["supported", "partially_supported", "not_supported"]
    evidence: _Sentences
    supporting_sentences: tuple[tuple[int, ...], ...] = ()


class _Sentence(Record):
    evidence: str


class _Climate(Record):
    claim: str
    claim_label: Literal["SUPPORTS", "REFUTES", "NOT_ENOUGH_INFO", "DISPUTED"]
    evidences: tuple[_Sentence, ...]


_LABELS: dict[str, Label] = {
    "SUPPORTS": "supported",
    "REFUTES": "contradicted",
    "NOT_ENOUGH_INFO": "not_enough",
    "supported": "supported",
    # A part of the claim is nowhere, or is denied: both are said of such claims.
    "partially_supported": "unsupported",
    "not_supported": "unsupported",
}


def hard_claims(path: Path | None, half: Half) -> list[LabelledClaim]:
    """Return half of FoolMeTwice: claims written to be hard to tell, with their gold evidence."""
    records = read_records(path, _Hard)
    texts = [[r.claim, *_long((*r.gold_evidence, *r.other_evidence))] for r in records]
    found: list[LabelledClaim] = []
    for record, group in zip(records, _groups(texts, "hard"), strict=True):
        gold = tuple(map(_clean, record.gold_evidence))
        beside = tuple(_clean(s) for s in record.other_evidence if _is_sentence(s))
        label = _LABELS[record.label]
        found.append(LabelledClaim(_clean(record.claim), gold, label, group, gold, beside))
    return found[half::2]


def symmetric_claims(path: Path | None, half: Half) -> list[LabelledClaim]:
    """Return half of FEVER-symmetric, where every claim and every evidence has both labels.

    Nearly every claim of one half also stands in the other one, with the other label.
    """
    records = read_records(path, _Symmetric)
    groups = _groups([[r.claim, r.evidence] for r in records], "symmetric")
    return [
        LabelledClaim(r.claim.strip(), (r.evidence.strip(),), _LABELS[r.label], group)
        for r, group in zip(records, groups, strict=True)
    ][half::2]


class RefutedClaim(NamedTuple):
    """A claim that its evidence refutes, the places [start, end) of its wrong words, and `twin`, a
    claim that the evidence supports."""

    claim: str
    twin: str
    evidence: str
    wrong: tuple[tuple[int, int], ...]
    group: str


def refuted_claims(path: Path | None, half: Half) -> list[RefutedClaim]:
    """Return the refuted claims of half of FEVER-symmetric that differ in few words from a
    supported one.

    Both were written for the same evidence, so the words that only the refuted one has are those
    that the evidence refutes. Pairs that share less than half of the refuted claim's words, and
    those that differ only in words left out, are not told apart in this way.
    """
    supported: dict[str, list[str]] = {}
    for record in read_records(path, _Symmetric):
        if record.label == "SUPPORTS":
            supported.setdefault(record.evidence.strip(), []).append(record.claim.strip())
    found: list[RefutedClaim] = []
    for one in symmetric_claims(path, half):
        twins = supported.get(one.evidence[0], ()) if one.label == "contradicted" else ()
        marked = [(places, twin) for twin in twins if (places := _differing(one.claim, twin))]
        if marked:
            places, twin = min(marked, key=lambda pair: len(pair[0]))
            found.append(RefutedClaim(one.claim, twin, one.evidence[0], places, one.group))
    return found


def _differing(claim: str, other: str) -> tuple[tuple[int, int], ...]:
    """Return where `claim` has words that `other` has not in their place; () where that is most of
    it."""
    words = [(found.start(), found.end()) for found in _WORD.finditer(claim)]
    own = [claim[start:end].casefold() for start, end in words]
    theirs = [found.group().casefold() for found in _WORD.finditer(other)]
    same = SequenceMatcher(None, own, theirs, autojunk=False).get_matching_blocks()
    alike = {at for block in same for at in range(block.a, block.a + block.size)}
    if len(alike) * 2 < len(words):
        return ()
    return tuple(place for at, place in enumerate(words) if at not in alike)


def cited_claims(path: Path | None, half: Half) -> list[LabelledClaim]:
    """Return half of WiCE: claims of Wikipedia with the whole pages that they cite."""
    records = read_records(path, _Cited)
    # Sentences about cookies are on many pages; a page is shared as a whole or not at all.
    groups = _groups([[r.claim, " ".join(r.evidence)] for r in records], "cited")
    found: list[LabelledClaim] = []
    for record, group in zip(records, groups, strict=True):
        chosen = {at for one in record.supporting_sentences for at in one}
        page = [(at in chosen, text) for at, s in enumerate(record.evidence) if (text := _clean(s))]
        needed, beside = (tuple(s for of, s in page if of == kind) for kind in (True, False))
        whole, label = tuple(s for _, s in page), _LABELS[record.label]
        found.append(LabelledClaim(_clean(record.claim), whole, label, group, needed, beside))
    return found[half::2]


def climate_claims(path: Path | None, half: Half) -> list[LabelledClaim]:
    """Return half of CLIMATE-FEVER, to measure on only: its licence is not known.

    Claims on which the annotators disagree are left out.
    """
    records = read_records(path, _Climate)
    return [
        LabelledClaim(
            claim=_clean(record.claim),
            evidence=tuple(_clean(one.evidence) for one in record.evidences),
            label=_LABELS[record.claim_label],
            group=f"climate-{number}",
        )
        for number, record in list(enumerate(records))[half::2]
        if record.claim_label != "DISPUTED"
    ]


def stance_groups(path: Path | None) -> dict[str, str]:
    """Return the group of every claim of Factcheck-GPT, by its text; claims on one page are one
    group."""
    records = read_records(path, Stance)
    groups = _groups([[r.claim, r.evidence] for r in records], "stance")
    return {record.claim: group for record, group in zip(records, groups, strict=True)}


def plain(text: str) -> str:
    """Return a text of FEVER as people write: brackets, quotation marks and spaces before a
    comma."""
    for word, sign in (("-LRB-", "("), ("-RRB-", ")"), ("-LSB-", "["), ("-RSB-", "]")):
        text = text.replace(word, sign)
    text = text.replace(" -- ", "–").replace("``", '"').replace("''", '"')
    text = re.sub(r"\s+([,.;:!?%)\]]|'s\b|n't\b)", r"\1", text)
    return " ".join(re.sub(r"([(\[])\s+", r"\1", text).split())


def _clean(text: str) -> str:
    return " ".join(text.split())


def _is_sentence(text: str) -> bool:
    return len(text.split()) >= 4 and text.lstrip()[:1] not in ",.;:"


def _long(sentences: Iterable[str]) -> list[str]:
    return [sentence for sentence in sentences if len(sentence) >= _MIN_SHARED]


def _groups(texts: Sequence[Sequence[str]], name: str) -> list[str]:
    """Return names of the groups of records that are joined by a text, from the texts of each
    record."""
    above: dict[Hashable, Hashable] = {}

    def top(one: Hashable) -> Hashable:
        while (upper := above.setdefault(one, one)) != one:
            one = upper
        return one

    for number, found in enumerate(texts):
        for text in found:
            above[top(" ".join(text.split()).casefold())] = top(number)
    # The first record of a group gives it its name, whatever joined them.
    first: dict[Hashable, int] = {}
    return [f"{name}-{first.setdefault(top(number), number)}" for number in range(len(texts))]


class Aliases(Record):
    """A question of TriviaQA with the names of its one answer."""

    question: str
    answers: tuple[str, ...] = Field(min_length=1)
