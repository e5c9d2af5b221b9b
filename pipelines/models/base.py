"""What a model is to the rest of the engine: three calls, and a statement of what it can do."""

from __future__ import annotations

import re
import unicodedata
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Sequence
from functools import lru_cache
from itertools import islice
from typing import Annotated, Any, ClassVar, Literal, TypedDict, Unpack, get_args

from pydantic import Field, PlainSerializer

from pipelines.base import (
    Choice,
    Frozen,
    Generation,
    Language,
    Message,
    Token,
    load_wording,
)
from pipelines.errors import CapabilityError, failure
from pipelines.models.error_texts import is_error_text
from pipelines.text.languages import other_language, simplified
from pipelines.text.thinking import is_thinking, without_thinking

AdaptedStep = Literal["extract", "revise", "judge", "translate"]
"""What an adapter can be trained for: concepts, a revised sentence, a verdict, a translation."""


Concession = Literal[
    "temperature",
    "temperature_above_zero",
    "max_tokens",
    "max_completion_tokens",
    "n",
    "seed",
    "stop",
    "response_format",
    "logprobs",
    "top_logprobs",
    "stream_options",
    "continue_final_message",
    "add_generation_prompt",
    "enable_thinking",
    "partial",
    "cache_prompt",
    "system_role",
    "alternation",
    "prefix",
    "content_parts",
    "thinking_off",
    "room_to_think",
    "stream_only",
    "no_stream",
    "cached_samples",
]
"""What is done differently for one model, because its server did not take it as it is usually done:
a field that is left out, or another form. The words of each are in assets/errors.toml."""

CONCESSIONS: tuple[Concession, ...] = get_args(Concession)
"""All of them, in the order in which they are shown."""


class Overrides(TypedDict, total=False):
    """What may be known better about one model than its backend assumes, see `Capabilities`."""

    top_logprobs: int | None
    prefill: bool | None
    structured_output: bool | None
    languages: Collection[Language] | None
    judges: bool | None
    weak: bool | None
    adapted: tuple[AdaptedStep, ...] | None
    concessions: tuple[Concession, ...] | None


class Capabilities(Frozen):
    """What a model can do, declared by its backend or found by the probe.

    `top_logprobs` is the largest number of alternatives the backend reports per token, None for
    the full vocabulary; `prefill` says that a final assistant message is continued rather than
    answered; `scores` that a given text can be teacher-forced; `judges` is False where its verdicts
    were measured to be no better than chance; `writes` is False for models made to judge. `weak`
    is True where the model was measured, or found by the probe, not to follow instructions without
    demonstrations; `adapted` are the steps that it does better with its adapter, which a request
    can switch on. `concessions` are what its server turned out not to take as it is usually asked.
    """

    # A set has another order in every process; what is stored and exported must not.
    languages: Annotated[frozenset[Language], PlainSerializer(sorted, when_used="json")] = (
        frozenset({"en"})
    )
    logprobs: bool = False
    top_logprobs: int | None = 0
    structured_output: bool = False
    streaming: bool = True
    prefill: bool = False
    scores: bool = False
    judges: bool = True
    writes: bool = True
    weak: bool = False
    adapted: tuple[AdaptedStep, ...] = ()
    concessions: Annotated[
        tuple[Concession, ...], Field(exclude_if=lambda concessions: not concessions)
    ] = ()

    def overridden(self, **known: Unpack[Overrides]) -> Capabilities:
        """Return these abilities with what is known better about one model; None changes nothing.

        `top_logprobs` 0 says that there are no log-probabilities at all.
        """
        update: dict[str, object] = {name: one for name, one in known.items() if one is not None}
        if (alternatives := known.get("top_logprobs")) is not None:
            update["logprobs"] = alternatives > 0
        update["languages"] = frozenset(known.get("languages") or self.languages)
        return self.model_copy(update=update)


REFLECTION_TOKENS = (
    *("[No Retrieval]", "[Retrieval]", "[Continue to Use Evidence]"),
    *("[Irrelevant]", "[Relevant]", "<paragraph>", "</paragraph>"),
    *("[Utility:1]", "[Utility:2]", "[Utility:3]", "[Utility:4]", "[Utility:5]"),
    *("[Fully supported]", "[Partially supported]", "[No support / Contradictory]"),
)
"""What the vocabulary of Self-RAG's weights has beside words (Asai and others, ICLR 2024)."""

