"""The one verdict: which combination speaks, what follows for a text, and in what words."""

from __future__ import annotations

from random import Random

import pytest

from pipelines.base import Language, Passage
from pipelines.methods.limits import HeldOutScores, limit_for
from pipelines.methods.together import verdict as module
from pipelines.methods.together.features import READINGS, Reading, SentenceReadings, feature_names
from pipelines.methods.together.verdict import (
    Combination,
    LinearLogOdds,
    TogetherFound,
    Why,
    combination_for,
    combinations,
    judged_together,
    text_together,
)

GOOD = HeldOutScores(statements=10, auroc=0.9, accuracy=0.9, false_supported=0.1, true_doubted=0.1)
CURIE = Passage(
    id="p", title="Marie Curie", text="She was born in Warsaw in 1867.", source="library"
)


def fitted(
    *readings: Reading, use: module.Use = "library", language: Language = "en"
) -> Combination:
    """P(supported) of the judge's own log-odds; what is not supported is contradicted."""
    names = feature_names(readings)
    return Combination(
        use=use,
        languages=(language,),
        readings=readings,
        names=names,
        support=LinearLogOdds(weights=tuple(float(name == "judge") for name in names), bias=0.0),
        against=LinearLogOdds(weights=(0.0,) * len(names), bias=1.0),
        means=(0.0,) * len(names),
        threshold=0.5,
        fitted=10,
        groups=5,
        cross_validated=GOOD,
        reliability=(),
    )


