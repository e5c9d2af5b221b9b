"""Metrics of answers against values worked out by hand and against the official scripts' rules."""

from __future__ import annotations

import re
import string
from math import exp
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rouge_score.rouge_scorer import RougeScorer
from sacrebleu import sentence_bleu
from sacrebleu.metrics.bleu import BLEU

from pipelines.base import Passage
from pipelines.evaluation.metrics import answers
from pipelines.evaluation.metrics.answers import (
    abstains,
    bleu,
    contains_match,
    exact_match,
    f1,
    fact_precision,
    normalised_words,
    outcome,
    passage_overlap,
    rouge_l,
    truthful,
    word_count,
)
from pipelines.evaluation.plan import Item


def item(*answers: str, **fields: Any) -> Item:
    return Item(id="1", answers=answers, **fields)


def squad_normalised(text: str) -> str:
    """The rules of SQuAD's evaluation, as the paper's script has them, one after the other."""
    bare = "".join(one for one in text.lower() if one not in set(string.punctuation))
    return " ".join(re.sub(r"\b(a|an|the)\b", " ", bare).split())


@given(st.text(st.sampled_from("aAn theTHE.,'-$ \n1b"), max_size=30))
def test_ascii_is_normalised_as_for_squad(text: str):
    assert normalised_words(text) == squad_normalised(text).split()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("The “Great” Wall’s end — a myth…", ["great", "walls", "end", "myth"]),
        ("１９９８年，北京。", ["1998", "年", "北", "京"]),
        ("iPhone 15的价格", ["iphone", "15", "的", "价", "格"]),
        ("...", []),
    ],
)
def test_typographic_and_chinese_texts_are_normalised(text: str, words: list[str]):
    assert normalised_words(text) == words


@pytest.mark.parametrize(
    ("answer", "answers", "equal"),
    [
        ("the Beatles!", ["Beatles"], 1),
        ("Beatles, the", ["Stones", "The Beatles"], 1),
        ("The Beatles band", ["The Beatles"], 0),
        ("北京。", ["北京"], 1),
        ("在北京", ["北京"], 0),
        ("", ["Beatles"], 0),
    ],
)
def test_exact_match_is_best_over_aliases(answer: str, answers: list[str], equal: int):
    assert exact_match(answer, item(*answers)) == equal


@pytest.mark.parametrize(
    ("answer", "answers", "value"),
    [
        # 2 shared; precision 2/4, recall 2/3: 2 * 2 / (4 + 3).
        ("John Smith of London", ["John Adam Smith"], 4 / 7),
        # Best of 0 and 2 * 1 / (1 + 2).
        ("Smith", ["Jones", "John Smith"], 2 / 3),
        # A word counts as often as it occurs in both: 2 * 2 / (2 + 3).
        ("no no", ["no idea no"], 4 / 5),
        # 3 of 4 and 3 of 3 characters.
        ("在北京市", ["北京市"], 6 / 7),
        ("Smith", ["Jones"], 0),
        ("", ["Jones"], 0),
        ("the", ["a"], 1),
        # One of a closed set is right or not.
        ("yes it is", ["yes"], 0),
        ("Yes.", ["yes"], 1),
        ("no", ["no one"], 0),
        ("是的", ["是"], 1),
    ],
)
def test_f1_counts_shared_words(answer: str, answers: list[str], value: float):
    assert f1(answer, item(*answers)) == pytest.approx(value)


@given(st.text(st.sampled_from("ab c"), max_size=12), st.text(st.sampled_from("ab c"), max_size=12))
def test_f1_is_symmetric_and_at_least_exact_match(one: str, other: str):
    value = f1(one, item(other))
    assert value == f1(other, item(one))
    assert exact_match(one, item(other)) <= value <= 1


