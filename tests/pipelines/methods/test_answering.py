"""Which sentence answers: on passages of the sample library, and on others written for a rule."""

from __future__ import annotations

import pytest

from pipelines.base import Passage
from pipelines.engine.library import SAMPLE_LIBRARY
from pipelines.methods.answering import QuestionSubject, parts_of
from pipelines.methods.base import Question
from pipelines.methods.rag import Rag
from pipelines.methods.replies.parsing import figures, holds_kind
from pipelines.methods.telling import (
    clause_that_tells,
    denies,
    held_from,
    lacks_most,
    opposes,
    reports,
    strays,
)
from pipelines.retrieval.base import Embedder, Retriever
from pipelines.retrieval.documents import load_library
from pipelines.retrieval.indexes import EmbedderSimilarity, LexicalEmbedder, default_embedder
from pipelines.run.events import Judged
from pipelines.run.findings import SentenceChosen
from pipelines.text import detect_language
from tests.scripted.bench import FULL, PieceModel, run_method

WEAK = FULL.model_copy(update={"weak": True, "judges": False})
LIBRARY = {one.id: one for one in load_library(SAMPLE_LIBRARY)}


def passage(title: str, text: str, source: str = "library") -> Passage:
    return Passage(id=f"{source} {title}", title=title, text=text, source=source)


def article(name: str) -> Passage:
    return passage(LIBRARY[name].title, LIBRARY[name].text)


class Found(Retriever):
    """Finds the same for every query."""

    name = "found"

    def __init__(self, *passages: Passage) -> None:
        self._passages = list(passages)

    async def search(self, query: str, k: int) -> list[Passage]:
        return self._passages


async def answer(
    question: str, *passages: Passage, embedder: Embedder | None = None
) -> tuple[str, SentenceChosen]:
    """RAG's answer without a judge and without a model's words, and what was chosen."""
    outcome = await run_method(
        Rag(),
        question,
        PieceModel(lambda _: "", WEAK),
        shelf=Found(*passages),
        # Words alone, so that no other model decides what these tests are about.
        similarity=EmbedderSimilarity(embedder or LexicalEmbedder()),
    )
    (event,) = (e for e in outcome.events if isinstance(e, Judged) and e.what == "correction")
    assert isinstance(event.detail, SentenceChosen)
    return outcome.answer.text, event.detail


NONE = ("The passages do not answer this question.", "资料没有回答这个问题。")


@pytest.mark.parametrize(
    ("question", "names", "words"),
    [
        ("How long is the Nile?", ("en/nile",), "6,650 kilometres"),
        ("How tall is the Eiffel Tower?", ("en/eiffel-tower",), "330 metres high"),
        ("When did Amelia Earhart disappear?", ("en/amelia-earhart",), "2 July 1937"),
        ("Who founded Brasilia?", ("en/brasilia",), "Juscelino Kubitschek"),
        ("Who was the first person in space?", ("en/neil-armstrong",), "Yuri Gagarin"),
        ("How long did the Berlin Wall stand?", ("en/berlin-wall",), "for 28 years"),
        ("Who painted the Mona Lisa?", ("en/mona-lisa",), "by Leonardo da Vinci"),
        ("How tall was Napoleon Bonaparte?", ("en/napoleon-height",), "168 centimetres"),
        ("长江有多长？", ("zh/chang-jiang", "zh/huang-he"), "6300公里"),
        ("黄河的长度是多少？", ("zh/chang-jiang", "zh/huang-he"), "5464公里"),
        ("李白是什么时候去世的？", ("zh/li-bai", "zh/du-fu"), "卒于762年"),
        ("故宫有多少间房屋？", ("zh/gu-gong",), "八千七百多间"),
        ("鲁迅是什么时候出生的？", ("zh/lu-xun",), "1881年9月25日"),
        # Another event, a narrower group, the past, a thing that failed.
        ("When did the Berlin Wall fall?", ("en/berlin-wall",), "9 November 1989"),
        ("When did Nelson Mandela get out of prison?", ("en/nelson-mandela",), "11 February 1990"),
        ("What is the largest desert in the world?", ("en/sahara",), "Antarctica"),
        ("When did the first modern Olympic Games take place?", ("en/olympic-games",), "1896"),
        ("When will Halley's Comet come back?", ("en/halleys-comet",), "2061"),
        ("Where does the wreck of the Titanic lie?", ("en/titanic",), "3,800 metres"),
        ("柏林墙是哪一年倒塌的？", ("zh/bo-lin-qiang",), "1989年"),
        ("谁第一个登上珠穆朗玛峰？", ("zh/zhu-mu-lang-ma",), "希拉里"),
        ("谁提纯了青霉素？", ("zh/qing-mei-su",), "弗洛里"),
        ("哈雷彗星下一次什么时候回来？", ("zh/ha-lei-hui-xing",), "2061年"),
        ("冥王星的名字是谁起的？", ("zh/ming-wang-xing",), "威妮夏·伯尼"),
        # The work that is named, in the article on somebody; and who "he" is.
        ("Who composed the opera Don Giovanni?", ("en/wolfgang-amadeus-mozart",), "Don Giovanni"),
        ("Who made Machu Picchu known?", ("en/machu-picchu",), "Hiram Bingham"),
    ],
)
async def test_the_sentence_quoted_answers(question: str, names: tuple[str, ...], words: str):
    text, chosen = await answer(question, *map(article, names))
    assert words in text
    assert words in chosen.sentence


