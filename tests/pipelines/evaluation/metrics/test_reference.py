"""Answers scored by hand."""

from __future__ import annotations

import pytest

from pipelines.evaluation.metrics.reference import Reference, is_right, says, score, words_of


def fact(answer: str, *aliases: str, question: str = "Which one?") -> Reference:
    return Reference(question=question, answer=answer, aliases=aliases)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("The Nobel Prize, in Physics.", "nobel prize in physics"),
        ("ＮｅＸＴ “computer”", "next computer"),
        ("A-0 and a B-0", "a 0 and b 0"),
        ("John Glenn’s flight at St Mary's", "john glenn flight at st mary"),
        ("299,792,458 or 299 792 458", "299792458 or 299792458"),
        ("8,848.86m, 168cm, 20th, 1930s", "8848.86 m 168 cm 20th 1930s"),
        ("1,642 meters", "1642 metres"),
        ("in 1911, 1912", "in 1911 1912"),
        ("Eighty-six billion of 86 billion", "86000000000 of 86000000000"),
        ("8.6 billion, a hundred, twenty, seventy and one", "8600000000 100 20 70 and 1"),
        ("December 10, 1815", "10 december 1815"),
        ("on the 5th of December 2013", "on 5 december 2013"),
        ("on 5 December 2013 and December 5th", "on 5 december 2013 and 5 december"),
        ("Hut Eight", "hut 8"),
        ("BRASI\u0301LIA", "brasília"),
        ("in 20135, 8848.86 metres", "in 20135 8848.86 metres"),
        ("《论语》，孔子。", "论 语 孔 子"),
        ("她在1911年获奖", "她 在 1911 年 获 奖"),
        ("２１１９６.１８千米", "21196.18 千 米"),
        ("高168cm左右", "高 168 cm 左 右"),
        ("维生素A和A股", "维 生 素 a 和 a 股"),
        ("", ""),
    ],
)
def test_texts_become_comparable_words(text: str, words: str):
    assert words_of(text) == words.split()


@pytest.mark.parametrize(
    ("answer", "reference", "right"),
    [
        ("He was born in Hope, Arkansas.", fact("Hope, Arkansas"), True),
        ("Hopeful people live in Arkansas.", fact("Hope, Arkansas"), False),
        ("It was founded in 930 AD.", fact("930"), True),
        ("It was founded in 1930.", fact("930"), False),
        ("About 9.30 metres.", fact("930"), False),
        ("There were 1,930 of them.", fact("930"), False),
        ("F.W. de Klerk", fact("F. W. de Klerk"), True),
        ("de Klerk did.", fact("F. W. de Klerk", "de Klerk"), True),
        ("He survived seven strikes.", fact("seven", "7"), True),
        ("She died on December 10, 1815.", fact("10 December 1815"), True),
        ("The Angara.", fact("Angara"), True),
        ("The compiler was A-0.", fact("A-0"), True),
        ("It is Hopeless, Arkansas.", fact("Hope, Arkansas"), False),
        ("In hope in Arkansas", fact("Hope, Arkansas", "Hope in Arkansas"), True),
        ("On HMS Beagle.", fact("the Beagle"), True),
        ("On the Beagle.", fact("HMS Beagle"), False),
        ("He died on 5 December 2013.", fact("2013"), True),
        ("He died in 20135.", fact("2013"), False),
        ("It is 8848.86 metres high.", fact("8,848.86 metres"), True),
        ("It is 8848 metres high.", fact("8,848.86 metres"), False),
        ("BRASI\u0301LIA", fact("Brasília"), True),
        ("她在1911年获奖。", fact("1911年"), True),
        ("她在1911年获奖。", fact("1911"), True),
        ("她在1911年获奖。", fact("911年"), False),
        ("澳大利亚的首都是堪培拉。", fact("堪培拉"), True),
        ("悉尼", fact("堪培拉"), False),
        ("维生素B。", fact("维生素A"), False),
        ("The compiler was a compiler.", fact("A-0"), False),
        # The name of an option is an article elsewhere.
        ("A", fact("A"), True),
        ("(A) Paris", fact("A"), True),
        ("The answer is A.", fact("A"), True),
        ("A", fact("a"), True),
        ("A dog barks.", fact("A"), False),
        ("B", fact("A"), False),
        ("A", fact("B"), False),
        ("It is cold", fact("the"), False),
        ("Wow!", fact("!"), False),
        ("", fact("Ulm"), False),
    ],
)
def test_an_answer_names_the_reference_as_whole_words(
    answer: str, reference: Reference, right: bool
):
    assert is_right(answer, reference) is right


@pytest.mark.parametrize(
    ("answer", "right"),
    [
        ("Florence Nightingale was born in London.", False),
        ("Florence Nightingale was born in Florence, Italy.", True),
        ("Florence.", True),
    ],
)
def test_a_name_in_the_question_does_not_name_the_answer(answer: str, right: bool):
    asked = fact("Florence", question="In which city was Florence Nightingale born?")
    assert is_right(answer, asked) is right


def test_a_name_in_a_chinese_question_does_not_name_the_answer():
    asked = fact("北京", question="北京大学在哪座城市？")
    assert not is_right("北京大学在上海。", asked)
    assert is_right("北京大学在北京。", asked)


