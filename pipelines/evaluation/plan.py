"""What an evaluation is asked to do: systems on the items of a data set, and what one answer needs.

A system is a method with its settings, models and evidence. What it answers on an item is found
again by a key of everything that decides it, so that nothing is asked or paid for twice.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from pipelines.base import Frozen, Language, Passage
from pipelines.engine.asking import RunPlan, RunRequest, plan_run
from pipelines.engine.checking import unasked_question
from pipelines.error_words import Phrase, phrase
from pipelines.errors import failure
from pipelines.models.providers import ModelSpec
from pipelines.run.calibrations import Calibrations
from pipelines.run.events import MAX_QUESTION, MAX_TEXT, EvidenceSpec, GivenAnswer, MethodSpec
from pipelines.store.evaluations import AnswerTask
from pipelines.store.tables import refuse_keys_in_prompts
from pipelines.text import detect_language, split_sentences

# What is evaluated on: data sets of items, and what they offer to methods and metrics.

Offer = Literal[
    "questions",
    "answers",
    "wrong_answers",
    "lists",
    "passages",
    "texts",
    "labelled_texts",
    "labelled_sentences",
    "labelled_spans",
    "samples",
]
"""What an item can hold; a method or a metric that needs more does not apply to it."""

AnswerForm = Literal["reasoned", "yes_no"]
"""A form in which every system answers: see `pipelines.evaluation.forms`."""

Label = Literal["accurate", "minor", "major"]
"""How wrong people found a piece of a text. Where a data set knows only two, "major" is wrong."""


class LabelledSpan(Frozen):
    """A piece [start, end) of an item's text with people's label; `kind` is the kind of error."""

    start: Annotated[int, Field(ge=0)]
    end: Annotated[int, Field(ge=0)]
    label: Label
    kind: str = ""


class Item(Frozen):
    """One item of a data set.

    `answers` are the accepted answers, any of which is right, the best one first; "yes" and "no"
    for questions of truth. `wrong_answers` are known to be wrong. `lists` are the entities that a
    complete answer names, each with its aliases. `passages` are the evidence that belongs to the
    item. `text` is an answer that is there already, and is to be checked; `hallucinated` is
    people's label of it as a whole, `sentences` and `spans` their labels of its pieces, `samples`
    other answers of the same model. Items of one `group` share a document, so that they are not
    independent. `tags` are the data set's own classes.
    """

    id: Annotated[str, Field(min_length=1)]
    question: str = ""
    language: Language | None = None
    answers: tuple[str, ...] = ()
    wrong_answers: tuple[str, ...] = ()
    lists: tuple[tuple[str, ...], ...] = ()
    passages: tuple[Passage, ...] = ()
    text: str = ""
    hallucinated: bool | None = None
    sentences: tuple[LabelledSpan, ...] = ()
    spans: tuple[LabelledSpan, ...] = ()
    samples: tuple[str, ...] = ()
    group: str = ""
    tags: tuple[str, ...] = ()

    @property
    def evidence(self) -> str:
        """Its passages as one text, of which a run reads the first `MAX_TEXT` characters."""
        return "\n\n".join(passage.text for passage in self.passages)

    @property
    def offers(self) -> frozenset[Offer]:
        """What this item holds. One whose text was labelled, and has no span, is free of errors."""
        held: dict[Offer, bool] = {
            "questions": bool(self.question),
            "answers": bool(self.answers),
            "wrong_answers": bool(self.wrong_answers),
            "lists": bool(self.lists),
            "passages": bool(self.passages),
            "texts": bool(self.text),
            "labelled_texts": self.hallucinated is not None,
            "labelled_sentences": bool(self.sentences),
            "labelled_spans": bool(self.spans),
            "samples": bool(self.samples),
        }
        return frozenset(offer for offer, holds in held.items() if holds)


class PartRead(Frozen):
    """A part of an item, the columns that it was read from where they are known, and examples."""

    part: str
    columns: tuple[str, ...] = ()
    examples: tuple[str, ...] = ()


class LabelRead(Frozen):
    """A value of the column of labels ("" for none), what it was taken for, and how often."""

    value: str
    hallucinated: bool | None
    count: int


class Reading(Frozen):
    """How a data set was read from a table, so that people can see whether that was right.

    `form` is the title of a known form, "" where its columns were mapped. `notes` say what was
    special in the file. `left_out` says of the first rows that were left out what was wrong.
    """

    form: str = ""
    parts: tuple[PartRead, ...] = ()
    labels: tuple[LabelRead, ...] = ()
    notes: tuple[Phrase, ...] = ()
    left_out: tuple[Phrase, ...] = ()
    left_out_count: int = 0


class DataSet(Frozen):
    """A data set as it was read. `hash` is of its items, so that two results can be compared.

    `source` and `licence` are shown where its results are. `reading` is None for a bundled one.
    """

    name: str
    items: tuple[Item, ...]
    hash: str
    source: str = ""
    licence: str = ""
    reading: Reading | None = None

    @property
    def offers(self) -> frozenset[Offer]:
        """What at least one of the items holds."""
        return frozenset(offer for item in self.items for offer in item.offers)


MAX_ITEMS = 100_000
MAX_SYSTEMS = 50
MAX_REPEATS = 20

_PIPELINES = Path(__file__).resolve().parents[1]
_DECIDING = ("text", "retrieval", "models", "run", "methods")


class System(Frozen):
    """A method with everything that decides what it answers; `name` is unique in an evaluation.

    `models` are those of every role, also those that the method does not use. `evidence` None: the
    passages that belong to the item. `prompts` are texts in place of shipped prompts, see
    `pipelines.prompts.Wording`.
    """

    name: str
    method: MethodSpec
    models: dict[str, ModelSpec]
    evidence: EvidenceSpec | None = EvidenceSpec()
    prompts: Annotated[
        dict[str, dict[str, dict[str, str]]],
        Field(exclude_if=lambda prompts: not prompts),
    ] = Field(default_factory=dict)


class Budget(Frozen):
    """Where an evaluation stops; None: nowhere.

    A call that could pass `calls`, `tokens` or `money` is not made, see `Ledger`; they count what
    was asked in all attempts, those of failed and interrupted runs too. Once `hours` have passed
    since the evaluation was last started or continued, no further answer is begun. `money` is in
    the currency of the models' prices.
    """

    calls: Annotated[int, Field(ge=0)] | None = None
    tokens: Annotated[int, Field(ge=0)] | None = None
    money: Annotated[float, Field(ge=0)] | None = None
    hours: Annotated[float, Field(ge=0)] | None = None


class EvaluationSpec(Frozen):
    """Everything that determines an evaluation.

    `data` names the data set, `data_hash` is of its items; `code` is the `code_version` it began
    with. `checks` says what methods do with the items: answer their questions, or check the texts
    that they hold. Repeat r is asked with the seed `seed` + r, and never answered by another
    repeat's replies. With `reproducible` local models answer one call at a time, more slowly, and
    the same in every evaluation. `metrics` are those that the table shows; None: all that apply.
    `limits` say where it stops; they decide nothing that is answered, and can be changed when it is
    continued.
    `reading` is how the data set was read. `form` names the form in which all systems answer, None
    where each has its own; what decides is the text of the systems' prompts.
    `profile` names the saved profile whose settings the systems have, and `calibrations` are its:
    each run shows those that hold for it. They decide nothing that is answered.
    """

    data: str
    data_hash: str
    code: str
    source: str = ""
    licence: str = ""
    reading: Annotated[Reading | None, Field(exclude_if=lambda told: told is None)] = None
    checks: Literal["questions", "texts"] = "questions"
    form: Annotated[AnswerForm | None, Field(exclude_if=lambda form: form is None)] = None
    systems: tuple[System, ...]
    seed: int = 0
    repeats: Annotated[int, Field(ge=1, le=MAX_REPEATS)] = 1
    reproducible: bool = False
    metrics: tuple[str, ...] | None = None
    limits: Budget = Budget()
    profile: str = ""
    calibrations: Calibrations = ()


def checked_spec(spec: EvaluationSpec, items: Sequence[Item]) -> EvaluationSpec:
    """Return `spec`, once everything about it was checked; raises InvalidInputError saying
    what to do.
    """
    if not items:
        raise failure("evaluation.no_items")
    if not spec.systems:
        raise failure("evaluation.no_method")
    for what, count, most in (
        ("many.items", len(items), MAX_ITEMS),
        ("many.systems", len(spec.systems), MAX_SYSTEMS),
    ):
        if count > most:
            raise failure("evaluation.too_many", count=count, what=phrase(what), most=most)
    names = [system.name for system in spec.systems]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise failure("evaluation.same_name", name=twice)
    ids = {item.id for item in items}
    if len(ids) < len(items):
        raise failure("evaluation.same_id")
    for number, item in enumerate(items, start=1):
        _check(item, spec, number)
    for system in spec.systems:
        refuse_keys_in_prompts(system.prompts)
        # What can be wrong with a system is wrong on every item.
        plan_of(spec, system, items[0], 0)
    return spec


def _check(item: Item, spec: EvaluationSpec, number: int) -> None:
    asks = spec.checks == "questions"
    if (asks and not item.question.strip()) or len(item.question) > MAX_QUESTION:
        raise failure("evaluation.no_question", number=number, item=item.id, most=MAX_QUESTION)
    if spec.checks == "texts" and not 1 <= len(item.text) <= MAX_TEXT:
        raise failure("evaluation.no_text", number=number, item=item.id, most=MAX_TEXT)


def plan_of(spec: EvaluationSpec, system: System, item: Item, repeat: int) -> RunPlan:
    """Return the plan of the run in which `system` answers `item`.

    A text without a question is checked as `pipelines.engine.checking` does it.
    """
    evidence = system.evidence
    if evidence is None:
        evidence = EvidenceSpec(source="given", text=item.evidence[:MAX_TEXT])
    given, question = None, item.question
    if spec.checks == "texts":
        samples = tuple(sample[:MAX_TEXT] for sample in item.samples)
        asked = bool(question.strip())
        given = GivenAnswer(
            text=item.text,
            samples=samples,
            asked=asked,
            alone=not asked and len(split_sentences(item.text)) > 1,
        )
        if not asked:
            question = unasked_question(item.language or detect_language(item.text))
    request = RunRequest(
        question=question,
        answer=given,
        methods=(system.method,),
        models=system.models,
        evidence=evidence,
        language=item.language,
        seed=spec.seed + repeat,
        reproducible=spec.reproducible,
        prompts=system.prompts,
        calibrations=spec.calibrations,
    )
    return plan_run(request)


def key_of(plan: RunPlan, repeat: int) -> str:
    """Return what everything that decides the answer of a run comes to: 64 hexadecimal digits.

    That is the run's specification, but for its calibrations, with the settings that it leaves to
    their defaults, the prompts of the method, the repeat, and the version of the code.
    """
    ((method, settings),) = plan.methods
    whole: dict[str, Any] = {
        "run": plan.spec.model_dump(mode="json", exclude={"calibrations"}),
        "settings": settings.model_dump(mode="json"),
        "prompts": {one.name: one.hash_with(plan.spec.prompts) for one in method.prompts},
        "repeat": repeat,
        "code": code_version(),
    }
    text = json.dumps(whole, sort_keys=True, ensure_ascii=False)
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


@cache
def code_version() -> str:
    """Return what the code comes to that decides what methods answer: 12 hexadecimal digits."""
    digest = sha256()
    for room in _DECIDING:
        for file in sorted((_PIPELINES / room).rglob("*.py")):
            digest.update(file.read_bytes())
    return digest.hexdigest()[:12]


def tasks_of(spec: EvaluationSpec, items: Sequence[Item]) -> Iterator[AnswerTask]:
    """Yield every answer that is needed: all systems on the first item, then on the next one.

    So a table of what there is compares systems on the same items, however far it has come.
    """
    number = 0
    for position, item in enumerate(items):
        for repeat in range(spec.repeats):
            for index, system in enumerate(spec.systems):
                key = key_of(plan_of(spec, system, item, repeat), repeat)
                yield AnswerTask(number, position, index, repeat, key)
                number += 1


def system_names(methods: Sequence[str]) -> Mapping[str, str]:
    """Return a name for each of `methods`, which may be named twice: "drad", "drad 2"."""
    seen: dict[str, int] = {}
    named: dict[str, str] = {}
    for method in methods:
        seen[method] = seen.get(method, 0) + 1
        named[method if seen[method] == 1 else f"{method} {seen[method]}"] = method
    return named