@pytest.mark.parametrize(
    ("question", "name", "words"),
    [
        ("Who discovered penicillin?", "en/penicillin", "was discovered by Alexander Fleming"),
        ("Who built the Eiffel Tower?", "en/eiffel-tower", "by Gustave Eiffel's company"),
        ("埃菲尔铁塔是谁建的？", "zh/ai-fei-er-tie-ta", "由古斯塔夫·埃菲尔的公司建造"),
        ("屠呦呦因为什么获得诺贝尔奖？", "zh/tu-youyou", "因发现青蒿素"),
        ("Who wrote Dream of the Red Chamber?", "en/dream-of-the-red-chamber", "Cao Xueqin"),
        ("What was Florence Nightingale known for?", "en/florence-nightingale", "the founder of"),
        ("Who was the first emperor of China?", "en/first-emperor-of-qin", "Qin Shi Huang"),
        ("Can you see the Great Wall from space?", "en/great-wall-from-space", "No. “It is often"),
        ("阿姆斯特朗是第一个进入太空的人吗？", "zh/a-mu-si-te-lang", "否。"),
        ("苹果砸中过牛顿的头吗？", "zh/niu-dun", "否。"),
        ("金鱼只有三秒钟的记忆吗？", "zh/jin-yu-de-ji-yi", "否。"),
        # What such a sentence does not say is left open.
        ("蔡伦之前已经有纸了吗？", "zh/zao-zhi-shu", "“许多人以为"),
        ("撒哈拉的大部分地方都被沙子覆盖吗？", "zh/sa-ha-la-sha-mo", "“撒哈拉的大部分"),
        ("Is Sydney the capital of Australia?", "en/canberra", "No. “Many people abroad wrongly"),
        ("世界上最大的沙漠是哪一个？", "zh/sa-ha-la-sha-mo", "南极洲"),
        ("歌剧《魔笛》是谁写的？", "zh/mo-zha-te", "《魔笛》"),
    ],
)
async def test_the_sentence_that_is_near_in_meaning_answers(question: str, name: str, words: str):
    text, _ = await answer(question, article(name), embedder=default_embedder())
    assert words in text