@pytest.mark.parametrize(
    ("answer", "right"),
    [
        ("Polonium and radium.", True),
        ("Radium, then polonium", True),
        ("Polonium.", False),
        ("Radium and radiumpolonium", False),
    ],
)
def test_of_a_list_every_item_is_named(answer: str, right: bool):
    reference = Reference(question="Which two?", answer="polonium; radium", kind="list")
    assert is_right(answer, reference) is right
    chinese = Reference(question="哪两种？", answer="钋; 镭", kind="list")
    assert is_right("镭和钋。", chinese)
    assert not is_right("钋。", chinese)


@pytest.mark.parametrize(
    ("answer", "right"),
    [
        ("No, he did not.", True),
        ("“No”", True),
        ('"no." he said', True),
        ("**No**", True),
        ("The answer is: No", True),
        ("The answer is no.", True),
        ("The answer to the question is “no”", True),
        ("Neil Armstrong: No, he was not.", True),
        ("Neil Armstrong: The answer is: No", True),
        ("[1] No, he was not.", True),
        ("1. The answer is: No.\n2. The answer is: Yes.", True),
        ("Answer: Yes, no doubt.", False),
        ("Nobody knows.", False),
        ("Yes. No doubt.", False),
        ("He did not.", False),
    ],
)
@pytest.mark.parametrize("kind", ["yes_no", "misconception"])
def test_yes_and_no_are_read_from_the_first_word(kind: str, answer: str, right: bool):
    reference = Reference(question="Did he?", answer="No", kind=kind)
    assert is_right(answer, reference) is right


@pytest.mark.parametrize(
    ("right", "answer", "named"),
    [
        ("否", "不能。", True),
        ("否", "没有。", True),
        ("否", "是的。", False),
        ("否", "“否”", True),
        ("否", "答案是：否。", True),
        ("否", "正确答案是“否”。", True),
        ("否", "回答：不能。", True),
        ("是", "是的，不错。", True),
        ("是", "对。", True),
        ("是", "这是真的。", False),
        ("是", "没错，能看到。", True),
        # Characters that only begin a word which says neither.
        ("是", "对不起，我不清楚。", False),
        ("否", "不过也有人说能看到。", False),
        ("否", "不知道。", False),
        ("是", "", False),
        # Whichever of the languages the answer is in.
        ("否", "No.", True),
        ("Yes", "是的。", True),
        ("No", "Yes, no doubt.", False),
        ("Yes", "It can, yes.", False),
    ],
)
def test_yes_and_no_are_read_in_both_languages(right: str, answer: str, named: bool):
    reference = Reference(question="长城能从月球上看到吗？", answer=right, kind="misconception")
    assert is_right(answer, reference) is named


@pytest.mark.parametrize(
    ("answer", "question", "said"),
    [
        ("A pardon was granted to Turing.", "Was Turing granted a pardon?", "yes"),
        ("Turing was not granted a pardon.", "Was Turing granted a pardon?", "no"),
        ("Turing wasn't granted a pardon.", "Was Turing granted a pardon?", "no"),
        ("Short answer: Turing received a pardon.", "Did Turing receive a pardon?", "yes"),
        ("Turing was born in London.", "Was Turing granted a pardon?", None),
        ("Turing was young. He was granted a pardon.", "Was Turing granted a pardon?", None),
        # Three of four words: Russia is not the world.
        ("Baikal is the deepest lake in Russia.", "Is Baikal the deepest lake in the world?", None),
        ("", "Was Turing granted a pardon?", None),
        ("梅兰芳是男演员，却以扮演女性角色闻名。", "梅兰芳是男演员吗？", "yes"),
        ("《论语》并不是孔子自己写的。", "《论语》是孔子自己写的吗？", "no"),
        ("他不仅是男演员，梅兰芳也是名旦。", "梅兰芳是男演员吗？", "yes"),
        ("孔子生于鲁国。", "《论语》是孔子自己写的吗？", None),
    ],
)
def test_a_sentence_that_says_the_question_again_says_yes_or_no(
    answer: str, question: str, said: str | None
):
    assert says(answer, question) == said


def test_a_misconception_about_a_name_is_a_fact():
    reference = Reference(question="What is it?", answer="Canberra", kind="misconception")
    assert is_right("It is Canberra.", reference)


def test_a_fact_that_reads_like_no_is_a_name():
    assert is_right("The film is called Dr. No.", fact("No"))


def test_a_reference_is_a_row_of_the_sample_questions():
    row = {"question": "Q?", "answer": "A", "aliases": "B|C", "kind": "fact", "article": "en/x"}
    assert Reference.of(row) == Reference(question="Q?", answer="A", aliases=("B", "C"))
    assert Reference.of({**row, "aliases": ""}).aliases == ()


@pytest.mark.parametrize(
    ("answer", "abstained", "outcome"),
    [
        ("Ulm", False, "right"),
        ("Bonn", False, "wrong"),
        (" ", False, "abstained"),
        ("Ulm", True, "abstained"),
        ("I don't know.", False, "abstained"),
        ("I'm sorry, but I cannot answer that.", False, "abstained"),
        ("The context does not contain the answer to the question.", False, "abstained"),
        ("The passages don't mention this.", False, "abstained"),
        ("The text does not say so, but it was Ulm.", False, "right"),
        ("The text does not say so, but it was Bonn.", False, "wrong"),
        ("The text was written in Bonn.", False, "wrong"),
    ],
)
def test_an_answer_is_right_wrong_or_abstains(answer: str, abstained: bool, outcome: str):
    assert score(answer, fact("Ulm"), abstained=abstained) == outcome
