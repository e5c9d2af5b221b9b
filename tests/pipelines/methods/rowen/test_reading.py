"""How Rowen reads what a model wrote: paraphrases, translations, yes and no, no answer at all."""

from __future__ import annotations

import json
import re

import pytest

from pipelines.methods.base import Question
from pipelines.methods.replies.lists import asks_yes_or_no, says_yes, shares_words
from pipelines.methods.replies.paraphrases import paraphrases_in
from pipelines.methods.replies.parsing import declines
from pipelines.methods.rowen.reading import translation_pattern, why_no_translation
from pipelines.text import detect_language


@pytest.mark.parametrize(
    "answer",
    ["I don't know.", "I do not know who did.", "I have no comment.", "I'm not sure.", "不知道。",
     "我不清楚", "对不起，我不知道", "Ich weiß es nicht.", "Je ne sais pas.", "No sé.",
     "わかりません。", "Sorry, I don't know."],
)  # fmt: skip
def test_no_answer_is_recognised(answer):
    assert declines(answer)


@pytest.mark.parametrize(
    "answer",
    ["Nobody knows.", "None", "No", "It is unknown.", "不知火", "是", "Nobel", "I think Hope.",
     "No one won.", "我认为是霍普"],
)  # fmt: skip
def test_an_answer_is_an_answer(answer):
    assert not declines(answer)


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("Is it true?", True),
        ("In 1995, did he win?", True),
        ("Couldn't Aristotle swim?", True),
        ("Where is it?", False),
        ("Who has won?", False),
        ("他出生在霍普吗？", True),
        ("他是不是总统？", True),
        ("鲸鱼会不会飞？", True),
        ("谁出生在霍普？", False),
    ],
)
def test_questions_of_yes_or_no(question, expected):
    assert asks_yes_or_no(asked(question)) is expected


@pytest.mark.parametrize(
    ("answer", "expected"),
    [("Yes, it is.", True), ("no", False), ("不是。", False), ("是的。", True), ("没有。", False),
     ("Ja, sicher.", True), ("Nein.", False), ("Non.", False), ("Sí.", True), ("はい", True),
     ("Of course.", True), ("Certainly not.", False), ("当然！", True), ("当然不是。", False),
     ("No one did.", None), ("Hope", None), ("Yes or no", None)],
)  # fmt: skip
def test_yes_and_no_in_several_languages(answer, expected):
    assert says_yes(answer) is expected


def asked(text: str) -> Question:
    return Question(text=text, language=detect_language(text))


def taken(reply: str, question: str = "Where?", known: tuple[str, ...] = ()) -> list[str]:
    return paraphrases_in(reply, asked(question), known)[0]


def test_paraphrases_are_cleaned():
    reply = "1. Where was he born?\n2. where was HE born\n\n3) His place of birth?\n4. Where?"
    found = taken(reply)
    assert found == ["Where was he born?", "His place of birth?"]
    more = "1. His place of birth!\n2. In which town?\n3. Hope"
    assert taken(more, known=tuple(found)) == ["In which town?"]
    assert taken("1. 他生于哪里？\n2. 哪里", "他在哪里出生？") == ["他生于哪里？"]
    assert taken("I'm sorry, I can't help with that.") == []
    assert taken("1. " + "long " * 200 + "?") == []


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        # What the embedded model wrote as paraphrases of "In which year did Nelson Mandela die?"
        ("Nelson Mandela died in 2013!", "statement"),
        ("1984: Nelson Mandela died in 1984!", "statement"),
        # A question with its answer would give it away.
        ("When did Mandela die? In 2013.", "statement"),
        ("The place where he died", "statement"),
        ("Wann und wo ist Nelson Mandela gestorben?", "language"),
        ("Quand est mort Nelson Mandela et où ?", "language"),
        ("曼德拉是哪一年去世的？", "language"),
        ("in WHICH year did Nelson Mandela die", "repeated"),
        ("Mandela?", "unusable"),
    ],
)
def test_what_is_no_paraphrase_is_discarded_with_its_reason(text, reason):
    question = asked("In which year did Nelson Mandela die?")
    reply = json.dumps({"questions": [text, "What year did he die?"]})
    assert paraphrases_in(reply, question) == (["What year did he die?"], [(text, reason)])


@pytest.mark.parametrize(
    "text",
    [
        "When did Nelson Mandela die",
        "In what year was his death",
        "Tell me the year of Mandela's death.",
        "Do you know when Mandela died?",
        "Mandela's year of death was which?",
        "When was “Long Walk to Freedom” finished?”",
    ],
)
def test_a_question_need_not_end_with_its_mark(text):
    assert taken(json.dumps([text]), "In which year did Nelson Mandela die?") == [text]


@pytest.mark.parametrize(
    ("text", "usable"),
    [
        ("曼德拉哪一年去世", True),
        ("请说出曼德拉去世的年份", True),
        ("曼德拉是不是已经去世", True),
        ("曼德拉于2013年去世。", False),
        ("マンデラはいつ死んだのか？", False),
    ],
)
def test_chinese_questions_are_recognised_by_their_words(text, usable):
    assert bool(taken(json.dumps([text]), "曼德拉什么时候去世的？")) is usable


