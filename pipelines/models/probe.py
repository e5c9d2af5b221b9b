"""Finds out by a few short calls what a configured model can do."""

from __future__ import annotations

import asyncio
import json
import time
import unicodedata
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Iterable, Sequence
from pathlib import Path

from pipelines.aio import together, usable_cores, write_whole
from pipelines.base import Frozen, Generation, Language, Message
from pipelines.errors import ModelTimeoutError, VeriscopeError, failure
from pipelines.models.base import (
    CONCESSIONS,
    Capabilities,
    ChoiceRequest,
    Delta,
    GenerationRequest,
    Model,
    Option,
    parse_choice,
)
from pipelines.models.catalogue import CatalogueEntry

Value = str | float | int | bool | None
Found = tuple[bool | None, Value, str]
"""Whether the model is able, with the value and the note of the `Finding`."""


class Finding(Frozen):
    """What one check found. `key` is a catalogue key; `value` is shown, `note` explains it.

    `ok` is None where the check could not be carried out: the service was busy, slow or away, so
    that nothing is known. Values by key: "reachable" seconds until a short reply was complete;
    "streaming" seconds until its first piece; "logprobs" the number of alternatives per token
    (None: the whole vocabulary); "english" and "chinese" the first reply; "format", "schema",
    "prefill" and "instructions" the reply; "judging" how many claims were judged right;
    "concessions", which is only there where there are any, their names.
    """

    key: str
    ok: bool | None
    value: Value = None
    note: str = ""


class ProbeReport(Frozen):
    """What a model was found able to do; `capabilities` replaces what was assumed of it.

    What is not known stays as it was assumed.
    """

    capabilities: Capabilities
    findings: tuple[Finding, ...]

    @property
    def unknown(self) -> tuple[str, ...]:
        """The keys of the checks that could not be carried out."""
        return tuple(finding.key for finding in self.findings if finding.ok is None)

    def on(self, known: Capabilities) -> Capabilities:
        """Return what was found, on top of what is `known`."""
        return _found(known, self.findings)


async def probe(model: Model, seconds: float | None = None) -> ProbeReport:
    """Try each ability on `model`. Build the model without overrides, so that nothing is ruled out.

    After so many `seconds` it ends, and what was not found out by then is unknown. Raises what the
    very first call raises: a model that cannot be reached, does not exist or refuses the key has
    nothing to report. A later check that fails is a finding, and so is one that could not be
    carried out.
    """
    findings: list[Finding] = []
    limit = asyncio.timeout(seconds)
    try:
        async with limit:
            await _probe(model, findings)
    except TimeoutError:
        if not limit.expired():
            raise
        done = {finding.key for finding in findings}
        late = failure("service.check_too_long", seconds=f"{seconds:g}").message
        findings += [
            Finding(key=key, ok=None, note=late)
            for key in ("reachable", "english", *_checks())
            if key not in done
        ]
    findings += _given_up(model)
    return ProbeReport(capabilities=_found(model.capabilities, findings), findings=tuple(findings))


async def _probe(model: Model, findings: list[Finding]) -> None:
    """Add what is found to `findings`, one after the other."""
    started = time.perf_counter()
    reply = (await _ask(model, _FRANCE)).text
    waited = round(time.perf_counter() - started, 3)
    note = "Seconds until a short reply was complete."
    findings.append(Finding(key="reachable", ok=True, value=waited, note=note))
    findings.append(Finding(key="english", ok="paris" in reply.casefold(), value=reply.strip()))
    async for finding in _checked(model, _checks()):
        findings.append(finding)


async def probe_again(
    model: Model, known: Capabilities, unknown: Collection[str]
) -> AsyncGenerator[ProbeReport]:
    """Run only the checks of `unknown`, with a report after each; everything else is as `known`.

    `model` is built without overrides, as for `probe`. What still cannot be found out is a finding.
    """
    findings: list[Finding] = []
    async for finding in _checked(model, [key for key in _checks() if key in unknown]):
        findings.append(finding)
        with_ways = [*findings, *_given_up(model)]
        yield ProbeReport(capabilities=_found(known, with_ways), findings=tuple(findings))


