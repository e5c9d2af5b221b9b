"""Values for components to show, worked out by hand."""

from itertools import count
from math import log
from typing import Any

from components.base.elements import EvidenceItem
from components.run.ask import MethodRow
from components.run.calls import CallBar
from components.run.text import EntityMark
from pipelines.base import Alternative, Choice, Generation, Message, Passage, Token, Usage
from pipelines.errors import ErrorInfo
from pipelines.models.base import ChoiceRequest, GenerationRequest, ScoreRequest
from pipelines.run.events import ModelCalled, Retrieved, Score
from pipelines.run.view import StepView

Written = tuple[str, float, float, dict[str, float]]


def written(*pieces: Written | tuple[str, float, float]) -> list[Token]:
    """Tokens one after another from (text, probability, entropy, alternatives)."""
    tokens: list[Token] = []
    position = 0
    for text, p, entropy, *rest in pieces:
        others: dict[str, float] = rest[0] if rest else {}
        tokens.append(
            Token(
                text=text,
                start=position,
                end=position + len(text),
                logprob=log(p),
                entropy=entropy,
                top_k=len(others) + 1 if others else None,
                tail_mass=max(0.0, 1 - p - sum(others.values())) if others else 0.0,
                alternatives=tuple(
                    Alternative(text=t, logprob=log(q))
                    for t, q in sorted([(text, p), *others.items()], key=lambda pair: -pair[1])
                )
                if others
                else (),
            )
        )
        position += len(text)
    return tokens


QUESTION = "Where was Bill Clinton born, and when did he become president?"
TOKENS = written(
    ("Bill", 0.97, 0.08),
    (" Clinton", 0.99, 0.02),
    (" was", 0.93, 0.31),
    (" born", 0.91, 0.42),
    (" in", 0.84, 0.55),
    (" Chicago", 0.18, 2.71, {" Hope": 0.31, " New": 0.12, " Arkansas": 0.08, " Little": 0.05}),
    (",", 0.88, 0.41),
    (" Illinois", 0.62, 1.12, {" Arkansas": 0.2, " on": 0.07}),
    (",", 0.71, 0.92),
    (" on", 0.66, 0.98),
    (" August", 0.83, 0.66),
    (" 19", 0.78, 0.71),
    (",", 0.99, 0.01),
    (" 1946", 0.86, 0.52, {" 1947": 0.05, " 1945": 0.03}),
    (".", 0.96, 0.12),
    (" He", 0.74, 0.93),
    (" became", 0.35, 1.61, {" served": 0.29, " was": 0.22}),
    (" the", 0.89, 0.44),
    (" 42", 0.92, 0.35),
    ("nd", 0.99, 0.01),
    (" president", 0.9, 0.33),
    (" of", 0.97, 0.1),
    (" the", 0.98, 0.06),
    (" United", 0.99, 0.03),
    (" States", 0.99, 0.01),
    (" in", 0.58, 1.01, {" on": 0.2}),
    (" January", 0.04, 4.23, {" 1993": 0.61, " the": 0.1}),
    (" 1993", 0.91, 0.4),
    (".", 0.95, 0.17),
)
TEXT = "".join(token.text for token in TOKENS)
CORRECTED = (
    "Bill Clinton was born in Hope, Arkansas, on August 19, 1946. "
    "He became the 42nd president of the United States in January 1993."
)


def mark_of(
    text: str,
    name: str,
    label: str,
    probability: float | None,
    entropy: float | None,
    *,
    doubtful: bool = False,
    repeats: bool = False,
) -> EntityMark:
    """The first `name` in `text` as an entity."""
    start = text.index(name)
    return EntityMark(
        start,
        start + len(name),
        label,
        "doubtful" if doubtful else "confident",
        probability,
        entropy,
        repeats,
    )


ENTITIES = [
    mark_of(TEXT, "Bill Clinton", "PERSON", 0.98, 0.08, repeats=True),
    mark_of(TEXT, "Chicago", "GPE", 0.18, 2.71, doubtful=True),
    mark_of(TEXT, "Illinois", "GPE", 0.62, 1.12),
    mark_of(TEXT, "August 19, 1946", "DATE", 0.865, 0.71),
    mark_of(TEXT, "42nd", "ORDINAL", 0.955, 0.35),
    mark_of(TEXT, "the United States", "GPE", 0.987, 0.06),
    mark_of(TEXT, "January 1993", "DATE", 0.475, 4.23, doubtful=True),
]

ZH_TEXT = "鲁迅于1881年出生在浙江杭州，原名周樟寿。"


def chinese() -> list[Token]:
    """Words, and three byte-level tokens that share the character 杭."""
    before, after = ZH_TEXT.split("杭")
    head = written(
        ("鲁迅", 0.95, 0.2),
        ("于", 0.97, 0.1),
        ("1881", 0.79, 0.6),
        ("年", 0.99, 0.02),
        ("出生", 0.83, 0.5),
        ("在", 0.9, 0.3),
        ("浙江", 0.71, 0.9),
    )
    at = len(before)
    parts = [
        Token(text="\\xe6", start=at, end=at + 1, logprob=log(0.5), entropy=1.4),
        Token(text="\\x9d", start=at, end=at + 1, logprob=log(0.4), entropy=2.1),
        Token(text="\\xad", start=at, end=at + 1, logprob=log(0.9), entropy=0.3),
    ]
    rest = written((after[0], 0.72, 0.8), ("，", 0.9, 0.3), (after[2:], 0.88, 0.4))
    moved = [t.model_copy(update={"start": t.start + at + 1, "end": t.end + at + 1}) for t in rest]
    return [*head, *parts, *moved]


