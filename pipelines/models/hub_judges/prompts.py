"""The texts that judges were trained on: they have to be put in these very words.

Sources: the published code of MiniCheck (Tang, Laban and Durrett 2024) and FactCG (Lei and others
2025), the configuration of HHEM-2.1-open (Vectara 2024), and RAGTruth's instructions (Niu and
others 2024), on which LettuceDetect was trained (Kovács and Recski 2025).
"""

from __future__ import annotations

from pipelines.models.hub_judges.formats import JudgeFormat
from pipelines.models.hub_judges.windows import JudgedTexts

Texts = tuple[str, ...]
"""One text, or a pair of texts that the tokenizer joins."""

_HHEM = (
    "<pad> Determine if the hypothesis is true given the premise?\n\n"
    "Premise: {document}\n\nHypothesis: {statement}"
)
_FACTCG = (
    "{document}\n\nChoose your answer: based on the paragraph above can we conclude that"
    ' "{statement}"?\n\nOPTIONS:\n- Yes\n- No\nI think the answer is '
)
_ANSWER_TO = (
    "Briefly answer the following question:\n{question}\nBear in mind that your response should be"
    " strictly based on the following {count} passages:\n{passages}\nIn case the passages do not"
    " contain the necessary information to answer the question, please reply with:"
    ' "Unable to answer based on given passages."\noutput:\n'
)
_SUMMARY = "Summarize the following text:\n{passages}\noutput:\n"


def prompt_of(kind: JudgeFormat, texts: JudgedTexts, end: str) -> Texts:
    """Return what a judge of that kind reads of `texts`; `end` is the end mark of its tokenizer."""
    document, asked = texts.document, texts.asked
    # Braces in a text are no placeholders: what is put in is not formatted again.
    match kind:
        case "nli":
            return document, asked
        case "minicheck":
            return (f"{document}{end}{asked}",)
        case "minicheck_t5":
            return (f"predict: {document}{end}{asked}",)
        case "hhem":
            return (_HHEM.format(document=document, statement=asked),)
        case "factcg":
            return (_FACTCG.format(document=document, statement=asked),)
        case "spans":
            if not texts.question:
                return _SUMMARY.format(passages=document), texts.statement
            prompt = _ANSWER_TO.format(
                question=texts.question, count=texts.passages, passages=document
            )
            return prompt, texts.statement
