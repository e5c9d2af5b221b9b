"""Text with exact offsets: languages, sentences, entities, and tokens aligned to characters."""

from pipelines.text.alignment import Span, by_characters, token_spans, tokens_covering
from pipelines.text.entities import Entity, EntityRecognizer
from pipelines.text.languages import changes_to_chinese, detect_language, has_han
from pipelines.text.sentences import repeats_question, split_sentences, text_key
from pipelines.text.thinking import is_thinking, without_thinking

__all__ = [
    "Entity",
    "EntityRecognizer",
    "Span",
    "by_characters",
    "changes_to_chinese",
    "detect_language",
    "has_han",
    "is_thinking",
    "repeats_question",
    "split_sentences",
    "text_key",
    "token_spans",
    "tokens_covering",
    "without_thinking",
]