@pytest.fixture
def shipped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two combinations of a searched library, one of which has a judge."""
    monkeypatch.setattr(module, "combinations", lambda: (fitted(), fitted("judge")))


def said(value: float | None) -> SentenceReadings:
    if value is None:
        return SentenceReadings()
    return SentenceReadings(values={"judge": value}, methods={"judge": ("slm",)})


BORN = "Marie Curie was born in Warsaw."


@pytest.mark.usefixtures("shipped")
def test_the_probability_is_the_logistic_of_the_weighted_sum():
    found = judged_together([BORN], [said(0.8)], [CURIE], "library", "en")[0]
    assert found.verdict == "supported"
    # The weight of the judge's log-odds is 1.
    assert found.supported == found.probability == pytest.approx(0.8)
    assert (found.judges, found.title) == (("slm",), "Marie Curie")
    assert found.line("en").startswith("The judge finds it supported (0.80)")
    doubted = judged_together([BORN], [said(0.2)], [CURIE], "library", "en")[0]
    assert doubted.verdict == "contradicted"
    # 0.8 is not supported, of which 1 / (1 + e^-1) = 0.731 is contradicted.
    assert doubted.probability == pytest.approx(0.8 * 0.7310586)


@pytest.mark.parametrize(
    ("supported", "verdict", "probability"),
    # 1 / (1 + e^-1) = 0.731 of what is not supported is contradicted.
    [
        (0.8, "supported", 0.8),
        (0.69, "not_enough", None),
        (0.45, "not_enough", None),
        (0.4, "contradicted", 0.6 * 0.7310586),
    ],
)
def test_nothing_less_likely_than_support_is_said(
    monkeypatch: pytest.MonkeyPatch, supported: float, verdict: str, probability: float | None
):
    strict = fitted("judge").model_copy(update={"threshold": 0.77})
    monkeypatch.setattr(module, "combinations", lambda: (strict,))
    found = judged_together([BORN], [said(supported)], [CURIE], "library", "en")[0]
    assert found.verdict == verdict
    assert found.supported == pytest.approx(supported)
    assert found.probability == (None if probability is None else pytest.approx(probability))
    if probability is None:
        line = found.line("en")
        assert line.startswith(f"Support is likeliest ({supported:.2f}), but 0.77 is needed")
        assert found.line("zh").startswith(f"得到支持的可能性最大（{supported:.2f}），但低于")


@pytest.mark.usefixtures("shipped")
def test_what_is_about_another_subject_is_not_in_the_evidence():
    found = judged_together(["Bach was born in Eisenach."], [said(0.2)], [CURIE], "library", "en")
    assert found[0].verdict == "not_enough"
    assert found[0].line("en") == "No passage is about its subject."
    assert found[0].line("zh") == "没有一个段落与它的主题有关。"


@pytest.mark.usefixtures("shipped")
def test_an_answer_that_states_nothing_is_left_open():
    asked = "Where was Marie Curie born?"
    for answer in ("I do not know.", "???"):
        found = judged_together([answer], [said(0.9)], [CURIE], "library", "en", question=asked)
        assert [(one.verdict, one.probability) for one in found] == [("unchecked", None)]


FLEMING = Passage(
    id="f",
    title="青霉素",
    text="1928年，英国细菌学家亚历山大·弗莱明发现了青霉素。",
    source="library",
)
HOPPER = Passage(
    id="h", title="葛丽丝·霍普", text="美国科学家葛丽丝·霍普设计了编译器。", source="library"
)


@pytest.mark.parametrize(
    ("answer", "title"),
    [
        # The subject of the first four is what the question asks about.
        ("是美国科学家查利维斯。", "青霉素"),
        ("由美国科学家查利维斯发现。", "青霉素"),
        ("美国科学家查利维斯。", "青霉素"),
        ("弗莱明。", "青霉素"),
        ("美国科学家葛丽丝·霍普发现了编译器。", "葛丽丝·霍普"),
    ],
)
def test_an_answer_without_its_subject_is_read_with_the_question(
    monkeypatch: pytest.MonkeyPatch, answer: str, title: str
):
    monkeypatch.setattr(module, "combinations", lambda: (fitted("judge", language="zh"),))
    found = judged_together(
        [answer], [said(0.2)], [HOPPER, FLEMING], "library", "zh", question="谁发现了青霉素？"
    )
    assert [one.title for one in found] == [title]


LI_BAI = Passage(
    id="l", title="李白", text="李白，字太白，号青莲居士，唐代诗人。", source="library"
)


@pytest.mark.parametrize(
    ("answer", "question", "verdict"),
    [
        ("李白号为李。", "李白的号是什么？", "not_enough"),
        ("李白号青莲居士。", "李白的号是什么？", "supported"),
        # Where yes or no is asked, the question has all that counts.
        ("是的，他会写诗。", "李白会写诗吗？", "supported"),
        # Nothing is asked: the text stands for itself.
        ("李白号为李。", "", "supported"),
    ],
)
def test_an_answer_whose_new_words_are_nowhere_is_not_supported(
    monkeypatch: pytest.MonkeyPatch, answer: str, question: str, verdict: str
):
    monkeypatch.setattr(module, "combinations", lambda: (fitted("judge", language="zh"),))
    found = judged_together([answer], [said(0.9)], [LI_BAI], "own", "zh", question=question)
    assert [one.verdict for one in found] == [verdict]


@pytest.mark.parametrize("value", [0.1, 0.97])
def test_what_is_called_a_mistaken_belief_is_contradicted(
    monkeypatch: pytest.MonkeyPatch, value: float
):
    monkeypatch.setattr(module, "combinations", lambda: (fitted("judge", language="zh"),))
    capital = Passage(
        id="c",
        title="堪培拉",
        text="堪培拉是澳大利亚的首都，距离悉尼约280公里。许多人误以为澳大利亚的首都是悉尼。",
        source="library",
    )
    (found,) = judged_together(
        ["悉尼是澳大利亚的首都。"], [said(value)], [capital], "own", "zh", question="是悉尼吗？"
    )
    assert (found.verdict, found.probability) == ("contradicted", None)
    assert found.evidence == "许多人误以为澳大利亚的首都是悉尼。"
    assert found.line("zh") == "该句证据称之为误解。"


WALL = Passage(id="w", title="长城", text="各个时代的城墙总长21196公里。", source="library")
MOON = Passage(
    id="m",
    title="从太空看长城",
    text="月球很远，要从月球上看见长城，就像在几公里以外看一根头发。",
    source="library",
)


@pytest.mark.parametrize(
    ("answering", "value", "title"),
    [((), 0.1, "从太空看长城"), ((WALL,), 0.1, "长城"), ((WALL,), 0.9, "从太空看长城")],
)
def test_what_answers_the_question_is_shown_beside_what_is_not_supported(
    monkeypatch: pytest.MonkeyPatch, answering: tuple[Passage, ...], value: float, title: str
):
    monkeypatch.setattr(module, "combinations", lambda: (fitted("judge", language="zh"),))
    (found,) = judged_together(
        ["长城是世界上最长的山脉，有210公里。"],
        [said(value)],
        [WALL, MOON],
        "own",
        "zh",
        question="长城有多长？",
        answering=answering,
    )
    assert found.title == title
    assert found.supported == pytest.approx(value)


@pytest.mark.parametrize(
    ("answer", "stated"),
    [
        ("“She was born in Warsaw.” (Marie Curie)", ["“She was born in Warsaw.”"]),
        (
            "“1930年被纽约的克莱斯勒大厦超过。”（埃菲尔铁塔）",
            ["“1930年被纽约的克莱斯勒大厦超过。”"],
        ),
        ("She was Polish. (She says so.)", ["She was Polish.", "(She says so.)"]),
    ],
)
def test_the_source_of_a_quotation_is_no_sentence_of_the_answer(answer: str, stated: list[str]):
    assert [one.text for one in module.stated_in(answer)] == stated


@pytest.mark.usefixtures("shipped")
def test_without_passages_nothing_is_known_and_without_a_search_nothing_was_judged():
    searched = judged_together([BORN], [said(0.9)], [], "library", "en")[0]
    assert (searched.verdict, searched.probability) == ("not_enough", None)
    assert judged_together([BORN], [said(0.9)], None, "library", "en")[0].verdict == "unchecked"


@pytest.mark.usefixtures("shipped")
@pytest.mark.parametrize("passages", [[CURIE], []])
def test_a_text_in_another_language_is_not_judged(passages: list[Passage]):
    foreign = ["Marie Curie est née à Varsovie et elle est morte en France.", "Varsovie."]
    found = judged_together(foreign, [said(0.9), said(0.1)], passages, "library", "en")
    assert [(one.verdict, one.probability) for one in found] == [("unchecked", None)] * 2


@pytest.mark.usefixtures("shipped")
def test_a_use_without_data_takes_the_nearest_and_says_so():
    found = judged_together([BORN], [said(0.9)], [CURIE], "web", "en")[0]
    assert found.nearest
    assert found.measured == GOOD


def test_most_of_the_readings_are_taken_and_a_language_model_from_the_nearest_use():
    among = (fitted(), fitted("judge"), fitted("judge", "model"), fitted("judge", use="given"))

    def chosen(use: module.Use, *readings: Reading) -> tuple[str, tuple[Reading, ...]]:
        found = combination_for(readings, use, "en", among)
        assert found is not None
        return found.use, found.readings

    assert chosen("library") == ("library", ())
    assert chosen("library", "judge", "aligned") == ("library", ("judge",))
    assert chosen("given", "judge") == ("given", ("judge",))
    assert chosen("given", "judge", "model") == ("library", ("judge", "model"))
    assert combination_for(("judge",), "library", "zh", among) is None


def one(verdict: module.TogetherVerdict, supported: float | None) -> TogetherFound:
    return TogetherFound(verdict=verdict, supported=supported, why=(Why(name="weighed"),))


def test_the_worst_sentence_decides_about_the_text():
    both = text_together([one("supported", 0.9), one("contradicted", 0.1)])
    assert both is not None
    assert both.verdict == "contradicted"
    assert both.line("en").startswith("Sentence 2 decides: ")
    weakest = text_together([one("supported", 0.9), one("supported", 0.7)])
    assert weakest is not None
    assert weakest.supported == 0.7
    assert text_together([]) is None


@pytest.mark.usefixtures("shipped")
def test_whatever_was_not_judged_keeps_the_text_from_supported():
    chance = Random(0)
    for _ in range(500):
        values = [chance.choice((None, 0.9, 0.95)) for _ in range(chance.randint(1, 4))]
        found = judged_together(
            [BORN] * len(values),
            [said(value) for value in values],
            [CURIE],
            "library",
            "en",
            expected=True,
        )
        whole = text_together(found)
        assert whole is not None
        assert (whole.verdict == "supported") == (None not in values)


def test_what_ships_has_a_combination_for_every_set_of_readings_and_figures():
    found = {(c.use, c.languages[0], c.readings) for c in combinations()}
    assert ("library", "en", ("judge", "aligned")) in found
    assert ("library", "zh", ()) in found
    for each in combinations():
        assert len(each.names) == len(each.support.weights) == len(each.means)
        assert each.names == feature_names(each.readings)
        assert set(each.readings) <= set(READINGS)
        assert each.threshold >= 0.5
        assert sum(one.count for one in each.reliability) == each.reported["all"].statements


def test_a_threshold_holds_for_the_judges_it_was_fitted_with():
    judges = ("Veriscope judge", "Word overlap")
    limit = limit_for("slm", "library", "en", judges)
    assert limit is not None
    assert limit.reported.false_supported < 0.2
    assert limit_for("slm", "library", "en", ("another judge",)) is None
    assert limit_for("drad", "library", "en") is None
