import pytest

from components.messages import Catalogue
from components.names import named


@pytest.mark.parametrize(
    ("kind", "name", "words"),
    [
        ("method", "rag", "RAG"),
        ("step", "draft", "Writing the answer"),
        ("role", "verifier", "verifier"),
        ("score", "entity_entropy", "H(E), entity entropy in nats"),
        ("entity.label", "GPE", "place"),
        ("evidence.score", "bm25", "BM25"),
    ],
)
def test_names_the_engine_uses_have_words(t: Catalogue, kind: str, name: str, words: str) -> None:
    assert named(kind, name, t) == words


def test_a_name_without_words_stays_and_hides_nothing(t: Catalogue) -> None:
    assert named("method", "brand\u202enew", t) == "brand⟨U+202E⟩new"