EMBEDDED_NAME = "SmolLM2-135M-Instruct"
"""The bundled language model, and what people see as its name."""

DASHSCOPE_URL = "https://dashscope.aliyuncs.com/api/v1"
"""The address of DashScope for mainland China; keys of other regions need the address of theirs,
such as https://dashscope-intl.aliyuncs.com/api/v1."""

_BOTH: frozenset[Language] = frozenset({"en", "zh"})

OPENAI = Capabilities(languages=_BOTH, logprobs=True, top_logprobs=20, structured_output=True)
"""What an OpenAI-compatible server is taken to offer until the probe has been there."""

DASHSCOPE = OPENAI.overridden(top_logprobs=5)
"""The same for DashScope, which reports at most five alternatives."""

LLAMA_CPP = OPENAI.overridden(top_logprobs=100, prefill=True).model_copy(update={"scores": True})
"""What llama.cpp offers in this process, whatever the model."""

TRANSFORMERS = Capabilities(
    languages=_BOTH, logprobs=True, top_logprobs=None, prefill=True, scores=True
)
"""What transformers offers, whatever the model: the whole distribution."""

JUDGE = Capabilities(streaming=False, writes=False)
"""What a model made to judge offers: verdicts on claims, in English unless it says otherwise."""


class GenerationRequest(Frozen):
    """Ask for `n` texts that continue `messages`.

    `temperature` 0 is greedy. `sample` numbers repeated draws of the same prompt: without it a
    request above temperature 0 is never cached. `json_schema` constrains the output where the
    backend can. `reproducible` asks for one sequence at a time in float32. `adapted` switches the
    model's adapter on; without one it changes nothing.
    """

    messages: tuple[Message, ...]
    n: int = 1
    temperature: float = 0.0
    max_tokens: int = 256
    stop: tuple[str, ...] = ()
    logprobs: bool = False
    top_k: int = 10
    json_schema: dict[str, Any] | None = None
    seed: int = 0
    sample: int | None = None
    reproducible: bool = False
    adapted: bool = False

    @property
    def is_random(self) -> bool:
        """Whether the same request may be answered differently each time: nothing numbers the
        draw."""
        return self.temperature > 0 and self.sample is None


class Option(Frozen):
    """One option of a closed choice with every spelling that counts for it, e.g. YES, Yes, 是."""

    label: str
    spellings: tuple[str, ...]


Relation = Literal["support", "same"]


class Claim(Frozen):
    """What a closed question is about, for models that judge without reading a prompt.

    `statement` answers `question`, or stands for itself where that is empty. Under the relation
    "support" the question is whether `evidence` supports it; under "same" whether `evidence`,
    another answer, says the same.
    """

    statement: str
    evidence: tuple[str, ...]
    question: str = ""
    relation: Relation = "support"

    @property
    def other_language(self) -> str | None:
        """The language of statement or evidence where one is neither English nor Chinese."""
        asked = f"{self.question} {self.statement}"
        return other_language(asked) or other_language("\n".join(self.evidence))


class ChoiceRequest(Frozen):
    """Ask which of `options` the model would answer first. `claim` says the same without a prompt.

    Models made to judge know the options by their labels: true, false and nei, or yes and no.
    """

    messages: tuple[Message, ...]
    options: tuple[Option, ...]
    claim: Claim | None = None
    reproducible: bool = False
    adapted: bool = False


class ScoreRequest(Frozen):
    """Ask for the probability of every token of `text` as the reply to `messages`."""

    messages: tuple[Message, ...]
    text: str
    top_k: int = 10
    reproducible: bool = False


ModelRequest = GenerationRequest | ChoiceRequest | ScoreRequest


class SimilarityRequest(Frozen):
    """Ask an embedder for the cosine of every text of `left` with every text of `right`.

    The first `asked` texts of `left` are questions, which some embedders embed otherwise.
    """

    left: tuple[str, ...]
    right: tuple[str, ...]
    asked: Annotated[int, Field(ge=0, exclude_if=lambda asked: not asked)] = 0


