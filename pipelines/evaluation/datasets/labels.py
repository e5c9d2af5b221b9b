"""Words of labels: which say that a text is hallucinated, and in which columns they stand."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from pipelines.evaluation.datasets.columns import LabelIs, said_in
from pipelines.text.languages import simplified

_WORDS = {
    "true": "yes y true t 1 1.0 ✓ ✔ ✅ √ 是 有 对 ja oui wahr vrai",
    "false": "no n false f 0 0.0 ✗ ✘ ❌ × 否 无 没有 不是 错 nein non falsch",
    "hallucinated": """hallucinated hallucination hallucinations fail failed refutes refuted refute
        untruthful unsupported not_supported
        inaccurate wrong incorrect unfaithful inconsistent nonfactual
        non_factual not_factual not_consistent contradiction contradicts contradicted contradict
        contradictory not_entailed non_entailment not_entailment partially_supported
        partially_support ungrounded baseless mostly_false barely_true pants_fire pants_on_fire
        misleading fabricated fake debunked 谣言 虚假 不实 失实 有幻觉 存在幻觉 幻觉 不准确
        不属实 错误 不正确 不支持 矛盾 不一致 不忠实""",
    "supported": """supported supports support truthful ok okay
        fully_grounded fully_supported mostly_true completely_support pass passed faithful
        factual
        accurate right correct consistent entailment entailed entails attributable grounded
        not_hallucinated no_hallucination non_hallucination non_hallucinated nonhallucinated
        无幻觉 没有幻觉 准确 属实 正确 支持 一致 忠实""",
    "undecided": """not_enough_info not_enough_information not_enough_evidence nei neutral
        irrelevant extrapolatory unknown disputed unverifiable unverified not_verifiable mixed
        mixture half_true unproven
        conflicting_evidence conflicting_evidence_cherrypicking 无法判断 信息不足 不确定 无法核实
        证据不足""",
}
_TRUE, _FALSE, _HALLUCINATED, _SUPPORTED, _UNDECIDED = (
    frozenset(words.split()) for words in _WORDS.values()
)


_NOT = re.compile(r"(?:not?|non)_|(?:未发现|不|未|非|无|没有|不存在)")


def _plain(word: str) -> str:
    return re.sub(r"[\s_/-]+", "_", simplified(word.strip().casefold()))


def label_in(word: str, said: LabelIs = "") -> bool | None:
    """Return whether the word of a label says that a text is hallucinated; None for words such as
    "not enough info".

    `said` is what yes, true and 1 say. Raises KeyError for a word that says neither.
    """
    plain = _plain(word)
    if plain in _UNDECIDED:
        return None
    if plain in _HALLUCINATED | _SUPPORTED:
        return plain in _HALLUCINATED
    if said and plain in _TRUE | _FALSE:
        return (plain in _TRUE) == (said == "hallucinated")
    if (denied := _NOT.match(plain)) and plain[denied.end() :] in _HALLUCINATED | _SUPPORTED:
        return plain[denied.end() :] in _SUPPORTED
    raise KeyError(word)


def says_label(word: str, said: LabelIs = "") -> bool:
    """Return whether `label_in` knows what a word says."""
    try:
        label_in(word, said)
    except KeyError:
        return False
    return True


def says_yes_or_no(word: str) -> bool:
    """Return whether a word is yes, true or 1, no, false or 0."""
    return _plain(word) in _TRUE | _FALSE


# Labels in columns whose names are not known.

_DIFFERENT = 12
"""Values of a column up to which they may be labels."""

_KIND_OF_ERROR = re.compile(
    r"(?:hallucinations?|errors?|幻觉|错误)[\s_-]*(?:type|category|kind|class|类型|类别|种类)",
    re.IGNORECASE,
)
_DIGIT_SAYS = re.compile(r"([01])\s*(?:[=:：＝]|为|表示|代表|是)\s*(?:a\s+)?([^\W\d_]+)")
_NO_ERROR = frozenset({
    "none", "no", "noe", "no_error", "nil", "null", "n_a", "-", "correct",
    "无", "没有", "无幻觉", "无错误",
})  # fmt: skip
"""What stands in the place of a kind of error where there is none."""


class FoundLabels(NamedTuple):
    """A column of labels and what its values mean, as in `ColumnMapping`."""

    hallucinated: str
    label_is: LabelIs = ""
    hallucinated_values: tuple[str, ...] = ()


def labels_by_words(
    rows: Sequence[Mapping[str, Any]], columns: Sequence[str]
) -> FoundLabels | None:
    """Return the labels in the one of `columns` whose values all say what they mean: by their
    words, or as yes and no under a name that says which way; or kinds of errors beside "none". None
    where there is no such column, or more than one.
    """
    found = [one for name in columns if (one := _labels_in(rows, name)) is not None]
    return found[0] if len(found) == 1 else None


def _labels_in(rows: Sequence[Mapping[str, Any]], name: str) -> FoundLabels | None:
    cells = [row.get(name) for row in rows]
    if not all(isinstance(one, str | int | float | None) for one in cells):
        return None
    values = {str(one) for one in cells if one is not None and str(one).strip()}
    if not 0 < len(values) <= _DIFFERENT:
        return None
    if _KIND_OF_ERROR.search(name):
        errors = tuple(sorted(one for one in values if _plain(one) not in _NO_ERROR))
        return FoundLabels(name, hallucinated_values=errors) if len(errors) < len(values) else None
    if (told := _explained(name)) is not None:
        return FoundLabels(name, hallucinated_values=told) if values <= {"0", "1"} else None
    said = said_in(name)
    known = all(says_label(one, said) for one in values)
    return FoundLabels(name, label_is=said) if known and len(values) > 1 else None


_OF_TRUTH = frozenset({
    "half_true", "mostly_true", "mostly_false", "barely_true", "pants_fire", "pants_on_fire",
})  # fmt: skip
"""Verdicts of people who check facts: beside these, "true" is one of them."""


def told_together(rows: Sequence[Mapping[str, Any]], column: str) -> FoundLabels:
    """Return what the labels of a column mean that only the others tell: "true" beside "half-true",
    and the letters of inference, E, N and C.
    """
    values = {str(row[column]).strip() for row in rows if row.get(column) is not None} - {""}
    if {"E"} < values <= {"E", "N", "C"}:
        return FoundLabels(column, hallucinated_values=("C", "N"))
    of_truth = not _OF_TRUTH.isdisjoint(map(_plain, values))
    return FoundLabels(column, label_is="supported" if of_truth else "")


_MAY_SAY = re.compile(
    r"label|class|rating|quality|severity|issue|error|mistake|judge|grade|verdict|check|correct|wrong"
    r"|bad|good|fact|true|truth|halluc|support|contradict|made.?up|fabricat|invent|trap|score|annot"
    r"|标|判|评|错|对|真|假|幻觉|事实|质量|等级|严重",
    re.IGNORECASE,
)
"""What is in names of columns that may hold labels."""

_SHORT = 30


def may_be_labels(
    rows: Sequence[Mapping[str, Any]], columns: Sequence[str]
) -> tuple[str, tuple[str, ...]] | None:
    """Return the first of `columns` that by its name may hold labels, with its values; None without
    one.
    """
    for name in columns:
        values = {str(row[name]).strip() for row in rows if row.get(name) is not None} - {""}
        short = all(len(one) <= _SHORT for one in values)
        if short and 1 < len(values) <= _DIFFERENT and _MAY_SAY.search(name):
            return name, tuple(sorted(values))
    return None


def _explained(name: str) -> tuple[str, ...] | None:
    """Return which of 1 and 0 means hallucinated where a name explains both: "label (0 =
    hallucinated, 1 = correct)"; None for other names.
    """
    told = dict(_DIGIT_SAYS.findall(simplified(name).casefold()))
    if len(told) < 2:
        return None
    said = said_in(name.partition("(")[0].partition("（")[0])
    means: dict[str, bool] = {}
    for digit, word in told.items():
        if says_label(word, said):
            means[digit] = label_in(word, said) is True
    if len(means) == 1:
        # What is called "ok" or "正常" is the other one.
        ((digit, bad),) = means.items()
        means["1" if digit == "0" else "0"] = not bad
    return tuple(digit for digit, bad in means.items() if bad) if len(means) == 2 else ()
