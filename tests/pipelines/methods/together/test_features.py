"""What is computed from passages, by hand, and what is read from the events of detectors."""

from __future__ import annotations

from math import log

import pytest

from pipelines.base import Passage
from pipelines.methods.together.features import (
    BestEvidence,
    SentenceReadings,
    evidence_of,
    feature_names,
    features_of,
    log_odds,
    other_thing_told,
    passages_of,
    sentence_readings,
)
from pipelines.models.base import JUDGE, OPENAI, Capabilities
from pipelines.run.events import Score
from pipelines.text import split_sentences
from tests.scripted.checked import BORN, DIED, TEXT, Run

WEAK = Capabilities(judges=False)


def passage(text: str, title: str = "Marie Curie", name: str = "p") -> Passage:
    return Passage(id=name, title=title, text=text, source="library")


CURIE = passage("She was born in Warsaw in 1867. She never held a patent.")
DARWIN = passage("He sailed on HMS Beagle. He died in Kent.", "Charles Darwin", "d")


def test_the_sentence_with_most_of_the_words_is_the_evidence_and_the_title_names_its_subject():
    found = evidence_of("Marie Curie was born in Warsaw in 1867.", [DARWIN, CURIE])
    assert (found.sentence, found.passage) == ("She was born in Warsaw in 1867.", "p")
    # marie, curie, born, warsaw, 1867: three in the sentence, two in the title.
    assert found.shared == 1.0
    assert found.missing_words == found.missing_names == found.missing_numbers == ()
    assert found.subject


def test_what_the_passage_does_not_have_is_named():
    found = evidence_of("Marie Curie was born in Vienna in 1876.", [CURIE])
    assert found.missing_names == ("Vienna",)
    assert found.missing_numbers == ("1876",)
    assert found.other_numbers
    assert found.missing_words == ("Vienna", "1876")
    # marie, curie, born of five words.
    assert found.shared == pytest.approx(3 / 5)


def test_a_name_of_another_sentence_stands_apart():
    text = passage("Peter Fechter was shot. Later Schabowski spoke.", "Berlin Wall")
    found = evidence_of("Schabowski was shot.", [text])
    assert found.missing_names == ()
    assert found.names_apart == ("Schabowski",) or found.sentence == "Later Schabowski spoke."


def test_one_negation_makes_the_difference_and_two_do_not():
    assert evidence_of("Marie Curie held a patent.", [CURIE]).denies
    assert not evidence_of("Marie Curie never held a patent.", [CURIE]).denies
    assert evidence_of("居里夫人申请了专利。", [passage("她没有申请专利。", "居里夫人")]).denies


def test_words_the_other_way_round_are_in_disorder():
    text = passage("Fust sued Gutenberg.", "Gutenberg Bible")
    assert evidence_of("Fust sued Gutenberg.", [text]).disorder == 0
    # sued before fust: gutenberg > sued, sued > fust.
    assert evidence_of("Gutenberg sued Fust.", [text]).disorder == 1


def test_a_subject_that_no_passage_names_is_unknown():
    assert not evidence_of("Bach was born in Eisenach.", [CURIE, DARWIN]).subject
    assert evidence_of("He sailed on a ship.", [DARWIN], "Charles Darwin was born.").subject


def test_a_statement_without_words_has_no_evidence():
    assert evidence_of("Never?", [CURIE]).sentence in ("", CURIE.text.split(". ")[1])
    assert evidence_of("...", [CURIE]) == BestEvidence()


def test_readings_are_log_odds_kept_from_the_ends():
    said = SentenceReadings(values={"judge": 0.8, "concepts": 0.5}, against=0.25)
    found = features_of(said, BestEvidence(shared=0.5, subject=True))
    assert found["judge"] == pytest.approx(log(4))
    assert (found["concepts"], found["concepts_against"], found["no_subject"]) == (0.5, 0.25, 0.0)
    assert set(feature_names(("judge", "concepts"))) <= set(found)
    assert log_odds(0.0) == pytest.approx(-log_odds(1.0)) == pytest.approx(log(0.005 / 0.995))


def test_a_sentence_of_haarag_counts_by_its_entailment_and_only_where_a_judge_gave_it():
    run = Run("haarag")
    run.begin("haarag", {"main": WEAK, "judge_1": JUDGE})
    scores = (Score(name="sentence_alignment", value=0.9), Score(name="entailment", value=0.2))
    run.judge("haarag", "sentence", BORN, "supported", scores=scores)
    spans = split_sentences(TEXT)
    # No call of a judge was recorded: whose number it is is not known.
    assert sentence_readings(run.view.methods.values(), spans)[0].values == {}
    run.choose("haarag", "judge_1", "Veriscope judge")
    first, second = sentence_readings(run.view.methods.values(), spans)
    assert first.values == {"aligned": 0.2}
    assert first.methods == {"aligned": ("haarag",)}
    assert second.values == {}


def test_cells_count_by_what_their_model_is_and_word_overlap_does_not():
    run = Run("slm")
    models = {"main": WEAK, "judge_1": JUDGE, "judge_2": JUDGE, "judge_3": OPENAI}
    run.begin("slm", models)
    for role, name, value in (
        ("judge_1", "Veriscope judge", 0.7),
        ("judge_2", "Word overlap", 0.9),
        ("judge_3", "some model", 0.1),
    ):
        run.choose("slm", role, name)
        run.cell("slm", DIED, role, name, value)
    _, second = sentence_readings(run.view.methods.values(), split_sentences(TEXT))
    assert second.values == {"judge": 0.7, "model": 0.1}
    assert passages_of(run.view.methods.values()) == ()


@pytest.mark.parametrize(
    ("sentence", "question", "other"),
    [
        ("Leonardo da Vinci painted The Last Supper.", "Who painted the Mona Lisa?",
         "The Last Supper"),
        ("The Last Supper was painted by Leonardo.", "Who painted the Mona Lisa?",
         "The Last Supper"),
        ("Jane Austen wrote Emma.", "Who wrote Pride and Prejudice?", "Emma"),
        ("Leonardo da Vinci painted the Mona Lisa.", "Who painted the Mona Lisa?", ""),
        ("Lisa's portrait was painted by Leonardo.", "Who painted the Mona Lisa?", ""),
        ("Leonardo da Vinci.", "Who painted the Mona Lisa?", ""),
        ("Leonardo painted it in Florence.", "Who painted the Mona Lisa?", ""),
        ("The tower was designed by Sauvestre and Koechlin.", "Who designed the Eiffel Tower?", ""),
        ("Neil Armstrong walked on the Moon.", "Who walked first?", ""),
        ("莱奥纳多画了《最后的晚餐》。", "谁画了《蒙娜丽莎》？", ""),
    ],
)  # fmt: skip
def test_a_sentence_about_another_thing_is_known_by_its_name(
    sentence: str, question: str, other: str
):
    assert other_thing_told(sentence, question) == other