@pytest.mark.parametrize(
    ("question", "passages"),
    [
        # Another thing's height, length and founder.
        (
            "How tall is the Eiffel Tower?",
            [passage("Chrysler Building", "The Chrysler Building is 319 metres tall.")],
        ),
        (
            "How long is the Nile?",
            [passage("Rivers", "Many people name the Nile, but it is actually the Amazon.")],
        ),
        ("尼罗河有多长？", [article("zh/chang-jiang")]),
        # A lake is not another lake.
        ("How deep is Lake Superior?", [article("en/lake-baikal")]),
        # What visitors believe is said of nobody who founded it.
        (
            "Who founded Brasília?",
            [passage("Brasília", "Visitors often believe that Rio is the capital.")],
        ),
        # Declared dead is another event than disappeared, and no date of it.
        (
            "When did Ada Brandt disappear?",
            [passage("Ada Brandt", "The court closed the case of Ada Brandt at last.")],
        ),
    ],
)
async def test_what_does_not_answer_is_not_quoted(question: str, passages: list[Passage]):
    text, chosen = await answer(question, *passages)
    assert text in NONE
    assert chosen.form == "none"


async def test_the_event_that_is_asked_about_goes_before_another():
    told = "Ada Brandt vanished in May 1931. Ada Brandt was declared dead in June 1938."
    text, _ = await answer("When did Ada Brandt disappear?", passage("Ada Brandt", told))
    assert text == "“Ada Brandt vanished in May 1931.” (Ada Brandt)"


@pytest.mark.parametrize(
    ("question", "names", "words"),
    [
        ("Where and when was Amelia Earhart born?", ("en/amelia-earhart",), ("Atchison", "1897")),
        ("When was Pluto discovered and by whom?", ("en/pluto",), ("1930", "Clyde Tombaugh")),
        ("鲁迅什么时候出生，什么时候去世？", ("zh/lu-xun",), ("1881年", "1936年")),
    ],
)
async def test_a_question_of_two_parts_is_answered_part_by_part(
    question: str, names: tuple[str, ...], words: tuple[str, ...]
):
    text, _ = await answer(question, *map(article, names))
    assert all(word in text for word in words)


async def test_what_a_second_part_is_about_is_named_by_the_first():
    # A passage as the library cuts them, without the source of the story.
    (opening, *_) = LIBRARY["en/hamlet"].text.split(" The story of the prince")
    text, _ = await answer(
        "Who wrote Hamlet and where does the play take place?", passage("Hamlet", opening)
    )
    assert text == (
        "“Hamlet is a tragedy by William Shakespeare, written between about 1599 and 1601.”"
        " (Hamlet) “The action is set in Denmark, mostly in the castle of Elsinore.” (Hamlet)"
    )


async def test_one_sentence_for_both_parts_is_quoted_once():
    text, chosen = await answer(
        "Where and when was Amelia Earhart born?", article("en/amelia-earhart")
    )
    assert text.count("“") == 1
    assert chosen.also == ()


async def test_two_sentences_are_recorded_with_their_places():
    _, chosen = await answer("鲁迅什么时候出生，什么时候去世？", article("zh/lu-xun"))
    (also,) = chosen.also
    assert LIBRARY["zh/lu-xun"].text[also.start : also.end] == also.sentence


async def test_sources_with_different_figures_are_both_named():
    own = passage("Eiffel Tower", "The Eiffel Tower is 330 metres high.", "library")
    older = passage("Eiffel Tower, Paris", "The Eiffel Tower is 324 metres high.", "web")
    text, _ = await answer("How tall is the Eiffel Tower?", own, older)
    assert text == (
        "The sources differ: “The Eiffel Tower is 330 metres high.” (Eiffel Tower)"
        " “The Eiffel Tower is 324 metres high.” (Eiffel Tower, Paris)"
    )
    same = passage("Towers", "The Eiffel Tower is 330 meters high.", "web")
    text, _ = await answer("How tall is the Eiffel Tower?", own, same)
    assert text == "“The Eiffel Tower is 330 metres high.” (Eiffel Tower)"


