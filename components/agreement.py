"""What the methods of a run make of its answer, at a glance: who doubts it, who ends alike."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from components.markup import Html, tag
from components.messages import Catalogue
from components.method_card import MethodRow
from components.names import named
from components.verdict import VERDICT_SIGNS
from pipelines.run.events import Verdict

__all__ = ["Tally", "agreement", "agreement_strip", "same_text"]

Stance = Literal["doubts", "holds", "unchecked", "open", "ended"]

_DOUBTS: frozenset[Verdict] = frozenset({"doubtful", "contradicted", "not_enough"})
_HOLDS: frozenset[Verdict] = frozenset({"confident", "supported"})
_SIGNS: dict[Stance, str] = {"unchecked": "–", "open": "", "ended": "✗"}
_ENOUGH = 2
_NOT_A_WORD = re.compile(r"[\W_]+")


@dataclass(frozen=True)
class Tally:
    """How the judging methods of a run stand to its answer, and whose final answers coincide.

    `stances` maps each judging method, in order, to where it stands: "open" while nothing is known
    yet, "ended" when it failed or was stopped without a verdict. `groups` are the methods with one
    and the same final answer, the largest group first; `silent` those that gave none on purpose;
    `own` the judging methods that checked another first answer than the one shown, `weak` those
    whose verdict comes from a model that is no good judge.
    """

    stances: dict[str, Stance] = field(default_factory=dict)
    groups: tuple[tuple[str, ...], ...] = ()
    silent: tuple[str, ...] = ()
    own: tuple[str, ...] = ()
    weak: tuple[str, ...] = ()

    def of(self, stance: Stance) -> list[str]:
        """The methods with this stance."""
        return [name for name, taken in self.stances.items() if taken == stance]


def same_text(text: str) -> str:
    """`text` as it is compared: case, width, punctuation and white space make no difference."""
    return _NOT_A_WORD.sub(" ", unicodedata.normalize("NFKC", text).casefold()).strip()


def agreement(rows: Iterable[MethodRow], original: str = "") -> Tally:
    """The tally of `rows`; `original` is the answer that the page shows as the original."""
    rows = list(rows)
    groups: dict[str, list[str]] = {}
    for row in rows:
        if row.status == "done" and row.answer is not None and not row.abstained and row.rewrites:
            groups.setdefault(same_text(row.answer), []).append(row.method)
    judging = [row for row in rows if row.judges]
    return Tally(
        stances={row.method: _stance(row) for row in judging},
        groups=tuple(map(tuple, sorted(groups.values(), key=len, reverse=True))),
        silent=tuple(row.method for row in rows if row.abstained),
        own=tuple(
            row.method
            for row in judging
            if row.original and original and same_text(row.original) != same_text(original)
        ),
        weak=tuple(row.method for row in judging if "weak_judge" in row.flags),
    )


def agreement_strip(rows: Sequence[MethodRow], original: str, t: Catalogue) -> Html | None:
    """The tally in a line of dots and a few sentences; None with fewer than two judging methods.

    Its places are taken from the beginning: what is not known yet is told as open.
    """
    tally = agreement(rows, original)
    if len(tally.stances) < _ENOUGH:
        return None
    return tag(
        "div",
        tag(
            "ul",
            (_dot(row, tally.stances[row.method], t) for row in rows if row.judges),
            class_="vs-agreement-dots",
            data_key="dots",
        ),
        tag(
            "div",
            tag("p", _judged(tally, t), class_="vs-strong", data_key="judged"),
            [tag("p", words, class_="vs-note", data_key=key) for key, words in _rest(tally, t)],
            class_="vs-agreement-words",
            data_key="words",
        ),
        class_="vs-agreement vs-card",
        aria_busy="true" if tally.of("open") else None,
        data_key="agreement",
    )


def _stance(row: MethodRow) -> Stance:
    if row.verdict in _DOUBTS:
        return "doubts"
    if row.verdict in _HOLDS:
        return "holds"
    if row.verdict is None and row.status in ("waiting", "running"):
        return "open"
    return "ended" if row.status in ("failed", "cancelled", "unsupported") else "unchecked"


def _dot(row: MethodRow, stance: Stance, t: Catalogue) -> Html:
    if stance in ("doubts", "holds") and row.verdict is not None:
        look, sign, words = row.verdict, VERDICT_SIGNS[row.verdict], t(f"verdict.{row.verdict}")
    else:
        look, sign, words = "unchecked", _SIGNS[stance], t(f"agreement.stance.{stance}")
    return tag(
        "li",
        tag("span", sign, class_="vs-sign", aria_hidden="true"),
        tag("span", named("method", row.method, t)),
        tag("span", t("agreement.dot", verdict=words), class_="vs-sr"),
        class_=f"vs-badge vs-verdict-{look.replace('_', '-')} vs-stance-{stance}",
        title=words,
        data_key=row.method,
    )


def _judged(tally: Tally, t: Catalogue) -> str:
    doubts, holds = tally.of("doubts"), tally.of("holds")
    total = len(doubts) + len(holds)
    if not total:
        return t("agreement.open" if tally.of("open") else "agreement.nothing")
    if not doubts:
        return t("agreement.none_doubts", count=total, list=_names(holds, t))
    if not holds:
        return t("agreement.all_doubt", count=total, list=_names(doubts, t))
    doubt = t("agreement.doubt", count=len(doubts), total=total, list=_names(doubts, t))
    return t("agreement.rest", count=len(holds), doubt=doubt, list=_names(holds, t))


def _rest(tally: Tally, t: Catalogue) -> list[tuple[str, str]]:
    """What else there is to say, each under the key of its sentence."""
    said = [
        (stance, t(f"agreement.are.{stance}", list=_names(tally.of(stance), t)))
        for stance in ("open", "unchecked", "ended")
        if tally.of(stance)
    ]
    if tally.weak:
        said.append(("weak", t("agreement.weak", list=_names(tally.weak, t))))
    if tally.own:
        said.append(("own", t("agreement.own", list=_names(tally.own, t))))
    if sum(map(len, tally.groups)) >= _ENOUGH:
        said.append(("answers", _answers(tally, t)))
    if tally.silent:
        said.append(("silent", t("agreement.silent", list=_names(tally.silent, t))))
    return said


def _answers(tally: Tally, t: Catalogue) -> str:
    if len(tally.groups) == 1:
        return t("agreement.answers.same", list=_names(tally.groups[0], t))
    alike = [group for group in tally.groups if len(group) > 1]
    alone = [group[0] for group in tally.groups if len(group) == 1]
    if not alike:
        return t("agreement.answers.all_differ", list=_names(alone, t))
    groups = t("agreement.separator").join(_names(group, t) for group in alike)
    words = t("agreement.answers.alike", list=groups)
    if not alone:
        return words
    return t("sentence.separator").join(
        (words, t("agreement.answers.alone", list=_names(alone, t)))
    )


def _names(methods: Iterable[str], t: Catalogue) -> str:
    return t("list.separator").join(named("method", name, t) for name in methods)
