"""Whether an answer claims anything, or only says that the context does not hold the answer."""

from __future__ import annotations

import re

from pipelines.methods.replies.parsing import is_refusal
from pipelines.methods.wording import load_wording
from pipelines.text import split_sentences

__all__ = ["claims_something", "says_nothing"]

_WORDING = load_wording("haarag")
_APOLOGY, _INSUFFICIENT = _WORDING.pattern("sorry"), _WORDING.pattern("insufficient")
_REMARK, _GOES_ON = _WORDING.pattern("remark"), _WORDING.pattern("goes_on")
_CLAUSE_ENDS = re.compile(r"[，；：]|[;:—]")


def says_nothing(text: str) -> bool:
    """Whether all that `text` says is that the context does not suffice; an empty text does not."""
    sentences = [span.text for span in split_sentences(text)]
    insufficient = any(_is_insufficient(one) for one in sentences)
    return insufficient and not any(claims_something(one) for one in sentences)


def claims_something(sentence: str) -> bool:
    """Whether a sentence says more than that the context does not suffice."""
    return not _is_insufficient(sentence) and _REMARK.match(sentence) is None


def _is_insufficient(sentence: str) -> bool:
    bare = sentence.strip().strip("\"'“”‘’「」 ")
    match = _INSUFFICIENT.match(bare)
    if match is None:
        apology = _APOLOGY.match(bare)
        said = bare[apology.end() :] if apology else bare
        return is_refusal(bare) and _GOES_ON.search(said) is None
    # Chinese joins sentences by commas: "资料没有提到他的出生地，他出生在芝加哥。"
    rest = [one.strip() for one in _CLAUSE_ENDS.split(bare[match.end() :])[1:]]
    return _GOES_ON.search(bare, match.end()) is None and all(
        not one or _INSUFFICIENT.match(one) or _REMARK.match(one) for one in rest
    )