@pytest.mark.parametrize(
    ("question", "name", "lead", "words"),
    [
        # A belief with its correction: quoted together, and the correction decides.
        (
            "Can goldfish remember things for only three seconds?",
            "en/goldfish-memory",
            "No.",
            "untrue",
        ),
        ("Can lightning strike the same place twice?", "en/lightning", "Yes.", "It is wrong"),
        ("在月球上用肉眼能看到长城吗？", "zh/chang-cheng", "否。", "这是错误的"),
        ("Did Nelson Mandela die in prison?", "en/nelson-mandela", "No.", "wrongly remember"),
        ("悉尼是澳大利亚的首都吗？", "zh/kan-pei-la", "否。", "误以为"),
        ("闪电会两次击中同一个地方吗？", "zh/shan-dian", "是。", "这种说法是错的"),
        # A part of a kind is not all of it.
        ("Do all species of bats live on blood?", "en/bat-eyesight", "No.", "Only three species"),
        # What has failed to happen in a clause about something else denies nothing.
        ("杜甫比李白年轻吗？", "zh/du-fu", "", "小十一岁"),
    ],
)
async def test_what_people_believe_is_read_with_its_correction(
    question: str, name: str, lead: str, words: str
):
    text, _ = await answer(question, article(name))
    assert text.startswith(lead or "“")
    assert words in text


async def test_a_sentence_that_only_counts_is_quoted_with_the_next():
    text, _ = await answer("居里夫妇在1898年宣布发现了哪两种新元素？", article("zh/ju-li-fu-ren"))
    assert "钋" in text
    assert "镭" in text


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("Who wrote it and when did she die?", ["Who wrote it?", "when did she die?"]),
        ("Where and when was she born?", ["Where was she born?", "when was she born?"]),
        ("When was it found and by whom?", ["When was it found?", "by whom was it found?"]),
        ("Who wrote Pride and Prejudice?", ["Who wrote Pride and Prejudice?"]),
        ("谁写了这部书，什么时候出版？", ["谁写了这部书？", "什么时候出版？"]),
        ("在比赛中，谁赢了？", ["在比赛中，谁赢了？"]),
    ],
)
def test_the_parts_of_a_question(text: str, parts: list[str]):
    question = Question(text=text, language=detect_language(text))
    assert [part.text for part in parts_of(question)] == parts


@pytest.mark.parametrize(
    ("text", "belief", "held"),
    [
        ("Many people believe that it is Sydney.", True, None),
        ("Many people say Sydney, but it is Canberra.", False, "but it is Canberra."),
        ("People often say so. That is wrong.", False, "That is wrong."),
        ("许多人误以为首都是悉尼。", True, None),
        ("许多人误以为首都是悉尼，其实是堪培拉。", False, "其实是堪培拉。"),
        ("首都是堪培拉。", False, None),
    ],
)
def test_where_belief_turns_to_fact(text: str, belief: bool, held: str | None):
    language = detect_language(text)
    at = held_from(text, language)
    assert reports(text, language) == belief
    assert (None if at is None else text[at:].lstrip(" ,，")) == held


@pytest.mark.parametrize(
    ("title", "text", "sentence", "far"),
    [
        ("Brasília", "It was planned.", "It was planned.", 0),
        ("Cities", "Brasilia was planned.", "Brasilia was planned.", 1),
        ("Cities", "Brasilia is new. It was planned.", "It was planned.", 2),
        ("Cities", "It was planned.", "It was planned.", 3),
        # Nobody can tell by the names of two scripts.
        ("巴西利亚", "它建于1960年。", "它建于1960年。", 0),
        ("", "It was planned.", "It was planned.", 0),
    ],
)
def test_how_far_a_sentence_is_from_the_subject(title: str, text: str, sentence: str, far: int):
    found = passage(title, text)
    asked = "Who planned Brasília?"
    subject = QuestionSubject.of(asked, [], [passage("Brasília", "")])
    assert subject.distance(found, sentence) == far


@pytest.mark.parametrize(
    ("question", "sentence", "against"),
    [
        ("When was it built?", "It fell in 1989.", True),
        ("When was it built?", "It was built in 1961 and fell in 1989.", False),
        ("他是什么时候出狱的？", "他在1964年被判处终身监禁。", True),
    ],
)
def test_an_opposite_event_is_no_answer(question: str, sentence: str, against: bool):
    assert opposes(question, sentence) == against


