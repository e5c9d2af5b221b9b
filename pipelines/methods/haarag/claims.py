"""Whether an answer claims anything, or only says that the context does not hold the answer."""

from __future__ import annotations

import re

from pipelines.methods.replies.parsing import is_refusal
from pipelines.text import split_sentences

__all__ = ["claims_something", "says_nothing"]

_CONTEXT = (
    r"(?:(?:the|this|these|none of the) (?:(?:provided|given|supplied|above|available) )?|"
    r"(?:provided|given|available) )"
    r"(?:context|passages?|texts?|information|documents?|evidence|sources?)\b"
)
_SORRY = (
    r"(?:unfortunately|sorry|i(?: a|['’])m sorry|i apologi[sz]e|(?:很|非常)?(?:抱歉|遗憾)|对不起)"
    r"[,，.。]?\s*(?:but )?"
)
_APOLOGY = re.compile(rf"\A{_SORRY}", re.IGNORECASE)
_BY = r"(?:(?:based|going) (?:only |solely )?(?:on|by)|according to|judging by|from|in)"
_INSUFFICIENT = re.compile(
    rf"(?:{_SORRY})?(?:"
    # "The context does not say where", "Based on the passages, it is not possible to tell"
    rf"(?:{_BY} )?{_CONTEXT}[^.]{{0,40}}?\b(?:(?:does|do)(?: not|n['’]t) (?:\w+ly )?"
    r"(?:contain|mention|provide|say|state|include|specify|answer|tell|give|address|indicate|hold)"
    r"|(?:is|are) (?:not (?:enough|sufficient|possible|clear)|insufficient)"
    r"|says? nothing|(?:can ?not|can['’]t) (?:be )?(?:answer|determine|tell|say)"
    r"|there (?:is|are) no)"
    # "There is no information on it", "His birthplace is not mentioned in the passages"
    r"|(?:there (?:is|are)|i have|i (?:can )?find) (?:no|not enough|insufficient) "
    r"(?:context|information|evidence|mention|details?)\b"
    rf"|[^.]{{0,80}}?\b(?:is|are|was|were) not (?:\w+ly )?"
    rf"(?:mentioned|stated|specified|given|provided|found|answered)\b[^.]{{0,20}}?\b(?:in|by) "
    rf"{_CONTEXT}"
    r"|i (?:do not|don['’]t) know\b"
    r"|(?:根据|从|依据|由)?(?:所给|给出|提供|上述|以上|现有|这些)?的?"
    r"(?:资料|材料|上下文|文本|段落|信息|文中)[^。]{0,16}?(?:没有|并未|未能|未提|未说|不足|无法|不能)"
    r"|我?不知道)",
    re.IGNORECASE,
)
# What may follow without claiming anything: what else the context holds, that no answer follows.
_REMARK = re.compile(
    rf"(?:it|they|{_CONTEXT}) (?:only|just|merely) |"
    r"(?:so|therefore|thus|hence)?,? ?(?:i|we|it|this|the (?:question|answer)) "
    r"(?:can ?not|can['’]t|(?:am|is) (?:unable|not possible))|please |"
    r"(?:因此|所以|故)?(?:我|我们|问题)?(?:无法|不能|难以)(?:确定|回答|判断|得知|给出|知道)|"
    r"(?:它|其|资料|文中|其中|里面)?(?:只|仅)(?:是|有)?(?:提到|提及|说|介绍|涉及)|请",
    re.IGNORECASE,
)
_GOES_ON = re.compile(
    r"\b(?:but|however|although|though|still|yet|nevertheless|instead)\b|"
    r"[,;:—–] ?(?:he|she|it|they) (?:is|was|are|were|has|had)\b|但|不过|然而|可是|其实|实际上",
    re.IGNORECASE,
)
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
        said = _APOLOGY.sub("", bare)
        return is_refusal(bare) and _GOES_ON.search(said) is None
    # Chinese joins sentences by commas: "资料没有提到他的出生地，他出生在芝加哥。"
    rest = [one.strip() for one in _CLAUSE_ENDS.split(bare[match.end() :])[1:]]
    return _GOES_ON.search(bare, match.end()) is None and all(
        not one or _INSUFFICIENT.match(one) or _REMARK.match(one) for one in rest
    )