@pytest.mark.parametrize(
    ("text", "question", "expected"),
    [
        ("Which town does Clinton come from?", "Where was Bill Clinton born?", True),
        ("Who won the war?", "Where was Bill Clinton born?", False),
        ("克林顿生于何处？", "比尔·克林顿出生在哪里？", True),
        ("长城有多长？", "比尔·克林顿出生在哪里？", False),
        # Nothing could be shared.
        ("Who won the war?", "What is it?", True),
    ],
)
def test_without_an_embedder_a_paraphrase_shares_a_content_word(text, question, expected):
    assert shares_words(text, question) is expected


@pytest.mark.parametrize(
    "noise",
    [
        "2020-06-05T00:00",
        "1999-2019, 1999-2020, 2020-2030",
        "5 June 1995",
        "on the 5th of May 1995",
        "Sept 3, 44 BC or 45 BC",
        "1906年4月19日",
        "3.14 / 2.72 / 1.41",
        "___ 1906 ___",
    ],
)
def test_a_date_is_no_paraphrase(noise):
    reply = json.dumps({"questions": [noise, "In May 1906, where was he born?"]})
    assert taken(reply) == ["In May 1906, where was he born?"]


def test_a_number_inside_json_makes_no_question_another_one():
    listed = [
        "1. Where was he born?",
        "(2) Where was he born?",
        "3. In which town?",
        "4 towns or 5?",
    ]
    assert taken(json.dumps({"questions": listed}), "Where was he born?") == [
        "In which town?",
        "4 towns or 5?",
    ]


ENGLISH = "Where was he born?"


@pytest.mark.parametrize(
    ("text", "code", "expected"),
    [
        ("他在哪里出生？", "zh", True),
        ("Where was he born", "zh", False),
        ("彼はどこで生まれたのか？", "zh", False),
        ("Wo wurde er geboren?", "de", True),
        ("Où est-il né ?", "fr", True),
        ("¿Dónde nació?", "es", True),
        # Mere names may be of any language.
        ("Nelson Mandela?", "de", True),
        ("どこでうまれたのですか？", "ja", True),
        ("彼はどこで生まれたのか？", "ja", True),
        ("他在哪里出生？", "ja", False),
        ("Where was he born?", "de", False),
        ("In which town was he born?", "de", False),
        ("In which town was he born?", "fr", False),
        ("What is the town that he is from?", "es", False),
        ("Wo wurde er geboren?", "fr", False),
        ("他在哪里出生？", "en", False),
        ("他在哪里出生？", "de", False),
        ("", "fr", False),
        ("I'm sorry, I can't translate that.", "fr", False),
    ],
)
def test_what_can_be_a_translation(text, code, expected):
    assert (not why_no_translation(text, ENGLISH, code)) is expected


def test_a_translation_into_english_may_quote_a_chinese_name():
    assert not why_no_translation("Who wrote the novel 红楼梦?", "《红楼梦》是谁写的？", "en")
    assert why_no_translation("Wer schrieb den Roman?", "《红楼梦》是谁写的？", "en") == "language"


@pytest.mark.parametrize(
    ("text", "original", "code", "expected"),
    [
        ("Who designed the 埃菲尔铁塔?", "埃菲尔铁塔是谁设计的？", "en", "language"),
        ("Who designed the Eiffel Tower?", "埃菲尔铁塔是谁设计的？", "en", ""),
        ("谁设计了Eiffel Tower？", "Who designed the Eiffel Tower?", "zh", "language"),
        ("为什么你不去？", "Why don't you go?", "zh", ""),
        ("因为我不去。", "Why don't you go?", "zh", "statement"),
        ("DNA是谁发现的？", "Who discovered DNA?", "zh", ""),
        ("RNA是谁发现的？", "Who discovered DNA?", "zh", "language"),
    ],
)
def test_a_translation_is_in_its_language_alone(text, original, code, expected):
    assert why_no_translation(text, original, code) == expected


def test_an_untranslated_question_is_no_translation():
    original = "Was Mandela Präsident?"
    assert why_no_translation("Was Mandela Präsident", original, "de") == "language"


def test_a_paraphrase_asks_for_what_the_question_asks_for():
    question = Question(text="埃菲尔铁塔是谁设计的？", language="zh")
    reply = "1. 埃菲尔铁塔设计于什么年？\n2. 谁设计了埃菲尔铁塔？"
    assert paraphrases_in(reply, question) == (
        ["谁设计了埃菲尔铁塔？"],
        [("埃菲尔铁塔设计于什么年？", "meaning")],
    )


@pytest.mark.parametrize(
    ("text", "code", "fits"),
    [
        ("Who designed the Eiffel Tower?", "en", True),
        ("Who designed the 埃菲尔铁塔?", "en", False),
        ("谁发现了DNA的结构？", "zh", True),
        ("谁发现了RNA的结构？", "zh", False),
        ("谁发现了DNA的结构。", "zh", False),
    ],
)
def test_translations_are_bound_to_the_letters_of_their_language(text: str, code, fits: bool):
    pattern = translation_pattern("Who discovered the structure of DNA?", code)
    assert (re.fullmatch(pattern, text) is not None) is fits
