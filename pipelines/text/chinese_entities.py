"""Entities of Chinese text by rules and by jieba's parts of speech."""

from __future__ import annotations

from pipelines.text.chinese_names import chinese_name_candidates
from pipelines.text.chinese_numbers import chinese_number_candidates
from pipelines.text.entity_types import Candidate
from pipelines.text.segmentation import tagged_words

__all__ = ["chinese_candidates"]


def chinese_candidates(text: str) -> list[Candidate]:
    """Candidates for entities in the Chinese parts of `text`, which may overlap."""
    tagged = tagged_words(text)
    return [*chinese_number_candidates(text, tagged), *chinese_name_candidates(text, tagged)]