ZH_ENTITIES = [
    mark_of(ZH_TEXT, "鲁迅", "PERSON", 0.95, 0.2, repeats=True),
    mark_of(ZH_TEXT, "1881年", "DATE", 0.89, 0.6),
    mark_of(ZH_TEXT, "杭州", "GPE", 0.45, 2.1, doubtful=True),
]

PROBABILITY_SCORE = Score(
    name="entity_probability",
    value=0.18,
    threshold=0.6,
    bad="below",
    flagged=True,
    formula="drad.probability.mean",
    inputs=(0.18,),
)
ENTROPY_SCORE = Score(
    name="entity_entropy",
    value=1.12,
    threshold=2.5,
    bad="above",
    high=None,
    formula="drad.entropy.max",
    inputs=(0.98, 1.12),
)

PASSAGE = Passage(
    id="clinton-1",
    title="Bill Clinton",
    text=(
        "William Jefferson Clinton was born on August 19, 1946, at Julia Chester Hospital in "
        "Hope, Arkansas. His father had died in a car accident three months earlier."
    ),
    source="sample library",
    url="https://example.org/clinton",
    score=0.83,
    rank=1,
    scores={"bm25": 14.2, "dense": 0.83},
)
EVIDENCE = [
    EvidenceItem(
        PASSAGE,
        query="Bill Clinton was born in , Illinois, on August 19, 1946",
        methods=("drad", "rag"),
        marks=((0, PASSAGE.text.index(" His")),),
    ),
    EvidenceItem(
        Passage(
            id="hope-1",
            title="Hope, Arkansas",
            text="Hope is a city in Hempstead County in southwestern Arkansas.",
            source="sample library",
            score=0.41,
            rank=2,
            scores={"bm25": 6.1, "dense": 0.41},
        ),
        query=QUESTION,
        methods=("rag",),
    ),
]

ERROR = ErrorInfo(
    code="rate_limit",
    message="The provider answered 429: too many requests.",
    remedy="Wait and try again.",
    provider="example.org",
    retryable=True,
)
ROWS = [
    MethodRow(
        "direct", "done", answer=TEXT, calls=1, tokens=312, seconds=0.84, verdict="unchecked"
    ),
    MethodRow(
        "drad",
        "done",
        verdict="doubtful",
        score=PROBABILITY_SCORE,
        original=TEXT,
        answer=CORRECTED,
        calls=3,
        retrievals=1,
        tokens=1284,
        seconds=2.41,
        flags=("confidence_proxy",),
    ),
    MethodRow("rag", "running", step="draft", calls=1, retrievals=1, tokens=96, seconds=1.7),
    MethodRow("rowen", "failed", error=ERROR, calls=2, seconds=0.4),
]


def calls() -> list[CallBar]:
    """Calls of two methods: parallel, cached, failed and tried again, and one under way."""
    prompt = (
        Message(role="system", content="Answer in one or two short, factual sentences."),
        Message(role="user", content=QUESTION),
    )
    used = Usage(prompt_tokens=64, completion_tokens=29)
    numbers = count()

    def bar(method: str, start: float, end: float, step: str = "draft", **more: Any) -> CallBar:
        values = {
            "request": GenerationRequest(messages=prompt),
            "attempt": 1,
            "generations": (Generation(text=TEXT, usage=used),),
        }
        place = {"span": method, "parent": None, "run": "r", "seq": next(numbers)}
        model = {"role": "main", "model": "SmolLM2-135M-Instruct", "started": start, "time": end}
        return CallBar(method, step, ModelCalled(**(place | model | values | more)))

    def search(method: str, start: float, end: float) -> CallBar:
        event = Retrieved(
            run="r", span=method, parent=None, seq=next(numbers), time=end, started=start,
            retriever="hybrid", query=QUESTION, k=1, passages=(PASSAGE,),
        )  # fmt: skip
        return CallBar(method, "retrieve", event)

    said = Generation(text="", usage=used)
    choice = Choice(probabilities={"True": 1.0}, other_mass=0.0, source="text", text="True")
    scoring: dict[str, Any] = {
        "request": ScoreRequest(messages=prompt, text=TEXT), "generations": (said,),
    }  # fmt: skip
    choosing: dict[str, Any] = {
        "request": ChoiceRequest(messages=prompt, options=()), "choice": choice,
        "generations": (said,),
    }  # fmt: skip
    return [
        bar("direct", 0.0, 0.84),
        bar("drad", 0.0, 0.84, cached=True),
        search("drad", 0.9, 1.02),
        bar("drad", 1.05, 1.3, error=ERROR, generations=()),
        bar("drad", 1.5, 2.1, "resume", attempt=2),
        bar("drad", 1.5, 1.9, "detect", **scoring),
        bar("drad", 2.12, 2.3, "detect", **choosing),
        search("rag", 0.0, 0.14),
        CallBar("rag", "draft", StepView("rag.draft", "draft", 0.2)),
    ]