def _given_up(model: Model) -> list[Finding]:
    """Return what the checks had to do differently for the model's server, as one finding."""
    made = model.capabilities.concessions
    return [Finding(key="concessions", ok=True, value=" ".join(made))] if made else []


def _checks() -> dict[str, Callable[[Model], Awaitable[Found]]]:
    return {
        "streaming": _streaming,
        "logprobs": _logprobs,
        "chinese": _chinese,
        "format": _format,
        "schema": _schema,
        "prefill": _prefill,
        "instructions": _instructions,
        "judging": _judging,
    }


async def _checked(model: Model, keys: Iterable[str]) -> AsyncGenerator[Finding]:
    """Yield the findings of these checks. A service that does not answer in time is not waited
    for again.

    A failure that may pass leaves a check unknown, a time limit too, which no call tries again.
    """
    late: VeriscopeError | None = None
    for key in keys:
        try:
            if late is not None:
                raise late
            ok, value, note = await _checks()[key](model)
        except VeriscopeError as error:
            late = error if isinstance(error, ModelTimeoutError) else late
            ok, value, note = None if type(error).retryable else False, None, error.message
        yield Finding(key=key, ok=ok, value=value, note=note)


def _found(can: Capabilities, findings: Sequence[Finding]) -> Capabilities:
    found = {finding.key: finding for finding in findings if finding.ok is not None}
    spoken: dict[str, Language] = {"english": "en", "chinese": "zh"}

    def able(key: str, assumed: bool) -> bool:
        return bool(found[key].ok) if key in found else assumed

    alternatives = can.top_logprobs
    if "logprobs" in found:
        alternatives = found["logprobs"].value if found["logprobs"].ok else 0
    ways = str(found["concessions"].value).split() if "concessions" in found else ()
    languages = {code for key, code in spoken.items() if able(key, code in can.languages)}
    return can.model_copy(
        update={
            "languages": frozenset(languages),
            "logprobs": able("logprobs", can.logprobs),
            "top_logprobs": alternatives,
            "structured_output": able("schema", can.structured_output),
            "streaming": able("streaming", can.streaming),
            "prefill": able("prefill", can.prefill),
            "weak": not able("instructions", not can.weak),
            "judges": able("judging", can.judges),
            "concessions": tuple(one for one in CONCESSIONS if one in {*can.concessions, *ways}),
        }
    )


_FRANCE = "What is the capital of France? Answer in one short sentence."
# Each is asked for a name that a speaker of the language knows, and can hardly hit by chance.
_CHINESE = (
    ("中国的首都是哪座城市？请只用中文回答城市名。", "北京"),
    ("一个星期的第一天叫星期一，最后一天叫什么？请只用中文回答。", "星期日", "星期天", "周日"),
)
_CHINESE_SHARE = 0.6
_YES_NO = (Option(label="yes", spellings=("YES",)), Option(label="no", spellings=("NO",)))
_SCHEMA = {
    "type": "object",
    "properties": {"town": {"type": "string", "maxLength": 40}, "age": {"type": "integer"}},
    "required": ["town", "age"],
    "additionalProperties": False,
}


async def _ask(model: Model, text: str, prefix: str = "", **fields: object) -> Generation:
    turns = [Message(role="user", content=text)]
    if prefix:
        turns.append(Message(role="assistant", content=prefix))
    request = GenerationRequest.model_validate(
        {"messages": tuple(turns), "max_tokens": 48, **fields}
    )
    return (await model.generate(request))[0]


async def _streaming(model: Model) -> Found:
    started = time.perf_counter()
    pieces: list[str] = []
    waited = 0.0

    def watch(delta: Delta) -> None:
        nonlocal waited
        if delta.restart:
            pieces.clear()
            return
        waited = waited if pieces else time.perf_counter() - started
        pieces.append(delta.text)

    turns = (Message(role="user", content="Count from one to ten in words."),)
    (reply,) = await model.generate(GenerationRequest(messages=turns, max_tokens=32), watch)
    ok = len(pieces) > 1 and "".join(pieces) == reply.text
    return ok, round(waited, 3), f"{len(pieces)} pieces; the value is seconds until the first."