@pytest.mark.parametrize(
    ("question", "sentence", "ways"),
    [
        # Nobody is named, the verb is another.
        ("Who bred the horse?", "The horse was sold.", 2),
        ("Who bred the horse?", "The horse was bred here.", 1),
        ("What is the largest desert?", "It is the largest hot desert.", 3),
        ("What is the largest desert?", "It is the largest lake.", 1),
        ("What is the largest desert?", "It is the largest desert.", 0),
        ("When will the comet return?", "It returned in 1758.", 2),
        ("When will the comet return?", "It is expected to return in 2061.", 0),
        # The date of an event that is not said counts twice.
        ("When was the bridge built?", "The bridge was painted in 1961.", 2),
        ("这项技术是什么时候形成的？", "他在1919年演出。", 2),
    ],
)
def test_in_how_many_ways_a_sentence_strays(question: str, sentence: str, ways: int):
    asked = Question(text=question, language=detect_language(question))
    assert strays(asked, sentence, names_someone=False, opens=False) == ways


@pytest.mark.parametrize(
    ("sentence", "dates"),
    [
        ("柏林墙把柏林分隔了28年。", False),
        ("它曾在76年间被当作行星。", False),
        ("前后约500年。", False),
        ("生于429年。", True),
        ("活字在庆历三年发明。", True),
        ("它在1989年倒塌。", True),
    ],
)
def test_a_span_of_years_is_no_date(sentence: str, dates: bool):
    asked = Question(text="它是什么时候倒塌的？", language="zh")
    assert holds_kind("date", asked, sentence) == dates


def test_the_clause_that_says_the_event():
    asked = Question(text="When did he die?", language="en")
    told = clause_that_tells("He was born in 1701 and died in 1762.", asked, "date")
    assert told == "died in 1762."


def test_figures_with_their_units():
    asked = Question(text="How long is it?", language="en")
    assert figures(asked, "It is 1,642 meters and two million miles long, as of 1999.") == {
        ("1642", "metre"),
        ("two million", "mile"),
    }
    assert (
        figures(Question(text="Who was it?", language="en"), "It is 3 metres long.") == frozenset()
    )


@pytest.mark.parametrize(
    "sentence",
    [
        "金鱼能看见人看不见的紫外线。",
        "门捷列夫为尚未发现的元素留出空位。",
        "人们常把这件事说成是她所为。",
    ],
)
def test_what_is_said_in_passing_denies_nothing(sentence: str):
    assert not denies(sentence, "金鱼能看见紫外线吗？门捷列夫为元素留出了空位吗？", "zh")


@pytest.mark.parametrize(
    ("question", "sentence", "lacks"),
    [
        ("Which planet is the largest?", "Venus is nearly as large as the Earth.", True),
        ("Which planet is the hottest?", "Venus is the hottest planet.", False),
        ("What is the highest mountain?", "No mountain is higher than Mount Everest.", False),
        ("Which river is the longest?", "The Nile is longer than any other river.", False),
        # What is asked is when; the tower is only named by it.
        ("When was the tallest tower finished?", "It was finished in 1931.", False),
        ("最大的行星是哪一颗？", "金星的大小与地球差不多。", True),
        ("世界上最高的山是哪一座？", "珠穆朗玛峰是世界第一高峰。", False),
        ("哪条河最长？", "亚马孙河全长约6400公里。", True),
        ("最早的纸币是什么时候出现的？", "交子出现于1023年。", False),
    ],
)
def test_what_is_the_most_is_called_so(question: str, sentence: str, lacks: bool):
    asked = Question(text=question, language=detect_language(question))
    assert lacks_most(asked, sentence) is lacks


async def test_a_thing_that_is_only_large_does_not_answer_which_is_the_largest():
    venus = passage("Venus", "Venus is the second planet and nearly as large as the Earth.")
    text, chosen = await answer("Which planet is the largest?", venus)
    assert text == NONE[0]
    assert chosen.form == "none"