class Delta(Frozen):
    """A piece of text as it is written; `tokens` carry offsets in the whole text so far.

    `restart` tells the reader to forget the pieces before: the call is being tried again.
    """

    text: str
    tokens: tuple[Token, ...] = ()
    restart: bool = False


Watcher = Callable[[Delta], bool | None]
"""Receives each Delta; returning True ends the writing there (finish reason "watcher")."""


Progress = Callable[[str, float], None]
"""Receives the stage of loading ("load", "downloading" or "loading") and its fraction in [0, 1]; it
is called in the thread that loads."""


def no_progress(stage: str, fraction: float) -> None:
    """Tell nobody: a `Progress` for those who show none."""


class Model(ABC):
    """A language model. Backends implement `generate`; the rest has defaults built on it.

    A failed call raises one of `pipelines.errors`; cancelling the awaiting task ends the work.
    What an `illustration` answers was written by hand. `at_once` is how many calls it works on
    together, known once it is loaded; None where that is not for the model to say.
    """

    name: str
    illustration: ClassVar[bool] = False
    at_once: int | None = None
    _capabilities: Capabilities

    @property
    def capabilities(self) -> Capabilities:
        """What this model can do."""
        return self._capabilities

    @abstractmethod
    async def generate(
        self, request: GenerationRequest, watch: Watcher | None = None
    ) -> tuple[Generation, ...]:
        """Write `request.n` texts; `watch` sees the first one grow."""

    async def choose(self, request: ChoiceRequest) -> Choice:
        """Return each option's probability as the reply's beginning (see `models.base`)."""

        return await choose_by_generating(self, request)

    async def score(self, request: ScoreRequest) -> Generation:
        """Return `request.text` with the probability the model gives each of its tokens."""
        raise failure("asking.no_scores", self.name, name=self.name)

    async def prepare(self) -> None:  # noqa: B027 - most backends need no preparation
        """Load what the first call would otherwise have to wait for; raises what loading raises."""

    async def aclose(self) -> None:  # noqa: B027 - most backends hold nothing open
        """Release what the model holds."""


# Closed choices: which of a few options a model answers, from probabilities or from its text.

_ALTERNATIVES = 100
_SHORT = 48
_WITH_REASONING = 2048
_MOST_LEADS = 100
"""Phrases such as "the answer is" in one reply: one with more means none of them."""


def unread(request: ChoiceRequest, source: Literal["judge", "text"] = "text") -> Choice | None:
    """Return what a judge of English and Chinese says of a claim in another language: nothing.

    None where it can read the claim, and where two answers are only compared with each other.
    """
    claim = request.claim
    if claim is None or claim.relation == "same" or claim.other_language is None:
        return None
    shares = {option.label: 0.0 for option in request.options}
    return Choice(probabilities=shares, other_mass=1.0, source=source)


async def choose_by_generating(
    model: Model, request: ChoiceRequest, *, by_text: bool = False
) -> Choice:
    """Return the probability of each option as the first token of the reply, where the backend
    tells it.

    All reported spellings of an option count together; what fell on no option, on ambiguous tokens
    and on tokens not reported is `other_mass`. Elsewhere a short reply is parsed: the option it
    names gets 1.0, and if it names none, or was filtered, `other_mass` is 1.0. That reply is also
    parsed where the first token only begins to think. With `by_text` no probabilities are asked
    for. A model of English alone decides nothing on a claim in another language than English and
    Chinese (`unread`).
    """
    if model.capabilities.languages == {"en"} and (none := unread(request)) is not None:
        return none
    asked = GenerationRequest(
        messages=request.messages,
        max_tokens=_SHORT,
        reproducible=request.reproducible,
        adapted=request.adapted,
    )
    if model.capabilities.logprobs and not by_text:
        width = min(_ALTERNATIVES, model.capabilities.top_logprobs or _ALTERNATIVES)
        first = asked.model_copy(update={"max_tokens": 1, "logprobs": True, "top_k": width})
        try:
            (reply,) = await model.generate(first)
        except CapabilityError:
            # The backend was taken to offer probabilities and does not: its text still counts.
            reply = None
        if reply is not None and reply.tokens and reply.finish_reason not in ("filter", "broken"):
            choice = _by_probability(reply.tokens[0], request.options)
            if _agrees(reply, choice, request.options):
                return choice
    (reply,) = await model.generate(asked)
    unsaid = not reply.text.strip() or is_thinking(reply.text)
    if unsaid and reply.finish_reason == "length":
        longer = asked.model_copy(update={"max_tokens": _WITH_REASONING})
        (reply,) = await model.generate(longer)
    # What a filter, or a server that broke it off, left of a reply is none, and neither is the
    # text of an error.
    lost = reply.finish_reason in ("filter", "broken") or is_error_text(reply.text)
    said = "" if lost else reply.text
    return choice_of_text(said, request.options)