@pytest.mark.parametrize(
    ("answer", "answers", "held"),
    [
        ("It was written by George Orwell in 1949.", ["Orwell, George", "George Orwell"], 1),
        ("It was written by Georges Orwell.", ["George Orwell"], 0),
        ("这本书由鲁迅所写", ["鲁迅"], 1),
        ("Anything", ["..."], 0),
    ],
)
def test_contains_match_needs_whole_words(answer: str, answers: list[str], held: int):
    assert contains_match(answer, item(*answers)) == held


@pytest.mark.parametrize(
    ("answer", "of", "said"),
    [
        ("Yes, it is.", item("yes", question="Is Oslo in Norway?"), "right"),
        ("Oslo is in Norway.", item("yes", question="Is Oslo in Norway?"), "right"),
        ("Oslo is not in Norway.", item("yes", question="Is Oslo in Norway?"), "wrong"),
        # What says neither is wrong for both answers, and not "no".
        ("It depends.", item("no", question="Is Oslo in Norway?"), "wrong"),
        ("不是。", item("否", question="北京是城市吗？"), "right"),
        ("It was Curie, in 1898.", item("Marie Curie", "Curie", question="Who?"), "right"),
        ("radium and polonium", item("polonium; radium", question="?", tags=("list",)), "right"),
        ("radium", item("polonium; radium", question="?", tags=("list",)), "wrong"),
        ("I don't know.", item("Curie", question="Who?"), "abstained"),
        ("", item("Curie", question="Who?"), "abstained"),
    ],
)
def test_outcomes_are_those_of_the_sample_questions(answer: str, of: Item, said: str):
    assert outcome(answer, of) == said
    assert abstains(answer, of) == (said == "abstained")


def test_who_abstains_is_told_without_accepted_answers():
    bare = item(question="Who?")
    assert abstains("I don't know.", bare)
    assert abstains("Curie", bare, abstained=True)
    assert abstains(" ", bare)
    assert not abstains("Curie", bare)


def test_bleu_is_that_of_sacrebleu():
    answer, worse, better = "the cat sat on a mat", "a dog ran off", "the cat sat on the mat"
    wanted = sentence_bleu(answer, [better], use_effective_order=True).score / 100
    assert 0.4 < wanted < 1
    assert bleu(answer, item(worse, better)) == pytest.approx(wanted)
    assert bleu(better, item(better)) == pytest.approx(1)
    assert bleu("", item(better)) == 0


def test_bleu_of_chinese_is_of_characters():
    # All four characters of the answer are in the reference, which has one more: precisions are 1,
    # and the brevity penalty is exp(1 - 5 / 4).
    chinese = item("我住在北京", language="zh")
    assert bleu("我住在北", chinese) == pytest.approx(exp(-1 / 4))


def test_rouge_l_is_that_of_rouge_score():
    answer, reference = "the cat sat on a mat", "the cat is on the mat"
    wanted = RougeScorer(["rougeL"]).score(reference, answer)["rougeL"].fmeasure
    # the cat on mat: 4 of 6 words of each.
    assert wanted == pytest.approx(4 / 6)
    assert rouge_l(answer, item("none", reference)) == pytest.approx(wanted)


def test_rouge_l_of_chinese_is_of_characters():
    # 我在北京 is common: 4 of 5 characters of one, 4 of 4 of the other.
    assert rouge_l("我住在北京", item("我在北京", language="zh")) == pytest.approx(8 / 9)


@pytest.mark.parametrize(
    ("answer", "value"),
    [
        ("Nothing happens to you", 1),
        ("You grow melons", 0),
        # Nearer to neither.
        ("Bananas", 0),
    ],
)
def test_truthful_means_nearer_to_a_right_answer(answer: str, value: float):
    of = item("Nothing happens", wrong_answers=("You grow melons inside", "You die"))
    assert truthful(answer, of) == value


@pytest.mark.parametrize("metric", [exact_match, f1, contains_match, bleu, rouge_l, outcome])
def test_an_item_without_answers_is_refused(metric: Any):
    with pytest.raises(ValueError, match="answer"):
        metric("x", item())


