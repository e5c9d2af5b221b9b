"""A text in another language than English and Chinese: it is said, and no judge judges it."""

from __future__ import annotations

import pytest

from components.base.words import Catalogue
from components.page import run_notices
from pipelines.methods.registry import METHODS
from pipelines.methods.replies.verdicts import TRUE_FALSE_NEI, YES_NO, claim_of_answers
from pipelines.models.base import ChoiceRequest, Claim
from pipelines.models.judges.base import ClaimVerdict
from pipelines.models.judges.hub_formats import reads_others
from pipelines.run.events import GivenAnswer, Judged
from pipelines.run.view import fold
from tests.scripted.bench import FULL, ClaimReader, PieceModel, Shelf, run_method

TEXTS = {
    "fr": ("Où est né Victor Hugo ?", "Victor Hugo est né à Besançon dans l'est de la France."),
    "de": ("Wo wurde Einstein geboren?", "Einstein wurde in Ulm geboren und starb in Princeton."),
    "es": ("¿Dónde nació Picasso?", "Picasso nació en la ciudad de Málaga y murió en Francia."),
    "ja": ("夏目漱石はどこで生まれましたか。", "夏目漱石は東京で生まれました。"),
    "ru": ("Где родился Толстой?", "Толстой родился в Ясной Поляне."),
    "ko": ("세종대왕은 어디에서 태어났습니까?", "세종대왕은 한양에서 태어났습니다."),
}
EN = Catalogue("en", strict=True)
ENGLISH = ("Where was Victor Hugo born?", "Victor Hugo was born in Besançon, in eastern France.")
SURE = ClaimVerdict(0.95, 0.03, 0.02)


async def verdicts(question: str, text: str) -> tuple[set[str], str]:
    """The verdicts of the SLM check on a text, and what stands above it on every page."""
    judge = ClaimReader(lambda _: SURE)
    outcome = await run_method(
        METHODS["slm"],
        question,
        PieceModel(lambda _: text, FULL),
        shelf=Shelf(lambda _: [text]),
        models={"judge_1": judge},
        given=GivenAnswer(text=text, asked=True),
    )
    parts = ("sentence", "answer", "cell", "concept")
    said = {e.verdict for e in outcome.events if isinstance(e, Judged) and e.what in parts}
    return said, str(run_notices(fold(outcome.trace.events), None, EN))


@pytest.mark.parametrize("code", TEXTS)
async def test_a_judge_of_english_says_nothing_of_it(code: str):
    said, shown = await verdicts(*TEXTS[code])
    assert said == {"unchecked"}
    assert EN("flag.other_language") in shown


async def test_an_english_text_with_foreign_names_is_judged():
    said, shown = await verdicts(*ENGLISH)
    assert "supported" in said
    assert EN("flag.other_language") not in shown


async def test_answers_are_compared_with_each_other_all_the_same():
    judge = ClaimReader(lambda _: SURE)
    question, text = TEXTS["fr"]
    options = YES_NO["en"]
    same = claim_of_answers(question, text, text)
    choice = await judge.choose(ChoiceRequest(messages=(), options=options, claim=same))
    assert choice.best == "yes"
    claim = Claim(statement=text, evidence=(text,), question=question)
    asked = ChoiceRequest(messages=(), options=TRUE_FALSE_NEI["en"], claim=claim)
    assert (await judge.choose(asked)).best is None
    judge.multilingual = True
    assert (await judge.choose(asked)).best == "true"


async def test_evidence_in_another_language_is_not_read_either():
    claim = Claim(statement="He was born in Besançon.", evidence=TEXTS["fr"])
    judge = ClaimReader(lambda _: SURE)
    choice = await judge.choose(
        ChoiceRequest(messages=(), options=TRUE_FALSE_NEI["en"], claim=claim)
    )
    assert (choice.best, choice.other_mass, choice.source) == (None, 1.0, "judge")
    assert judge.seen == []


@pytest.mark.parametrize(
    ("config", "label", "card", "reads"),
    [
        ({"model_type": "xlm-roberta"}, "x/y", {}, True),
        ({"model_type": "bert"}, "x/mdeberta-xnli", {}, True),
        ({"model_type": "bert"}, "x/y", {}, False),
        ({"model_type": "xlm-roberta"}, "x/y", {"language": ["en", "zh"]}, False),
        ({"model_type": "bert"}, "x/y", {"language": ["en", "fr"]}, True),
        ({"model_type": "bert"}, "x/y", {"language": "multilingual"}, True),
    ],
)
def test_what_a_judge_reads(
    config: dict[str, str], label: str, card: dict[str, object], reads: bool
):
    assert reads_others(config, label, card) is reads
