"""SelfCheckGPT: does what the model writes when it is asked again support what it wrote?

Source: SelfCheckGPT (Manakul, Liusie and Gales, EMNLP 2023), section 5. What a model knows it says
again; what it makes up comes out differently each time. Each sentence r_i of the answer gets an
inconsistency S(i), here from N samples S^1..S^N, in five variants:

- n-gram: average or maximum of -log p over the words of the sentence (`ngrams.py`), from 0 up
- embedding: S(i) = 1 - 1/N sum_n max_k sim(r_i, s_k^n), in [0, 1]. The paper takes BERTScore for
  sim; here it is the cosine of sentence embeddings, at least 0.
- NLI: S(i) = 1/N sum_n P(contradict | r_i, S^n), in [0, 1]
- prompt: S(i) = 1/N sum_n x_i^n, where x is 0 for a model that finds the sentence supported by the
  sample, 1 for not supported and 0.5 for neither, in [0, 1]
- question answering: whether the samples answer questions about the sentence as the answer does, in
  [0, 1] (`selfcheck_qa.py`)

The score of the answer is the mean over its sentences.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import exp, log
from string import ascii_uppercase
from typing import Any, Literal, NamedTuple

from pydantic import Field

from pipelines.aio import together
from pipelines.base import Answer, FilledText, Language
from pipelines.errors import VeriscopeError
from pipelines.methods.base import AnswerTokens, Method, Question, Settings, Stage
from pipelines.methods.baselines.meanings import PROMPTS, EntailmentReader, NgramModel
from pipelines.methods.baselines.shared import (
    CheckedAnswer,
    SampledAnswers,
    Samples,
    Temperature,
    judge_answer,
    judge_sentences,
    mean,
    sampled_answers,
    scored,
    take_subject,
    unchecked,
)
from pipelines.methods.replies.parsing import parse_json
from pipelines.methods.replies.verdicts import YES_NO, CheckedBy, decide_between
from pipelines.methods.writing import ask
from pipelines.models.base import Option
from pipelines.prompts import load_prompts
from pipelines.run.events import JUDGES, Score
from pipelines.run.scope import Scope
from pipelines.text import split_sentences, text_key

# SelfCheckGPT by question answering: do samples answer questions about a sentence as it does?
#
# Source: SelfCheckGPT (Manakul, Liusie and Gales, EMNLP 2023), section 5.2, after MQAG (Manakul,
# Liusie and Gales 2023). Multiple-choice questions are written about a sentence and answered twice:
# by the answer that holds it, and by each sample. N_m samples agree and N_n do not, each counted by
# how answerable the question is by that sample, alpha_n in [0, 1]. With the reliability beta of an
# answer, and gamma = beta / (1 - beta), a question scores
#
#     S(q) = gamma^N_n / (gamma^N_m + gamma^N_n), in [0, 1]
#
# and a sentence the mean over its questions. The paper trains models for each part. Here the main
# model writes the questions and answers them, and alpha_n is 1 minus its probability that the text
# does not say. So this variant needs a model that writes JSON and answers by a text: with the
# embedded model most sentences stay without a score.

QA_PROMPTS = load_prompts("selfcheck_qa")

BETA = 0.8
"""How reliable an answer is taken to be (both of the paper's, in the authors' code)."""

_TOKENS = 512
"""Tokens of a reply with questions: enough for five (ours)."""

_MAX_OPTIONS = 6

_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "questions": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "question": {"type": "string"},
                    "right": {"type": "string"},
                    "wrong": {"type": "array", "items": {"type": "string"}},
                },
                "required": ["question", "right", "wrong"],
                "additionalProperties": False,
            },
        }
    },
    "required": ["questions"],
    "additionalProperties": False,
}


class ChoiceQuestion(NamedTuple):
    """A question and its options, two or more, in the order of their words."""

    text: str
    options: tuple[str, ...]


class _Chosen(NamedTuple):
    """The number of the option that a text gives, and how answerable it makes the question."""

    option: int
    alpha: float


def read_questions(reply: str, most: int) -> list[ChoiceQuestion]:
    """Return the questions of a reply, at most `most`; those without two different options
    left out.

    The right answer is not remembered: what counts is what the text answers. Options are put in
    the order of their words, so that their place says nothing.
    """
    value = parse_json(reply)
    listed = value.get("questions") if isinstance(value, dict) else value
    found: list[ChoiceQuestion] = []
    for one in listed if isinstance(listed, list) else ():
        if not isinstance(one, dict):
            continue
        wrong = one.get("wrong")
        given = [one.get("right"), *(wrong if isinstance(wrong, list) else ())]
        options = {
            text_key(text): text.strip() for text in given if isinstance(text, str) and text.strip()
        }
        question = one.get("question")
        if isinstance(question, str) and question.strip() and len(options) > 1:
            kept = sorted(list(options.values())[:_MAX_OPTIONS])
            found.append(ChoiceQuestion(question.strip(), tuple(kept)))
    return found[:most]


def question_score(agreeing: float, differing: float, beta: float = BETA) -> float:
    """Return S(q) from the counts of samples that agree and differ, each weighted by
    answerability.
    """
    gamma = log(beta / (1 - beta))
    return 1 / (1 + exp(gamma * (agreeing - differing)))


async def sentence_scores(
    step: Scope, language: Language, answer: str, sentence: str, samples: Sequence[str], count: int
) -> list[float]:
    """Return S(q) of every question about `sentence` that the answer itself answers; []
    without any.
    """
    asked = QA_PROMPTS.turns(
        language, "questions", text=answer, sentence=sentence, count=str(count)
    )
    schema = _SCHEMA if step.model().capabilities.structured_output else None
    try:
        reply = await ask(step, asked, max_tokens=_TOKENS, json_schema=schema)
    except VeriscopeError:
        # Recorded with the call.
        return []
    questions = read_questions(reply, count)
    found = await together(*(_scored(step, language, answer, one, samples) for one in questions))
    return [score for score in found if score is not None]


async def _scored(
    step: Scope, language: Language, answer: str, question: ChoiceQuestion, samples: Sequence[str]
) -> float | None:
    own = await _chosen(step, language, answer, question)
    if own is None:
        return None
    others = await together(*(_chosen(step, language, one, question) for one in samples))
    known = [one for one in others if one is not None]
    if not known:
        return None
    agreeing = sum(one.alpha for one in known if one.option == own.option)
    differing = sum(one.alpha for one in known if one.option != own.option)
    return question_score(agreeing, differing)


async def _chosen(
    step: Scope, language: Language, text: str, question: ChoiceQuestion
) -> _Chosen | None:
    """Return what `text` answers; None where it does not say, or where no letter was given."""
    letters: list[str] = list(ascii_uppercase[: len(question.options)])
    unsaid = ascii_uppercase[len(question.options)]
    texts = [*question.options, QA_PROMPTS.fill(language, "not_said")]
    lines = [
        QA_PROMPTS.fill(language, "option", letter=letter, text=one)
        for letter, one in zip([*letters, unsaid], texts, strict=True)
    ]
    try:
        choice = await decide_between(
            step,
            QA_PROMPTS.turns(
                language,
                "answer",
                text=text,
                question=question.text,
                options=FilledText.joined("\n", lines),
            ),
            [Option(label=one, spellings=(one,)) for one in (*letters, unsaid)],
            reminder=QA_PROMPTS.fill(language, "reminder", letters=", ".join([*letters, unsaid])),
        )
    except VeriscopeError:
        # Recorded with the call.
        return None
    best = choice.best
    if best is None or best == unsaid:
        return None
    total = sum(choice.probabilities.values())
    return _Chosen(letters.index(best), 1 - choice.probabilities[unsaid] / total)


SelfCheckVariant = Literal["prompt", "nli", "embedding", "ngram", "qa"]
NgramMeasure = Literal["unigram_avg", "unigram_max", "bigram_avg", "bigram_max"]

_MEASURES: dict[NgramMeasure, tuple[int, Literal["avg", "max"]]] = {
    "unigram_max": (1, "max"),
    "unigram_avg": (1, "avg"),
    "bigram_max": (2, "max"),
    "bigram_avg": (2, "avg"),
}
_DEFAULT_THRESHOLDS: dict[str, float] = {
    "prompt": 0.5,
    "nli": 0.5,
    "embedding": 0.5,
    "qa": 0.5,
}

_UNSURE = 0.5
"""What a reply that says neither yes nor no counts (paper)."""


class SelfCheckSettings(Settings):
    """Settings of SelfCheckGPT."""

    REPLAYABLE = ("threshold", "ngram")

    variant: SelfCheckVariant = Field(
        "nli",
        description="How a sentence is compared with the samples (paper: the prompt does best, NLI"
        " nearly as well with far less computation; ours: NLI).",
    )
    ngram: NgramMeasure = Field(
        "unigram_max",
        description="Which n-gram score decides, where n-grams are counted (paper: the maximum of"
        " unigrams does best).",
    )
    questions: int = Field(
        2,
        ge=1,
        le=5,
        description="Questions about each sentence, where they are answered (paper: 5; ours: 2,"
        " since each is answered by every sample).",
    )
    samples: Samples = 5
    temperature: Temperature = 1.0
    threshold: float | None = Field(
        None,
        ge=0,
        le=20,
        description="Doubtful above this score (none: 0.5 for scores in [0, 1], ours; the paper"
        " ranks sentences and gives no threshold).",
    )
    checked_by: CheckedBy = Field(
        "auto",
        description="Who reads contradiction in the NLI variant (paper: a model trained on NLI;"
        " ours: a judge where the main model is known to judge no better than chance).",
    )
    max_tokens: AnswerTokens = 128

    def effective_default(self, name: str) -> Mapping[str, float]:
        """Return the default in force: an unset threshold is that of the variant; n-gram scores
        have none.
        """
        return _by_variant(self.variant) if name == "threshold" else {}

    def threshold_in_use(self) -> float | None:
        """Return the threshold set, else that of the variant; None for n-grams, whose
        scale varies.
        """
        if self.threshold is not None:
            return self.threshold
        return _DEFAULT_THRESHOLDS.get(self.variant)


def _by_variant(variant: SelfCheckVariant) -> dict[str, float]:
    value = _DEFAULT_THRESHOLDS.get(variant)
    return {} if value is None else {f"variant.{variant}": value}


class SelfCheck(Method[SelfCheckSettings]):
    """Zero-resource detection by consistency of samples (SelfCheckGPT)."""

    name = "selfcheck"
    page = "baselines"
    rewrites = False
    baseline = True
    roles = JUDGES
    effort = 12
    starts_from = "direct"
    checks = "answer"
    settings_type = SelfCheckSettings
    flow = (
        Stage("draft"),
        Stage("sample", repeats=True),
        Stage("compare_samples", ("judge",)),
    )
    prompts = (PROMPTS, QA_PROMPTS, load_prompts("direct"))

    async def run(self, question: Question, scope: Scope, settings: SelfCheckSettings) -> Answer:
        subject = await take_subject(question, scope, settings.max_tokens)
        if not subject.sentences:
            return unchecked(scope, subject)
        drawn = await sampled_answers(
            scope, subject.messages, settings.samples, settings.max_tokens, settings.temperature
        )
        async with scope.span("compare_samples") as step:
            check = _SampleComparison(question, settings, subject, drawn, step)
            scores = await check.scores()
            counts = judge_sentences(step, subject, scores)
            whole = _of_answer(scores, settings)
        return judge_answer(scope, subject, whole, [*drawn.flags, *check.flags], counts)


def _of_answer(scores: Sequence[Sequence[Score]], settings: SelfCheckSettings) -> list[Score]:
    """Return the means over sentences, in the order of the scores of each sentence."""
    return [
        scored(
            of_sentences[0].name,
            mean(score.value for score in of_sentences),
            bad="above",
            threshold=of_sentences[0].threshold,
            high=of_sentences[0].high,
            formula="selfcheck.answer",
            inputs=[score.value for score in of_sentences if score.value is not None],
            behind=[span for score in of_sentences for span in score.behind],
        )
        for of_sentences in zip(*scores, strict=True)
    ]


class _SampleComparison:
    """The comparison of every sentence with every sample; `flags` are remarks on it."""

    def __init__(
        self,
        question: Question,
        settings: SelfCheckSettings,
        subject: CheckedAnswer,
        drawn: SampledAnswers,
        step: Scope,
    ) -> None:
        self.question = question
        self.settings = settings
        self.subject = subject
        self.samples = drawn.texts
        self.sampling = drawn.span
        self.step = step
        self.reader = EntailmentReader.of(step, question, settings.checked_by)
        self.threshold = settings.threshold_in_use()
        self.unread = 0

    @property
    def flags(self) -> list[str]:
        """Remarks on who compared, and on what could not be read."""
        variant = self.settings.variant
        if variant == "nli":
            return self.reader.flags
        weak = variant in ("prompt", "qa") and not self.step.model().capabilities.judges
        remarks = {"weak_judge": weak and self.samples, "comparisons_failed": self.unread}
        return [flag for flag, holds in remarks.items() if holds]

    async def scores(self) -> list[list[Score]]:
        """Return the scores of each sentence, the one that decides first."""
        if self.settings.variant == "ngram":
            return self._by_ngrams()
        if self.settings.variant == "embedding":
            return await self._by_embedding()
        read = self._by_questions if self.settings.variant == "qa" else self._by_reading
        return await together(*(read(number) for number in range(len(self.subject.sentences))))

    def _by_ngrams(self) -> list[list[Score]]:
        chosen = self.settings.ngram
        texts = [*self.samples, self.subject.text]
        models = {order: NgramModel(order, texts) for order in (1, 2)} if self.samples else {}
        measures: list[NgramMeasure] = [chosen, *(one for one in _MEASURES if one != chosen)]
        return [
            [
                self._ngram_score(measure, models, sentence.text, decides=measure == chosen)
                for measure in measures
            ]
            for sentence in self.subject.sentences
        ]

    def _ngram_score(
        self, measure: NgramMeasure, models: Mapping[int, NgramModel], text: str, *, decides: bool
    ) -> Score:
        order, pooling = _MEASURES[measure]
        values = models[order].surprisals(text) if models else []
        value = (max(values) if pooling == "max" else mean(values)) if values else None
        return scored(
            f"selfcheck_{measure}",
            value,
            bad="above",
            threshold=self.threshold if decides else None,
            high=None,
            formula=f"selfcheck.ngram.{pooling}",
            inputs=values,
            behind=[self.sampling],
        )

    async def _by_embedding(self) -> list[list[Score]]:
        parts = [[span.text for span in split_sentences(sample)] for sample in self.samples]
        parts = [texts for texts in parts if texts]
        everything = list(dict.fromkeys(text for texts in parts for text in texts))
        rows: Sequence[Sequence[float]] = [[] for _ in self.subject.sentences]
        if everything:
            asked = [sentence.text for sentence in self.subject.sentences]
            rows = await self.step.similarities(asked, everything)
        place = {text: column for column, text in enumerate(everything)}
        scores = []
        for row in rows:
            nearest = [max(0.0, *(row[place[text]] for text in texts)) for texts in parts]
            near = mean(min(1.0, one) for one in nearest)
            value = None if near is None else 1 - near
            scores.append([self._score("embedding", value, nearest, [self.sampling, self.step.id])])
        return scores

    async def _by_reading(self, number: int) -> list[Score]:
        """Return the score of a sentence that a judge or the model compares with each sample."""
        variant = self.settings.variant
        sentence = self.subject.sentences[number].text
        async with self.step.span("judge", sentence=number) as step:
            read = self._contradiction if variant == "nli" else self._unsupported
            found = await together(*(read(step, sample, sentence) for sample in self.samples))
        known = [value for value in found if value is not None]
        value = mean(known)
        if variant == "prompt" and known:
            # A reply that says neither counts, as long as there is one that says something.
            value = mean(_UNSURE if one is None else one for one in found)
        return [self._score(variant, value, known, [step.id])]

    async def _by_questions(self, number: int) -> list[Score]:
        """Return the score of a sentence by questions about it, which every sample answers."""
        sentence = self.subject.sentences[number].text
        scores: list[float] = []
        async with self.step.span("judge", sentence=number) as step:
            if self.samples:
                scores = await sentence_scores(
                    step,
                    self.question.language,
                    self.subject.text,
                    sentence,
                    self.samples,
                    self.settings.questions,
                )
                self.unread += not scores
        return [self._score("qa", mean(scores), scores, [step.id])]

    async def _contradiction(self, step: Scope, sample: str, sentence: str) -> float | None:
        relation = await self.reader.read(step, sample, sentence)
        return None if relation is None else relation.contradiction

    async def _unsupported(self, step: Scope, sample: str, sentence: str) -> float | None:
        """Return 0 where the main model finds the sentence supported by the sample, 1 where not."""
        language = self.question.language
        try:
            choice = await decide_between(
                step,
                PROMPTS.turns(language, "supported", sample=sample, sentence=sentence),
                YES_NO[language],
                reminder=PROMPTS.fill(language, "yes_no_reminder"),
            )
        except VeriscopeError:
            # Recorded with the call.
            self.unread += 1
            return None
        if choice.best is None:
            self.unread += 1
            return None
        return float(choice.best == "no")

    def _score(
        self,
        variant: SelfCheckVariant,
        value: float | None,
        inputs: Sequence[float],
        behind: Sequence[str],
    ) -> Score:
        return scored(
            f"selfcheck_{variant}",
            value,
            bad="above",
            threshold=self.threshold,
            formula=f"selfcheck.{variant}",
            inputs=inputs,
            behind=behind,
        )
