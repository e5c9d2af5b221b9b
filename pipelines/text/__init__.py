"""Text with exact offsets: languages, sentences, entities, and tokens aligned to characters."""

from pipelines.text.align import token_spans, tokens_covering
from pipelines.text.entities import Entity, EntityRecognizer
from pipelines.text.languages import detect_language
from pipelines.text.repeats import repeats_question
from pipelines.text.sentences import sentence_at, split_sentences
from pipelines.text.spans import Span
from pipelines.text.thinking import is_thinking, without_thinking

__all__ = [
    "Entity",
    "EntityRecognizer",
    "Span",
    "detect_language",
    "is_thinking",
    "repeats_question",
    "sentence_at",
    "split_sentences",
    "token_spans",
    "tokens_covering",
    "without_thinking",
]