async def _logprobs(model: Model) -> Found:
    failure = "The server sent no log-probabilities."
    declared = model.capabilities.top_logprobs or 0
    for wanted in sorted({declared, 20, 5, 1} - {0}, reverse=True):
        try:
            reply = await _ask(model, _FRANCE, max_tokens=4, logprobs=True, top_k=wanted)
        except VeriscopeError as error:
            if type(error).retryable:
                # Nothing is known then, also where no call tries again, as after a time limit.
                raise
            failure = error.message
            continue
        tokens = [token for token in reply.tokens or () if token.logprob is not None]
        if not tokens:
            continue
        if all(token.top_k is None for token in tokens):
            return True, None, "Over the whole vocabulary."
        # A server that names no alternatives gives the probability of what was written.
        most = max(min(wanted, len(token.alternatives)) for token in tokens)
        return True, max(1, most), "Alternatives per token."
    return False, 0, failure


async def _chinese(model: Model) -> Found:
    replies: list[str] = []
    for question, *expected in _CHINESE:
        text = (await _ask(model, question)).text
        replies.append(text.strip())
        if not any(name in text for name in expected):
            return False, replies[0], f"Asked {question} it did not answer {expected[0]}."
        if _chinese_share(text) < _CHINESE_SHARE:
            return False, replies[0], "Its replies to Chinese questions are mostly not Chinese."
    return True, replies[0], ""


def _chinese_share(text: str) -> float:
    """Return the share of Chinese characters among the letters of `text`, in [0, 1]."""
    letters = [character for character in text if character.isalpha()]
    chinese = [char for char in letters if unicodedata.name(char, "").startswith("CJK UNIFIED")]
    return len(chinese) / len(letters) if letters else 0.0


async def _format(model: Model) -> Found:
    text = (await _ask(model, "Is Paris a city in France? Reply with YES or NO only.")).text
    return parse_choice(text, _YES_NO) is not None, text.strip(), ""


async def _schema(model: Model) -> Found:
    # The prompt asks for no JSON: only a server that constrains the output answers with it.
    reply = await _ask(model, "Tell me about an old town.", max_tokens=96, json_schema=_SCHEMA)
    try:
        record = json.loads(reply.text)
        ok = set(record) == {"town", "age"} and isinstance(record["age"], int)
    except (ValueError, TypeError):
        ok = False
    return ok, reply.text.strip(), ""


async def _prefill(model: Model) -> Found:
    """Try two begun answers: one only a continuation gives 5, one stops inside a word."""
    counted, spelled = await together(
        _ask(model, "Count from 1 to 10, with commas.", "1, 2, 3, 4,", max_tokens=8),
        _ask(model, "What is the capital of France?", "The capital of France is Par", max_tokens=8),
    )
    goes_on = counted.text.lstrip().startswith("5") and spelled.text[:1].islower()
    return goes_on, f"{counted.text.strip()} | {spelled.text}", ""


_CORRECT = """
Correct the sentence from the evidence. Write only the corrected sentence.

Sentence: The Brandt tunnel was opened in 1904 in Utrecht.
Evidence: The tunnel at Utrecht, named after Ada Brandt, was opened in 1931.
"""
_ANSWER = """
The Carr lamp was invented in Delft by Emil Carr and Ida Moor. It burned oil of turnips.

From this text alone: what did the lamp burn? Answer in a few words.
"""
_REWORD = """
Ask the following question in other words. Write only the new question, and do not answer it.

When was the Brandt tunnel opened?
"""


async def _instructions(model: Model) -> Found:
    """Try three tasks of the methods in small: correct from evidence, answer from it, reword."""
    corrected, answered, reworded = await together(
        *(_ask(model, task.strip(), max_tokens=48) for task in (_CORRECT, _ANSWER, _REWORD))
    )
    question = reworded.text.strip().strip('"“”').casefold()
    asks = question.endswith("?") and question.count("?") == 1 and "brandt" in question
    done = (
        "1931" in corrected.text and "1904" not in corrected.text,
        "turnip" in answered.text.casefold(),
        asks and question != "when was the brandt tunnel opened?",
    )
    replies = " | ".join(one.text.strip() for one in (corrected, answered, reworded))
    return all(done), replies, f"{sum(done)} of {len(done)} small tasks were done."