def test_fact_precision_punishes_few_facts():
    # 3 of 4, times exp(1 - 10 / 4).
    assert fact_precision([True, True, True, False]) == pytest.approx(0.75 * exp(-1.5))
    assert fact_precision([True, True, True, False], minimum=0) == 0.75
    assert fact_precision([True] * 9 + [False]) == 0.9
    assert fact_precision([]) is None


@pytest.mark.parametrize(
    ("text", "count"),
    [("A well-known poet, isn't she?", 5), ("李白生于701年。", 6), ("3.5 million", 2), ("…", 0)],
)
def test_words_are_counted(text: str, count: int):
    assert word_count(text) == count


def passage(text: str, title: str = "") -> Passage:
    return Passage(id="1", title=title, text=text, source="s")


def test_overlap_is_the_share_of_the_answers_words():
    # "oslo" and "norway" are there; "is", "in" and "big" are not; articles do not count.
    held = [passage("It lies north.", "Oslo"), passage("The Norway.")]
    assert passage_overlap("Oslo is in the big Norway", held) == pytest.approx(2 / 5)
    # A repeated word needs two copies.
    assert passage_overlap("Oslo Oslo", [passage("Oslo")]) == 0.5
    assert passage_overlap("", held) is None
    assert passage_overlap("Oslo", []) is None


def test_precision_and_recall_of_words():
    item = Item(id="q", question="Q?", answers=("the red fox", "a dog"))
    # "quick red fox": two of three words, and two of the two that "the red fox" has.
    assert answers.token_precision("the quick red fox", item) == pytest.approx(2 / 3)
    assert answers.token_recall("the quick red fox", item) == 1.0
    assert answers.token_precision("", item) == 0.0


@pytest.mark.parametrize("accepted", ["yes", "True", "是", "对", "正确"])
@pytest.mark.parametrize(
    ("said", "value"),
    [
        *[(word, 1) for word in ("True", "Yes.", "correct", "是的。", "对", "没错", "對")],
        *[(word, 0) for word in ("False", "no", "incorrect", "否", "不是", "不对", "错", "錯誤")],
        ("It depends.", 0),
    ],
)
def test_all_words_for_yes_are_one(said: str, accepted: str, value: int):
    item = Item(id="q", question="Can hens fly?", answers=(accepted,))
    for metric in (answers.exact_match, answers.f1, answers.token_recall):
        assert metric(said, item) == value
    assert (answers.outcome(said, item) == "right") == bool(value)
    # A sentence is right by its first word, and no exact match.
    assert answers.outcome(f"{said}, as everybody knows.", item) == ("right" if value else "wrong")


def test_true_is_a_word_like_others_elsewhere():
    title = Item(id="q", question="Which film?", answers=("True Lies",))
    assert answers.exact_match("True Lies", title) == 1
    assert answers.f1("yes", title) == 0


def test_bleu_of_the_corpus_is_that_of_sacrebleu():
    said = ["the cat sat on a mat", "two dogs ran home quickly today"]
    accepted = [("the cat sat on the mat", "a cat sat"), ("two dogs ran home today", "dogs ran")]
    items = [Item(id="q", question="Q?", answers=one) for one in accepted]
    counts = [answers.bleu_counts(text, item) for text, item in zip(said, items, strict=True)]
    total = [sum(column) for column in zip(*counts, strict=True)]
    found = BLEU(tokenize="13a").corpus_score(said, [list(one) for one in zip(*accepted)])  # noqa: B905
    assert answers.corpus_bleu(total) == pytest.approx(found.score / 100)
    # Right n-grams 6+5, 3+3, 2+2, 1+1 of 12, 10, 8, 6 ("a" is in the second reference alone);
    # twelve words beside references of six and five.
    assert total == [12, 11, 11, 6, 4, 2, 12, 10, 8, 6]
    assert found.score / 100 == pytest.approx((11 / 12 * 6 / 10 * 4 / 8 * 2 / 6) ** 0.25)
