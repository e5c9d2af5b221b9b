"""Verdicts on closed questions: who gives them, on what claim, and how they are asked for.

Where a reply names no option it is asked for again, and then left undecided.

Source of the rule: whatever names no option counts for none of them. Published code of the methods
reads such replies as agreement.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from math import isclose
from typing import Any, Literal

from pipelines.base import Choice, Frozen, Language, Message, Passage
from pipelines.methods.base import load_wording
from pipelines.methods.replies.parsing import parse_fields, parse_json, visible
from pipelines.models.base import ChoiceRequest, Claim, Option, parse_choice
from pipelines.run.events import JUDGES, Verdict
from pipelines.run.scope import Scope

CheckedBy = Literal["auto", "judge", "main"]
"""Who checks: a judge, the main model, or automatically the more reliable of the two."""


def _options(table: str) -> dict[Language, tuple[Option, ...]]:
    spelled: dict[Language, dict[str, tuple[str, ...]]] = load_wording("replies").entries[table]
    return {
        language: tuple(Option(label=label, spellings=words) for label, words in labels.items())
        for language, labels in spelled.items()
    }


TRUE_FALSE = _options("true_false")
"""Labels "true" and "false"; in Chinese also "same" and "different"."""

TRUE_FALSE_NEI = _options("true_false_nei")
"""Labels "true", "false" and "nei": not enough information to tell."""

YES_NO = _options("yes_no")
"""Labels "yes" and "no"."""

EVIDENCE_VERDICTS: Mapping[str, Verdict] = {
    "true": "supported",
    "false": "contradicted",
    "nei": "not_enough",
}
"""What the labels of `TRUE_FALSE_NEI` say of a text that evidence was read for."""

GRADES = _options("graded")
"""Labels "correct", "partly", "wrong" and "abstained": an answer against the accepted ones."""


def checker(scope: Scope, languages: Set[str], wanted: CheckedBy) -> str:
    """Return the role that checks: "main", or the first judge made for it that reads all
    `languages`.

    "auto" leaves the check to the main model unless its verdicts were measured to be no better than
    chance. Without a judge of that kind the main model checks in any case.
    """
    if wanted == "main" or (wanted == "auto" and scope.model().capabilities.judges):
        return "main"
    for role in JUDGES:
        if scope.has_model(role):
            can = scope.model(role).capabilities
            if not can.writes and languages <= can.languages:
                return role
    return "main"


class Reasoned(Frozen):
    """A verdict with the reasoning before it.

    `text` is the model's reply as it was written. `label` is None when neither that reply nor
    `choice`, the answers to being asked for the verdict alone, could be read; `choice` is None
    when nothing more was asked. `repeated`: the service gave this reply to an earlier draw.
    """

    reasoning: str
    label: str | None
    choice: Choice | None
    text: str
    repeated: bool = False


def truth(choice: Choice) -> float | None:
    """Return p(true) / (p(true) + p(false)) in [0, 1]; None when neither has any probability."""
    of_true = choice.probabilities.get("true", 0.0)
    of_both = of_true + choice.probabilities.get("false", 0.0)
    return of_true / of_both if of_both > 0 else None


async def decide_between(
    step: Scope,
    messages: Sequence[Message],
    options: Sequence[Option],
    *,
    reminder: str,
    role: str = "main",
    claim: Claim | None = None,
) -> Choice:
    """Return which option the model answers; asked once more, with `reminder`, when it names none.

    `claim` is what is asked about, for models that judge claims instead of reading prompts. A tie
    at the top names none either. When the second reply names none either, no option of the Choice
    has any probability and its `best` is None: one or two requests.
    """
    model = step.model(role)
    request = ChoiceRequest(
        messages=tuple(messages),
        options=tuple(options),
        claim=claim,
        reproducible=step.reproducible,
    )
    choice = _untied(await model.choose(request))
    if choice.best is None:
        again = reminded(messages, choice.text, reminder)
        choice = _untied(await model.choose(request.model_copy(update={"messages": again})))
    return choice


def _untied(choice: Choice) -> Choice:
    highest = sorted(choice.probabilities.values())[-2:]
    if choice.best is None or len(highest) < 2 or not isclose(*highest, rel_tol=1e-9):
        return choice
    undecided = dict.fromkeys(choice.probabilities, 0.0)
    return choice.model_copy(update={"probabilities": undecided, "other_mass": 1.0})


def reminded(messages: Sequence[Message], said: str, reminder: str) -> tuple[Message, ...]:
    """Return the messages, the reply `said` to them, and the reminder of what it should
    have been.
    """
    # Many chat templates refuse two user turns in a row, so an empty reply has a turn as well.
    before = list(messages)
    if before and before[-1].role == "assistant":
        said = before.pop().content + said
    said = visible(said) or "…"
    return (
        *before,
        Message(role="assistant", content=said),
        Message(role="user", content=reminder),
    )


async def reason_then_decide(
    step: Scope,
    messages: Sequence[Message],
    options: Sequence[Option],
    *,
    labels: Mapping[str, Sequence[str]],
    reminder: str,
    **drawn: Any,
) -> Reasoned:
    """Return reasoning, then a verdict, in one reply; the verdict alone is asked for where it
    has none.

    `labels` are the labels accepted for the fields "reasoning" and "verdict". A model with
    structured output is given a schema of these two fields. `drawn` are options of the request:
    temperature and sample. One to three requests.
    """
    model = step.model()
    schema = _schema(options) if model.capabilities.structured_output else None
    (reply,) = await model.generate(step.request(messages, json_schema=schema, **drawn))
    # What reasoning says on its way is no verdict when it never came to its end.
    cut_off = reply.finish_reason in ("length", "filter", "broken")
    reasoning, label = read_verdict(reply.text, options, labels, cut_off=cut_off)
    found = {"reasoning": reasoning, "text": reply.text, "repeated": reply.repeated}
    if label is not None:
        return Reasoned(label=label, choice=None, **found)
    again = reminded(messages, reply.text, reminder)
    choice = await decide_between(step, again, options, reminder=reminder)
    return Reasoned(label=choice.best, choice=choice, **found)


def _schema(options: Sequence[Option]) -> dict[str, Any]:
    return {
        "type": "object",
        # In this order: what is written first cannot rest on the verdict.
        "properties": {
            "reasoning": {"type": "string"},
            "verdict": {"type": "string", "enum": [option.spellings[0] for option in options]},
        },
        "required": ["reasoning", "verdict"],
        "additionalProperties": False,
    }


def read_verdict(
    text: str,
    options: Sequence[Option],
    labels: Mapping[str, Sequence[str]],
    *,
    cut_off: bool,
) -> tuple[str, str | None]:
    """Return the reasoning of a reply and the label of its verdict, None where it has none.

    With a field for the verdict only that field counts, unless reasons behind it come to another
    verdict. Where the reply was cut off (`cut_off`), nothing else does.
    """
    said = visible(text)
    fields = parse_fields(said, labels)
    label = parse_choice(fields.get("verdict", "" if cut_off else said), options)
    if list(fields) == ["verdict", "reasoning"]:
        # Reasons that stand behind the verdict and come to another one leave neither.
        reasoned = parse_choice(fields["reasoning"], options)
        label = label if reasoned in (None, label) else None
    if "reasoning" in fields or isinstance(parse_json(said), dict):
        return fields.get("reasoning", ""), label
    # What stands before the first label is the reasoning that was not called so.
    unnamed = parse_fields(f"{labels['reasoning'][0]}:\n{said}", labels).get("reasoning", "")
    spelled = {word.casefold() for option in options for word in option.spellings}
    bare = unnamed.strip(" .。!！*\n").casefold()
    return ("" if bare in spelled else unnamed), label


def claim_of(statement: str, passages: Sequence[Passage], question: str = "") -> Claim:
    """Return the claim that `passages`, each under its title, support `statement`."""
    evidence = tuple(f"{one.title}: {one.text}" if one.title else one.text for one in passages)
    return Claim(statement=statement, evidence=evidence, question=question)


def claim_of_answers(question: str, first: str, second: str) -> Claim:
    """Return the claim that two answers to `question` say the same.

    Judges read both directions (`JudgeModel.judged`), so the order of the answers does not matter.
    """
    return Claim(statement=first, evidence=(second,), question=question, relation="same")