_LAMP = "The Carr lamp was invented in Delft by Emil Carr. It burned oil of turnips."
_TUNNEL = "The tunnel at Utrecht was opened in May 1931. It was dug by 900 workers in six years."
_CLAIMS = (
    (_LAMP, "The Carr lamp comes from Delft.", "yes"),
    (_LAMP, "Emil Carr invented a lamp.", "yes"),
    (_LAMP, "The Carr lamp burned the oil of whales.", "no"),
    (_LAMP, "The Carr lamp was invented in Paris.", "no"),
    (_TUNNEL, "It took six years to dig the tunnel.", "yes"),
    (_TUNNEL, "The tunnel was opened in the spring of 1931.", "yes"),
    (_TUNNEL, "The tunnel was opened in 1904.", "no"),
    (_TUNNEL, "Fifty workers dug the tunnel.", "no"),
)
_RIGHT = 7
"""Of the eight claims. Who guesses reaches that once in 28 times, who always says yes never."""


async def _judging(model: Model) -> Found:
    """Try claims with known answers: whether its verdicts can be used."""

    async def judged(text: str, claim: str) -> str | None:
        asked = (
            f"Text: {text}\nClaim: {claim}\nDoes the text support the claim? Reply YES or NO only."
        )
        request = ChoiceRequest(messages=(Message(role="user", content=asked),), options=_YES_NO)
        return (await model.choose(request)).best

    said = await together(*(judged(text, claim) for text, claim, _ in _CLAIMS))
    right = sum(one == known for one, (_, _, known) in zip(said, _CLAIMS, strict=True))
    return right >= _RIGHT, right, f"{right} of {len(_CLAIMS)} claims were judged right."


# How fast a model of the catalogue will probably write on this machine: a rough estimate.
#
# To write a token, a processor reads all weights once, and mostly waits for them. So the time for a
# token grows with the size of the weights: parameters times bytes of each. What one model was
# measured to read in a second tells about another.

_FILE = "speed.json"
_QUESTION = "Tell me about the history of London in detail."
_TOKENS = 48
_FEWEST = 12
"""Tokens; of fewer no speed is measured."""

_SHORTEST = 0.05
"""Seconds; what takes less was not computed by a model."""


async def measure(model: Model, size: int) -> float | None:
    """Return bytes of weights read per second while `model`, whose weights have `size`
    bytes, writes.

    Takes seconds, in which the model does nothing else. None where it wrote too little to tell.
    """
    times: list[float] = []

    def watch(delta: Delta) -> None:
        times.append(time.perf_counter())

    request = GenerationRequest(
        messages=(Message(role="user", content=_QUESTION),),
        max_tokens=_TOKENS,
        # Alone: what shares its batches makes it slower.
        reproducible=True,
    )
    await model.generate(request, watch)
    if len(times) < _FEWEST or times[-1] - times[0] < _SHORTEST:
        return None
    # The first token waits for the question to be read.
    return size * (len(times) - 1) / (times[-1] - times[0])


def tokens_per_second(entry: CatalogueEntry, bytes_per_second: float) -> float:
    """Return how many tokens of one text the model will probably write in a second."""
    return bytes_per_second / entry.size


def kept_speed(models: Path) -> float | None:
    """Return what was measured on this machine before; None where nothing was."""
    try:
        kept = json.loads((models / _FILE).read_text(encoding="utf-8"))
        return float(kept["bytes_per_second"]) if kept["cores"] == usable_cores() else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def keep_speed(models: Path, bytes_per_second: float) -> None:
    """Remember what was measured, with the number of usable processor cores it was measured on."""
    models.mkdir(parents=True, exist_ok=True)
    kept = {"bytes_per_second": bytes_per_second, "cores": usable_cores()}
    write_whole(models / _FILE, json.dumps(kept))