def _agrees(reply: Generation, choice: Choice, options: Sequence[Option]) -> bool:
    """Return whether the first token is the answer, and what follows, if any, agrees with it."""
    said = reply.text.strip().casefold()
    if said and (is_thinking(said) or "<think>".startswith(said)):
        # The answer comes after the thinking.
        return False
    alone = len(reply.tokens or ()) == 1
    return alone or choice.best is None or parse_choice(reply.text, options) == choice.best


def _by_probability(token: Token, options: Sequence[Option]) -> Choice:
    reported = [(alternative.text, alternative.probability) for alternative in token.alternatives]
    # Backends list the written token among the candidates only when it is probable enough.
    if token.probability is not None and all(
        alternative.logprob != token.logprob for alternative in token.alternatives
    ):
        reported.append((token.text, token.probability))
    masses = {option.label: 0.0 for option in options}
    for text, mass in reported:
        label = option_of_token(text, options)
        if label is not None:
            masses[label] += mass
    total = sum(masses.values())
    if total > 1.0:
        masses = {label: mass / total for label, mass in masses.items()}
    return Choice(
        probabilities=masses, other_mass=max(0.0, 1.0 - total), source="logprobs", text=token.text
    )


def option_of_token(text: str, options: Sequence[Option]) -> str | None:
    """Return the option a first token speaks for, None when it speaks for none or more than one.

    White space before it and punctuation after it are ignored; case counts as spelled. A token
    that only begins a spelling counts when no other option begins so: "Y" for "YES" against "NO",
    but not "不" for "不是" against "不知道".
    """
    word = text.lstrip(" \t\n▁Ġ").rstrip(" \t\n.,:;!。，：；！")
    if not word:
        return None
    labels = {
        option.label
        for option in options
        if any(_may_become(word, spelling, options) for spelling in option.spellings)
    }
    return labels.pop() if len(labels) == 1 else None


def _may_become(word: str, spelling: str, options: Sequence[Option]) -> bool:
    if not spelling.startswith(word):
        return False
    is_word = any(word in option.spellings for option in options)
    if len(spelling) == len(word) or not is_word:
        return True
    # "No" stands for itself and not for "Not enough": a tokenizer would have gone on to "Not".
    following = spelling[len(word)]
    return not (following.isascii() and following.isalnum())


_wording = load_wording("choices")
_MARKUP = re.compile(r"[*_`#<>\"'“”‘’「」『』《》\[\](){}]|\\boxed")
# "NEI (not enough information)", "True [passage 2]": a remark ends the words before it.
_REMARK = re.compile(r"(?<=[\w*`\"'”’])[ \t]*[(（\[【](?=\w)")
# What may follow an option for it to be a complete answer; 的 ends a Chinese one.
_END = r"(?=的?\s*(?:$|\n|[.,;:!。、]|[-–—]\s|\s(?:because|since|as)\b|因为))"
_LEAD = _wording.pattern("lead")
_AGREES = ("yes", "true", "correct")
_TAKEN_BACK = _wording.pattern("taken_back", flags=re.DOTALL)
_PART_WRONG = _wording.pattern("part_wrong", flags=0)
_UNSURE = _wording.pattern("unsure", flags=0)
_CONDITIONAL = _wording.pattern("conditional", flags=0)
_DOUBT = _wording.pattern("doubt", flags=0)
_DECIDED = ("yes", "true", "correct", "no", "false", "wrong")
_CONDITION = _wording.pattern("condition", flags=0)
_SENTENCE_ENDS = ".;!?。\n"
_RETRACTED = _wording.pattern("retracted", flags=re.DOTALL)
_CORRECTED = _wording.pattern("corrected", flags=re.DOTALL)
# Behind an option in a list ("True, False or NEI") more words may stand, but not more of the word.
_LISTED_END = r"(?![a-z0-9])"
_CLAUSE = re.compile(r"[.,;:!?。、\n]+|\s[-–—]\s")
_BETWEEN = re.compile(r"[\s.,;/。、]*(?:(?:or|and|nor)\b|或者?|还是|和)?\s*")


