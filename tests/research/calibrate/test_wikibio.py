"""Sentences of annotated biographies: read, scored and measured by hand."""

from __future__ import annotations

import json
from math import inf, log
from pathlib import Path

import pytest

from pipelines.base import Generation, Token
from pipelines.errors import InvalidInputError
from pipelines.evaluation.datasets.published import Biography
from pipelines.methods.drad.detection import EntityReading
from pipelines.models.base import Capabilities, GenerationRequest, Model, ScoreRequest, Watcher
from research.calibrate.wikibio import ScoredSentence, measure, measured, score_sentences
from research.samples.files import read_biographies

ADA = Biography(
    concept="ada example",
    gpt3_text="Ada was born in Berlin. She sang.",
    gpt3_sentences=("Ada was born in Berlin.", "She sang."),
    annotation=("minor_inaccurate", "accurate"),
    wiki_bio_text="",
)


def words(text: str, *probabilities: float) -> list[Token]:
    """A token a word, with these probabilities and entropies of 1, 2, 3, ... nats."""
    tokens, position = [], 0
    for number, (word, probability) in enumerate(
        zip(text.split(" "), probabilities, strict=True), start=1
    ):
        piece = f" {word}" if position else word
        end = position + len(piece)
        tokens.append(
            Token(text=piece, start=position, end=end, logprob=log(probability), entropy=number)
        )
        position = end
    return tokens


TOKENS = words(ADA.gpt3_text, 0.5, 0.8, 0.8, 0.8, 0.25, 0.9, 0.4)


class Proxy(Model):
    """Gives every text the same tokens."""

    name = "proxy"
    _capabilities = Capabilities(logprobs=True, scores=True)

    def __init__(self) -> None:
        self.asked: list[ScoreRequest] = []

    async def generate(
        self, request: GenerationRequest, watch: Watcher | None = None
    ) -> tuple[Generation, ...]:
        raise AssertionError("A proxy writes nothing.")

    async def score(self, request: ScoreRequest) -> Generation:
        self.asked.append(request)
        return Generation(text=request.text, tokens=tuple(TOKENS))


def entity(text: str, start: int, token: int) -> EntityReading:
    return EntityReading(
        text=text,
        start=start,
        end=start + len(text),
        label="MISC",
        first=token,
        stop=token + 1,
        sentence=0,
        sentence_start=0,
        probabilities=(TOKENS[token].probability or 0.0,),
        entropies=(TOKENS[token].entropy or 0.0,),
    )


def test_a_sentence_scores_as_its_least_confident_entity():
    first, second = score_sentences(ADA, TOKENS, [entity("Ada", 0, 0), entity("Berlin", 16, 4)])
    assert first.false
    assert first.scores["rhd_probability_mean"] == pytest.approx(-0.25)
    assert first.scores["rhd_entropy_max"] == 5
    # -ln of 0.5, 0.8, 0.8, 0.8, 0.25, and the mean of them.
    assert first.scores["token_probability_min"] == pytest.approx(-log(0.25))
    assert first.scores["token_probability_mean"] == pytest.approx(-log(0.5 * 0.8**3 * 0.25) / 5)
    assert not second.false
    assert not second.has_entity
    assert second.scores["rhd_probability_mean"] == second.scores["rhd_entropy_max"] == -inf
    assert second.scores["token_probability_min"] == pytest.approx(-log(0.4))
    assert second.scores["token_probability_mean"] == pytest.approx(-log(0.9 * 0.4) / 2)


def scored(false: bool, rhd: float, token: float) -> ScoredSentence:
    return ScoredSentence(
        false=false,
        has_entity=rhd > -inf,
        scores={
            "rhd_probability_mean": rhd,
            "rhd_entropy_max": -rhd if rhd > -inf else -inf,
            "token_probability_mean": token,
            "token_probability_min": -token,
        },
    )


def test_sentences_without_entities_come_last_or_are_left_out():
    found = measured([scored(True, -0.2, 3.0), scored(False, -0.6, 2.0), scored(True, -inf, 1.0)])
    assert found["all_sentences"] == {
        "sentences": 3,
        "base_rate": 0.6667,
        "rhd_probability_mean": 0.8333,  # T F (T): 1/2 * 1 + 1/2 * 2/3
        "rhd_entropy_max": 0.5833,  # F T (T): 1/2 * 1/2 + 1/2 * 2/3
        "token_probability_mean": 0.8333,  # T F T
        "token_probability_min": 0.8333,  # T F T from the other end
    }
    assert found["sentences_with_entities"] == {
        "sentences": 2,
        "base_rate": 0.5,
        "rhd_probability_mean": 1.0,
        "rhd_entropy_max": 0.5,
        "token_probability_mean": 1.0,
        "token_probability_min": 0.5,
    }


def test_factual_and_false_sentences_are_needed():
    with pytest.raises(InvalidInputError, match="factual and non-factual"):
        measured([scored(True, -0.2, 3.0)])


async def test_every_text_is_read_as_an_answer_about_its_subject(
    capsys: pytest.CaptureFixture[str],
):
    proxy = Proxy()
    other = ADA.model_copy(update={"annotation": ("accurate", "accurate")})
    found = await measure(proxy, [ADA, other])
    assert found["records"] == 2
    assert found["all_sentences"]["sentences"] == 4
    assert found["all_sentences"]["base_rate"] == 0.25
    # "She sang." names nobody in either; the other two sentences tie: 1 of 2 is false.
    assert found["sentences_with_entities"]["sentences"] == 2
    assert found["sentences_with_entities"]["rhd_probability_mean"] == 0.5
    assert proxy.asked[0].messages[0].content == "Write an encyclopedia article about Ada Example."
    assert proxy.asked[0].reproducible
    assert "2/2" in capsys.readouterr().err


def record(number: int, **fields: object) -> str:
    values = {
        "dataset_idx": number,
        "concept": f"person {number}",
        # U+2028 ends a line for some, but not a record.
        "gpt3_text": "One.\u2028Two.",
        "gpt3_sentences": ["One.", "Two."],
        "annotation": ["accurate", "major_inaccurate"],
        "wiki_bio_text": "Three.",
    }
    return json.dumps(values | fields, ensure_ascii=False)


def test_the_odd_records_of_a_file_are_read(tmp_path: Path):
    path = tmp_path / "records.jsonl"
    path.write_text("\n".join(map(record, range(5))) + "\n", encoding="utf-8")
    found = read_biographies(path, 1)
    assert [biography.concept for biography in found] == ["person 1", "person 3"]
    assert [(s.start, s.end) for s in found[0].sentences()] == [(0, 4), (5, 9)]


@pytest.mark.parametrize(
    "content", ["not json", '{"concept": "ada"}', record(0, annotation=["accurate"])]
)
def test_a_file_with_something_else_is_refused(tmp_path: Path, content: str):
    path = tmp_path / "records.jsonl"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(InvalidInputError, match=r"records\.jsonl cannot be used"):
        read_biographies(path, 1)


def test_a_sentence_that_its_text_lacks_is_refused():
    torn = ADA.model_copy(update={"gpt3_sentences": ("She sang.", "Ada was born in Berlin.")})
    with pytest.raises(InvalidInputError, match="ada example"):
        torn.sentences()
