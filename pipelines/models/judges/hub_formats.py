"""Which kind of judge a published model is, and what each of its outputs means.

Both are read from the model's own configuration. Where that does not say it, somebody has to.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal, cast, get_args

from pipelines.base import Frozen
from pipelines.error_words import phrase
from pipelines.errors import failure

JudgeFormat = Literal["nli", "minicheck", "minicheck_t5", "hhem", "factcg", "spans"]
"""How a judge reads evidence and statement, and what it gives.

"nli": both as a pair of texts, a class each (entailment, neutral, contradiction or fewer).
"minicheck": both as one text with the end mark between them, two classes (Tang, Laban and Durrett
2024). "minicheck_t5": the same for an encoder-decoder that writes 1 or 0. "hhem": Vectara's
HHEM-2.1-open, a prompt for a T5 encoder. "factcg": a prompt with two classes (Lei and others 2025).
"spans": each token of the answer is supported or not (LettuceDetect, Kovács and Recski 2025).
"""

FORMATS: tuple[JudgeFormat, ...] = get_args(JudgeFormat)

LabelRole = Literal["supported", "contradicted", "not_enough", "unsupported"]
"""What an output says: "unsupported" is contradiction or silence, which two classes do not tell."""

_SPELLINGS: dict[LabelRole, str] = {
    "supported": "supported supports support entailment entailed entails entail consistent faithful"
    " factual grounded attributable true yes correct 支持 蕴含 蕴涵 一致",
    "contradicted": "contradicted contradiction contradicts contradict contradictory refuted"
    " refutes refute conflict 矛盾 反驳 冲突",
    "not_enough": "notenough neutral nei notenoughinfo notenoughinformation unknown unverifiable"
    " 中立 中性 信息不足",
    "unsupported": "unsupported notsupported notentailment notentailed nonentailment inconsistent"
    " unfaithful notfaithful nonfactual ungrounded notgrounded notattributable hallucinated"
    " hallucination false no incorrect 不支持 非蕴含 不一致 幻觉",
}
_ROLES: dict[str, LabelRole] = {
    word: role for role, words in _SPELLINGS.items() for word in words.split()
}
_TWO: tuple[LabelRole, ...] = ("unsupported", "supported")
_SPANS: tuple[LabelRole, ...] = ("supported", "unsupported")

_CLASSES = "ForSequenceClassification"
_TOKENS = "ForTokenClassification"
_WRITES = "ForConditionalGeneration"

_CHINESE_TOO = frozenset({"xlm-roberta", "xlm-roberta-xl", "xlm", "mt5", "umt5", "xmod"})
"""Kinds of models that were trained on Chinese as well as English."""

_ENGLISH = frozenset({"en", "eng", "english"})
_CHINESE = frozenset({"zh", "zho", "chi", "cmn", "chinese"})
_MULTILINGUAL = ("multilingual", "mdeberta", "mmbert", "xlm-r", "xnli")


class JudgeReading(Frozen):
    """How a judge is read: its format, and the meaning of each of its outputs in their order.

    Without `labels` (formats "minicheck_t5" and "hhem") the meaning of the outputs is fixed.
    """

    format: JudgeFormat
    labels: tuple[LabelRole, ...] = ()


def label_role(name: str) -> LabelRole | None:
    """Return what a label of that name says, in any spelling; None for one that says nothing.

    Case, spaces and punctuation do not matter: "NOT ENOUGH INFO" is "not_enough".
    """
    return _ROLES.get("".join(char for char in name.casefold() if char.isalnum()))


def parse_labels(text: str) -> tuple[LabelRole, ...]:
    """Return the meanings of outputs, written with commas; raises InvalidInputError."""
    words = [word.strip() for word in re.split(r"[,，、;；]", text) if word.strip()]
    roles = [label_role(word) for word in words]
    unknown = [word for word, role in zip(words, roles, strict=True) if role is None]
    if unknown:
        raise failure("judges.unknown_label", said=[*unknown])
    return tuple(cast("list[LabelRole]", roles))


def parse_format(text: str) -> JudgeFormat:
    """Return the format of that name; raises InvalidInputError naming those there are."""
    for known in FORMATS:
        if text.strip().casefold() == known:
            return known
    raise failure("judges.unknown_format", said=text, formats=[*FORMATS])


def labels_of(config: Mapping[str, Any]) -> list[str]:
    """Return the names of a model's outputs in order, from its configuration's `id2label`."""
    named = config.get("id2label") or {}
    if not isinstance(named, Mapping):
        return []
    if not named:
        # transformers leaves out what is usual: two classes without names.
        return [f"LABEL_{n}" for n in range(int(config.get("num_labels") or 2))]
    return [str(name) for _, name in sorted((int(place), name) for place, name in named.items())]


def reading_of(
    config: Mapping[str, Any],
    label: str,
    wanted: JudgeFormat | None = None,
    labels: Sequence[LabelRole] = (),
) -> JudgeReading:
    """Return how the model with this `config` is read; `label` is its name.

    `wanted` and `labels` say it where the configuration does not; what they say counts. Raises
    InvalidInputError for a model that is no judge, whose code would have to be run, or of which
    neither its configuration nor its name says how it is read.
    """
    kind = wanted or _format_of(config, label)
    if kind in ("minicheck_t5", "hhem"):
        return JudgeReading(format=kind)
    names = labels_of(config)
    if labels:
        if len(labels) != len(names):
            raise failure("judges.other_number", label=label, given=len(labels), outputs=len(names))
        meanings = _checked(labels, label, several=kind == "spans")
        return JudgeReading(format=kind, labels=meanings)
    if kind == "spans":
        return JudgeReading(format=kind, labels=_of_spans(names, label))
    roles = [label_role(name) for name in names]
    if all(roles):
        return JudgeReading(format=kind, labels=_checked(cast("list[LabelRole]", roles), label))
    if kind in ("minicheck", "factcg") and len(names) == 2:
        # Their authors left the outputs without names; the second one is support.
        return JudgeReading(format=kind, labels=_TWO)
    raise _unclear(names, label)


def _format_of(config: Mapping[str, Any], label: str) -> JudgeFormat:
    name = label.casefold()
    built = " ".join(map(str, config.get("architectures") or ()))
    if config.get("model_type") == "HHEMv2":
        return "hhem"
    if config.get("auto_map") and not _is_known(built):
        raise failure("judges.own_code", label=label)
    if _TOKENS in built:
        return "spans"
    if _CLASSES in built:
        if "factcg" in name:
            return "factcg"
        return "minicheck" if "minicheck" in name else "nli"
    if _WRITES in built:
        if "minicheck" in name:
            return "minicheck_t5"
        raise failure("judges.unclear_format", label=label, formats=[*FORMATS])
    raise failure("judges.no_judge", label=label, built=built or phrase("detail.no_architecture"))


def _is_known(built: str) -> bool:
    """Return whether transformers itself has the classes named in a configuration."""
    import transformers

    return bool(built) and all(hasattr(transformers, name) for name in built.split())


def _of_spans(names: Sequence[str], label: str) -> tuple[LabelRole, ...]:
    """Return meanings of a token's classes: one is support, and all others are kinds of error."""
    if len(names) == 2 and "lettuce" in label.casefold():
        # LettuceDetect's models name them LABEL_0 and LABEL_1.
        return _SPANS
    supported = [
        place
        for place, name in enumerate(names)
        if name.strip().upper() == "O" or label_role(name) == "supported"
    ]
    if len(supported) != 1:
        raise _unclear(names, label)
    return tuple(
        "supported" if place in supported else "unsupported" for place in range(len(names))
    )