def choice_of_text(text: str, options: Sequence[Option]) -> Choice:
    """Give the option that `text` names all the probability; none of them where it names none."""
    named = parse_choice(text, options)
    return Choice(
        probabilities={option.label: float(option.label == named) for option in options},
        other_mass=float(named is None),
        source="text",
        text=text,
    )


def parse_choice(text: str, options: Sequence[Option]) -> str | None:
    """Return the label of the option that `text` names, None unless it names exactly one.

    Counts an option that stands at the very beginning, alone on the last line, or after a phrase
    such as "the answer is"; case, markdown, full-width forms and <think> blocks do not matter. An
    option counts only as a complete word or phrase that ends there, if need be before a remark in
    brackets: "untrue", "not true", "不是真的", "no idea" and "true or false" name nothing. Neither
    does a yes or true with a reservation ("Yes, but the year is wrong"), one beside which another
    option stands alone between two marks ("True. Actually, false."), nor any option that is taken
    back, depends on a condition, or is not meant for sure ("I'm not sure. The answer is no.").
    """
    named = _named(text, options) or _named(_REMARK.sub(". ", text), options)
    return named.pop() if len(named) == 1 else None


def _named(text: str, options: Sequence[Option]) -> set[str]:
    reply = _plain(text)
    named = _at_start(reply, options) | _alone(reply.rsplit("\n", 1)[-1], options)
    leads = list(islice(_LEAD.finditer(reply), _MOST_LEADS + 1))
    if len(leads) > _MOST_LEADS:
        return set()
    for lead in leads:
        sentence = max(reply.rfind(end, 0, lead.start()) for end in _SENTENCE_ENDS) + 1
        if _CONDITION.match(reply[sentence : lead.start()]):
            continue
        named |= _at_start(reply[lead.end() :], options)
    if named.intersection(_DECIDED) and _DOUBT.match(reply):
        return set()
    if named:
        # What begins the reply was read above, with what takes it back.
        for clause in _CLAUSE.split(reply)[1:]:
            named |= _alone(clause, options)
    return named


def _plain(text: str) -> str:
    text = unicodedata.normalize("NFKC", simplified(without_thinking(text)))
    lines = (" ".join(_MARKUP.sub("", line).split()) for line in text.splitlines())
    return "\n".join(line for line in lines if line).casefold()


@lru_cache(maxsize=64)
def _spelled(options: tuple[Option, ...]) -> list[tuple[str, str]]:
    pairs = [(_plain(word), option.label) for option in options for word in option.spellings]
    return sorted(pairs, key=lambda pair: -len(pair[0]))


def _alone(line: str, options: Sequence[Option]) -> set[str]:
    line = line.strip(" .,;:!。、")
    return {label for word, label in _spelled(tuple(options)) if line == word}


def _at_start(text: str, options: Sequence[Option]) -> set[str]:
    spelled = _spelled(tuple(options))
    for word, label in spelled:
        if re.match(re.escape(word) + _END, text):
            # A list of options, as in "true, false", names them all and so decides nothing.
            following = _BETWEEN.sub("", text[len(word) :], count=1)
            listed = {
                other
                for rival, other in spelled
                if re.match(re.escape(rival) + _LISTED_END, following)
            }
            if listed - {label}:
                return {label} | listed
            # The empty label makes the result ambiguous, even if no other option is named.
            undecided = {label, ""}
            if any(one.match(text, len(word)) for one in (_UNSURE, _CONDITIONAL, _RETRACTED)):
                return undecided
            if label in _AGREES:
                if _CORRECTED.match(text, len(word)):
                    return undecided
                if _TAKEN_BACK.match(text, len(word)):
                    return set()
                if _PART_WRONG.match(text, len(word)):
                    return undecided
            return {label}
    return set()
