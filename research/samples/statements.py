"""Statements whose truth is known, with the evidence that they have to be checked against.

Two kinds of use have data: statements that one sentence of the sample library decides (our own,
`sample_data/decided_statements.csv`), and claims with their evidence from public files, whose even
records fit and whose odd records report.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from typing import Literal, NamedTuple, get_args

from pipelines.base import Language
from pipelines.evaluation.datasets.opening import sample_rows
from pipelines.evaluation.datasets.published import Stance
from pipelines.evaluation.datasets.records import read_records
from pipelines.methods.limits import Use
from pipelines.methods.together.features import Label
from pipelines.run.events import MAX_SOURCES
from research.samples.claims import (
    LabelledClaim,
    cited_claims,
    hard_claims,
    plain,
    stance_groups,
    symmetric_claims,
)
from research.samples.files import Half, Sources
from research.samples.pairs import library

Part = Literal["fit", "report"]


class LabelledStatement(NamedTuple):
    """A statement with its label.

    `group` names the article or the page it is about: statements of one group are never on both
    sides of a fold. `wording` is "near" the article's, "paraphrased", "reworded" to what follows
    from it, or "absent" (its subject is not in the library), or the name of a public data set.
    `sources` is empty where the library is searched.
    """

    text: str
    label: Label
    use: Use
    part: Part
    language: Language
    group: str
    wording: str
    kind: str = ""
    sources: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """What the recorded run of the statement is filed under."""
        said = "\n".join((self.language, self.text, *self.sources))
        return sha256(said.encode()).hexdigest()[:16]


def decided_statements() -> list[LabelledStatement]:
    """Return our own statements, right and wrong, and those whose subject the library does not
    have."""
    return [one for language in get_args(Language) for one in _decided(language)]


def _decided(language: Language) -> Iterator[LabelledStatement]:
    for number, row in enumerate(sample_rows("decided_statements.csv", language)):
        part: Part = "fit" if row["part"] == "fit" else "report"
        group = row["article"] or f"absent-{number}"
        labels: tuple[tuple[str, Label], ...] = (
            ((row["right"], "not_enough"),)
            if row["wording"] == "absent"
            else ((row["right"], "supported"), (row["wrong"], "contradicted"))
        )
        for text, label in labels:
            yield LabelledStatement(
                text=text,
                label=label,
                use="library",
                part=part,
                language=language,
                group=group,
                wording=row["wording"],
                kind=row["kind"],
            )


_STANCES: dict[str, Label] = {
    "completely-support": "supported",
    "refute": "contradicted",
    "irrelevant": "not_enough",
}


def with_articles() -> list[LabelledStatement]:
    """Return our own statements, each with its article as the source; some true ones with another
    article.

    They fit what is used for given sources: the judges were trained on even public records, and are
    surer there than of anything else.
    """
    own = [one for one in decided_statements() if one.wording != "absent"]
    found: list[LabelledStatement] = []
    for language in get_args(Language):
        texts = {one.id: one for one in library(language)}
        names = sorted(texts)
        of = [one for one in own if one.language == language]
        for number, one in enumerate(of):
            # English has public claims to report on.
            if one.part == "report" and language == "en":
                continue
            article = texts[one.group]
            given = one._replace(use="given", sources=(f"{article.title}: {article.text}",))
            found.append(given)
            if one.label == "supported" and number % 3 == 0:
                other = texts[names[(names.index(one.group) + 7) % len(names)]]
                found.append(
                    given._replace(
                        label="not_enough",
                        wording="another article",
                        sources=(f"{other.title}: {other.text}",),
                    )
                )
    return found


def public_statements(data: Sources, most: int) -> list[LabelledStatement]:
    """Return claims of public files with their evidence, at most `most` of the odd records of each
    file.

    Pages that are longer than what a text may bring along are left out. A claim that its evidence
    supports in part only is one that it does not support.
    """
    found: list[LabelledStatement] = []
    for name, claims in _public(data, 1):
        claims = [one for one in claims if len("\n".join(one.evidence)) < MAX_SOURCES]
        chosen = claims[:: max(1, len(claims) // most)][:most]
        found += (_given(one, name, "report") for one in chosen)
    return found


def _public(data: Sources, half: Half) -> Iterator[tuple[str, list[LabelledClaim]]]:
    yield "fever_symmetric", symmetric_claims(data.symmetric, half)
    yield "fool_me_twice", hard_claims(data.hard, half)
    yield "wice_claims", cited_claims(data.cited, half)
    groups = stance_groups(data.stances)
    yield (
        "claim_evidence_stance",
        [
            LabelledClaim(one.claim, (one.evidence,), _STANCES[one.stance], groups[one.claim])
            for one in read_records(data.stances, Stance)[half::2]
            if one.stance in _STANCES
        ],
    )


def _given(one: LabelledClaim, name: str, part: Part) -> LabelledStatement:
    label: Label = "not_enough" if one.label == "unsupported" else one.label
    return LabelledStatement(
        text=" ".join(plain(one.claim).split()),
        label=label,
        use="given",
        part=part,
        language="en",
        group=one.group,
        wording=name,
        sources=(plain("\n".join(one.evidence)),),
    )