def _checked(
    labels: Sequence[LabelRole], label: str, *, several: bool = False
) -> tuple[LabelRole, ...]:
    """Return the same, once exactly one of them is support and nothing is said twice.

    With `several`, other meanings may be repeated: kinds of errors.
    """
    repeated = len(set(labels)) < len(labels) and not several
    if labels.count("supported") != 1 or repeated:
        raise failure("judges.odd_labels", label=label, labels=[*labels])
    return tuple(labels)


def _unclear(names: Sequence[str], label: str) -> Exception:
    return failure("judges.unclear_labels", label=label, names=[*names])


def reads_others(config: Mapping[str, Any], label: str, card: Mapping[str, Any]) -> bool:
    """Return whether a model reads more than English and Chinese, by its card, kind or name."""
    said = card.get("language")
    if not said:
        return reads_chinese(config, label, card)
    listed = [said] if isinstance(said, str) else list(map(str, said))
    return bool({one.casefold() for one in listed} - _ENGLISH - _CHINESE)


def reads_chinese(config: Mapping[str, Any], label: str, card: Mapping[str, Any]) -> bool:
    """Return whether a model reads Chinese too, by its card, its kind or its name.

    The card's `language` decides where there is one.
    """
    said = card.get("language")
    if said:
        listed = [said] if isinstance(said, str) else list(map(str, said))
        known = {one.casefold() for one in listed}
        return bool(known & (_CHINESE | {"multilingual"}))
    name = label.casefold()
    by_name = any(word in name for word in _MULTILINGUAL)
    return by_name or config.get("model_type") in _CHINESE_TOO
