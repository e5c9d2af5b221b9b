"""EVER's check of one sentence: its concepts, a question about each, and what the evidence says."""

from __future__ import annotations

from asyncio import Lock
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pipelines.aio import together
from pipelines.base import Choice, FilledText, Language, Message, Passage
from pipelines.methods.base import Demonstrations, Question, load_wording
from pipelines.methods.deciding import Decision, PartCounts, decide
from pipelines.methods.ever.calls import PROMPTS, ask_line
from pipelines.methods.ever.concepts import Concepts, concepts_in, read_concepts
from pipelines.methods.ever.questions import Checked, Validation, validation_for
from pipelines.methods.ever.settings import EverSettings
from pipelines.methods.limits import least_yes
from pipelines.methods.replies.lists import asks_yes_or_no, words_shared
from pipelines.methods.replies.parsing import visible
from pipelines.methods.replies.verdicts import (
    EVIDENCE_VERDICTS,
    TRUE_FALSE_NEI,
    claim_of,
    reason_then_decide,
)
from pipelines.methods.sentences import sentences_of
from pipelines.methods.slm.method import judge_sentence
from pipelines.methods.subjects import holds_details, main_subject, passages_about, said_beyond
from pipelines.methods.telling import is_called_wrong, is_of_a_part, is_other_way_round
from pipelines.methods.writing import adapts, ask_list, distinct, found_for, independent
from pipelines.models.base import ChoiceRequest
from pipelines.run.events import RevisionReason, Score, Verdict
from pipelines.run.findings import Attempt, ConceptsListed, ConceptVerified, Listed
from pipelines.run.scope import Scope
from pipelines.text import Span, split_sentences
from pipelines.text.languages import has_han

SAMPLING_TEMPERATURE = 0.3
"""Of the verdicts that a majority is taken of (code)."""

BY_CHANCE = 1 / 3
"""The probability of one of three verdicts by chance: support has to be more probable (ours)."""

CLEARLY = 2 / 3
"""The probability of a verdict that is twice as probable as the others together."""

_SENTENCES = 3
"""Sentences of the evidence that a judge reads one by one (ours)."""

_LABELS = {"reasoning": ("Reasoning", "推理"), "verdict": ("Verdict", "判断")}


@dataclass(frozen=True)
class Target:
    """What is to be checked: `text`, which stands at `start` of draft `draft` after `context`.

    `concept` is given for a short answer, whose only concept is the answer itself; `shown` is then
    what stands in the draft, where `text` is the statement that question and answer make together.
    """

    sentence: int
    round: int
    draft: int
    start: int
    text: str
    context: str = ""
    attempt: Attempt = "draft"
    concept: Span | None = None
    shown: str = ""


@dataclass(frozen=True)
class Concept:
    """A concept with its verdict and what that rests on. `step` is the span it was checked in."""

    text: str
    verdict: Verdict
    detail: ConceptVerified
    step: str
    passages: tuple[Passage, ...] = ()
    scores: tuple[Score, ...] = ()

    def noted(self, fields: dict[str, Any], **detail: Any) -> Concept:
        """Return the concept with other `fields`, and other fields of its `detail`."""
        return replace(self, detail=self.detail.model_copy(update=detail), **fields)


@dataclass(frozen=True)
class SentenceCheck:
    """One check of a sentence. `step` is its span.

    `left_out` counts the concepts over the limit, `dropped` what was listed and is no part of the
    sentence, or 1 for a list that could not be read.
    """

    target: Target
    listed: Listed
    step: str
    left_out: int = 0
    concepts: tuple[Concept, ...] = ()
    dropped: int = 0

    def of(self, verdict: Verdict) -> tuple[Concept, ...]:
        """Return the concepts with this verdict, in order of place."""
        return tuple(concept for concept in self.concepts if concept.verdict == verdict)

    @property
    def doubtful(self) -> tuple[Concept, ...]:
        """The concepts to rectify: contradicted, or not decided by the evidence."""
        return tuple(c for c in self.concepts if c.verdict in ("contradicted", "not_enough"))

    @property
    def evidence(self) -> tuple[Passage, ...]:
        """What the doubtful concepts rest on: by place, then rank, each passage once."""
        return distinct(passage for concept in self.doubtful for passage in concept.passages)

    @property
    def counts(self) -> PartCounts:
        """How many of its concepts have which verdict, and how many were never asked about."""
        verdicts: list[Verdict] = [concept.verdict for concept in self.concepts]
        return PartCounts.of(verdicts, dropped=self.left_out + self.dropped)

    @property
    def verdict(self) -> Verdict:
        """The verdict on the sentence; "supported" only where all of it was checked."""
        return decide(self.counts).verdict


def decided(checks: Iterable[SentenceCheck]) -> Decision:
    """Return what several sentences come to; one of which nothing was asked is a part that is
    missing.
    """
    counts = [check.counts for check in checks]
    return decide(
        PartCounts(
            supported=sum(one.supported for one in counts),
            contradicted=sum(one.contradicted for one in counts),
            not_enough=sum(one.not_enough for one in counts),
            unchecked=sum(one.unchecked for one in counts),
            dropped=sum(one.dropped or not one.parts for one in counts),
        )
    )


@dataclass
class Checker:
    """Checks the sentences of one run; what it has found out is not asked again.

    `role` is who answers the validation questions. From memory only the main model can.
    `sentences` is how many it may have to check: they share the concepts of an answer, so that
    what is checked does not depend on which sentence comes first.
    """

    question: Question
    settings: EverSettings
    role: str
    sentences: int = 1
    _known: dict[str, Concept] = field(default_factory=dict)
    _deciding: dict[str, Lock] = field(default_factory=lambda: defaultdict(Lock))

    async def check(self, scope: Scope, target: Target) -> SentenceCheck:
        """Check every concept of `target`, all at once; each verdict is recorded when it is known.

        Nothing found is NEI, and no call is made; a search that failed and a verdict that cannot
        be read leave the concept unchecked.
        """
        async with scope.span(
            "verify", sentence=target.sentence, round=target.round, draft=target.draft
        ) as step:
            listed, concepts = await self._concepts(step, target)
            step.judged(
                "concepts",
                target.shown or target.text,
                start=target.start,
                draft=target.draft,
                sentence=target.sentence,
                verdict="unchecked",
                detail=ConceptsListed(
                    round=target.round,
                    text=target.text,
                    attempt=target.attempt,
                    listed=listed,
                    places=tuple((span.start, span.end) for span in concepts.spans),
                    left_out=len(concepts.left_out),
                    dropped=concepts.dropped,
                ),
            )
            found = await together(
                *(self._concept(step, target, concepts, span) for span in concepts.spans)
            )
        left_out, dropped = len(concepts.left_out), concepts.dropped
        return SentenceCheck(target, listed, step.id, left_out, tuple(found), dropped)

    @property
    def _limit(self) -> int:
        """The concepts of one sentence that are checked, at least 1."""
        shared = self.settings.max_answer_concepts // max(1, self.sentences)
        return max(1, min(self.settings.max_concepts, shared))

    @property
    def _asked(self) -> str:
        """The question that the text answers; "" where nobody knows it."""
        return "" if self.question.about else self.question.text

    async def _concepts(self, step: Scope, target: Target) -> tuple[Listed, Concepts]:
        if target.concept is not None:
            return "read", Concepts(spans=(target.concept,))
        language, limit = self.question.language, self._limit
        weak = step.model().capabilities.weak
        user = "extract_sentence" if self._asked else "extract_alone"
        values = {"sentence": target.text} | ({"question": self._asked} if self._asked else {})
        system, asked = PROMPTS.turns(language, "extract", user, **values)
        # Half of what is there is listed then, instead of a tenth.
        adapted = adapts(step, self.settings.demonstrations, "extract")
        again = PROMPTS.fill(language, "extract_again")
        once_more = Message(role="user", content=FilledText.joined("\n\n", (asked.text, again)))
        listed: list[str] | None = None
        async with step.span("extract", sentence=target.sentence, round=target.round) as own:
            for last in (asked, once_more):
                listed = read_concepts(
                    await ask_list(own, (system, last), "concepts", adapted=adapted)
                )
                if weak:
                    return await self._completed(own, target, listed or ())
                if listed == []:
                    break
                concepts = concepts_in(target.text, listed or (), limit, self._asked)
                if concepts.spans:
                    return "read", concepts
            # Names, dates and numbers are facts whatever the list says.
            found = await self._seen(own, target, ())
        if found.spans:
            # A list that could not be read may have named more.
            return "entities", found.model_copy(update={"dropped": int(listed != [])})
        if listed == []:
            return "none", Concepts(spans=())
        # A list of nothing that the sentence states says as little as one that cannot be read.
        return "unreadable", Concepts(spans=(), dropped=1)

    async def _seen(self, own: Scope, target: Target, listed: Sequence[str]) -> Concepts:
        """Return what is listed, with the names, dates and numbers that are there to be seen."""
        entities = [entity.text for entity in await own.entities(target.text)]
        limit = self._limit
        found = concepts_in(target.text, [*listed, *entities], limit, self._asked)
        # Rules see whatever can be looked up: what else a weak model lists is made up.
        return found.model_copy(update={"dropped": 0})

    async def _completed(
        self, own: Scope, target: Target, listed: Sequence[str]
    ) -> tuple[Listed, Concepts]:
        """Return a weak model's list with the names, dates and numbers that are there to be seen.

        Where there are none, what the sentence says beyond the question is the concept. That is no
        fact in an answer of yes or no.
        """
        limit, asked = self._limit, self._asked
        concepts = await self._seen(own, target, listed)
        if not concepts.spans and not asks_yes_or_no(self.question):
            concepts = concepts_in(target.text, [said_beyond(target.text, asked)], limit, asked)
            if concepts.spans:
                return "beyond", concepts
        if not concepts.spans:
            return "unreadable", Concepts(spans=(), dropped=1)
        alone = concepts.spans == concepts_in(target.text, listed, limit, asked).spans
        return "read" if alone else "entities", concepts

    async def _concept(
        self, step: Scope, target: Target, concepts: Concepts, span: Span
    ) -> Concept:
        others = (other for other in concepts.spans if other != span)
        about = Checked(
            question=self._asked,
            sentence=target.text,
            concept=span,
            others=tuple(others),
            context=target.context,
        )
        async with step.span(
            "concept",
            sentence=target.sentence,
            round=target.round,
            start=span.start,
            end=span.end,
        ) as own:
            validation = await self._validation(own, about)
            detail = ConceptVerified(
                round=target.round,
                at=(span.start, span.end),
                question=validation.text,
                fallback=validation.kind == "template",
                claim=validation.claim,
            )
            concept = await self._verified(
                own, Concept(span.text, "unchecked", detail, own.id), about, validation
            )
            within = span.start if target.concept is None else 0
            own.judged(
                "concept",
                span.text,
                start=target.start + within,
                draft=target.draft,
                sentence=target.sentence,
                verdict=concept.verdict,
                scores=concept.scores,
                detail=concept.detail,
            )
        return concept

    async def _validation(self, own: Scope, about: Checked) -> Validation:
        language = self.question.language
        asked = PROMPTS.turns(
            language,
            "validate",
            "validate_sentence",
            shots="" if self.settings.demonstrations == "off" else "validate",
            subject=main_subject(about.question) or about.question or about.sentence,
            context=about.context or PROMPTS.fill(language, "none_before"),
            sentence=about.sentence,
            concept=about.concept.text,
        )
        reply = await ask_line(own, asked)
        return validation_for(reply, about, language)

    async def _verified(
        self, own: Scope, concept: Concept, about: Checked, validation: Validation
    ) -> Concept:
        """Return the concept with its verdict, taken over where the same question was
        answered before.

        Of concepts that ask the same at the same time the others wait for the first. Otherwise it
        would depend on how fast replies come, and whether they were known, what is searched for.
        """
        # A judge reads the claim, and of the passages those that name what it is about.
        read = (validation.claim, concept.text) if self.role != "main" else ()
        key = "\n".join((validation.text, *read))
        async with self._deciding[key]:
            earlier = self._known.get(key)
            if earlier is not None:
                kept = concept.detail.model_dump(include={"round", "at", "fallback", "claim"})
                behind = {"behind": (earlier.step,)}
                scores = tuple(score.model_copy(update=behind) for score in earlier.scores)
                return earlier.noted(
                    {"step": own.id, "scores": scores}, reused=earlier.step, **kept
                )
            concept = await self._decided_anew(own, concept, about, validation)
            if concept.verdict != "unchecked":
                self._known[key] = concept
            return concept

    async def _decided_anew(
        self, own: Scope, concept: Concept, about: Checked, validation: Validation
    ) -> Concept:
        """Return the concept with its verdict by the model alone, or by what is found."""
        if self.settings.variant == "nrg_sq":
            return await self._decided(own, concept)
        concept = await self._retrieved(own, concept, about, validation)
        if concept.detail.reason:
            return concept
        if not self._about(concept):
            # What is said of somebody else settles nothing.
            return concept.noted({"verdict": "not_enough"}, reason="no_evidence")
        if self.role == "main":
            return await self._decided(own, concept)
        return await self._judged(own, concept, validation)

    async def _retrieved(
        self, own: Scope, concept: Concept, about: Checked, validation: Validation
    ) -> Concept:
        """Return the concept with the passages found for it: on the web with two
        queries, merged.
        """
        queries = validation.queries(about, web=own.web_evidence)
        finds = await together(
            *(found_for(own, query, self.settings.passages) for query in queries)
        )
        passages = distinct(passage for found in finds for passage in found or ())
        incomplete = None in finds
        if passages:
            ids = tuple(passage.id for passage in passages)
            return concept.noted({"passages": passages}, evidence=ids, incomplete=incomplete)
        if incomplete:
            # A search that failed decides nothing: the concept is neither supported nor doubtful.
            return concept.noted({}, reason="search_failed")
        return concept.noted({"verdict": "not_enough"}, reason="no_evidence")

    def _about(self, concept: Concept) -> tuple[Passage, ...]:
        """Return those of a concept's passages that name what its claim is about."""
        claim = concept.detail.claim
        return passages_about(claim, concept.passages, question=self._asked, concept=concept.text)

    async def _judged(self, own: Scope, concept: Concept, validation: Validation) -> Concept:
        """Return the verdict of a judge: readings of evidence, no reasoning.

        What a sentence says with one concept follows from the whole of it, so the whole is judged
        first, and only where that is not supported the claim about this concept (ours).
        """
        read = self._about(concept)
        by, judged = own.model(self.role).name, concept
        least = BY_CHANCE
        for claim in dict.fromkeys((validation.whole, validation.claim)):
            choice = await self._read(own, claim, read)
            if choice.best is None:
                return concept.noted({}, by=by, reason="unreadable", claim=claim)
            supported = choice.probabilities["true"] > max(
                least, self._limit_of(own)
            ) and await self._supports(own, concept, claim, read)
            label = "true" if supported else choice.best
            if supported or label != "true":
                fields = {
                    "verdict": EVIDENCE_VERDICTS[label],
                    "scores": (_probability(choice, label),),
                }
                judged = concept.noted(fields, by=by, claim=claim)
            else:
                # What one reading supports and another does not is not settled, and nobody has
                # said how likely that is.
                fields = {"verdict": "not_enough", "scores": ()}
                judged = concept.noted(fields, by=by, claim=claim, reason="unsettled")
            if supported:
                break
            # What follows from a contradicted sentence may be right all the same, if clearly so.
            least = CLEARLY if label == "false" else BY_CHANCE
        return judged

    def _limit_of(self, own: Scope) -> float:
        """Return the least P(yes) of a language model that is taken for support; 0 for a judge of
        three verdicts.
        """
        judge = own.model(self.role)
        if not judge.capabilities.writes:
            return 0.0
        return least_yes(judge.name, self.question.language, CLEARLY)

    async def _supports(
        self, own: Scope, concept: Concept, claim: str, read: Sequence[Passage]
    ) -> bool:
        """Return whether the sentences of passages that may support a claim support it.

        Over several passages a judge of this size takes words together that belong to different
        facts, and it reads past numbers and names. So support has to be more probable than by
        chance in the whole and more probable than anything else in one of the sentences that have
        most of the claim's words, and what was read has to give the concept's numbers and names
        (ours).
        """
        if not holds_details(concept.text, read):
            return False
        sentences = sentences_of(read)
        if len(sentences) == 1:
            return True
        near = sorted(
            sentences, key=lambda one: -words_shared(f"{one[0].title} {one[1].text}", claim)
        )
        near = near[:_SENTENCES]
        language = self.question.language
        if any(
            is_of_a_part(span.text, claim, language)
            or is_other_way_round(claim, span.text, language)
            or is_called_wrong(claim, span.text, language)
            for _, span in near
        ):
            # Judges of this size read past "only three of them", past who surpassed whom, and past
            # "many wrongly believe".
            return False
        alone = (one.model_copy(update={"text": span.text}) for one, span in near)
        each = await together(*(self._read(own, claim, (one,)) for one in alone))
        limit = self._limit_of(own)
        return any(one.best == "true" and one.probabilities["true"] > limit for one in each)

    async def _read(self, own: Scope, claim: str, passages: Sequence[Passage]) -> Choice:
        """Return what the judge says of a claim by these passages.

        A language model that an adapter has taught verdicts says yes or no; no leaves it open.
        """
        language = self.question.language
        if own.model(self.role).capabilities.writes:
            said = await judge_sentence(
                own, self.role, self.question.text, passages, claim, language
            )
            odds = {
                "true": said.probabilities["yes"],
                "nei": said.probabilities["no"],
                "false": 0.0,
            }
            return said.model_copy(update={"probabilities": odds})
        listed = PROMPTS.listed(language, passages)
        return await own.model(self.role).choose(
            ChoiceRequest(
                # Replies are known again by this text, which a judge does not read.
                messages=PROMPTS.turns(language, "verify", passages=listed, question=claim),
                options=TRUE_FALSE_NEI[language],
                claim=claim_of(claim, passages),
                reproducible=own.reproducible,
            )
        )

    def _messages(self, concept: Concept) -> tuple[Message, ...]:
        language, asked = self.question.language, concept.detail.question
        if self.settings.variant == "nrg_sq":
            return PROMPTS.turns(language, "recall", question=asked)
        passages = PROMPTS.listed(language, concept.passages)
        # Few-shot, as the paper checks support; by itself only the questions are (ours).
        shots = "verify" if self.settings.demonstrations == "on" else ""
        return PROMPTS.turns(language, "verify", shots=shots, passages=passages, question=asked)

    def _reads_past(self, own: Scope, concept: Concept) -> bool:
        """Return whether a model that judges by chance finds support for what no passage gives."""
        weak = not own.model().capabilities.judges and self.settings.variant != "nrg_sq"
        return weak and not holds_details(concept.text, concept.passages)

    async def _decided(self, own: Scope, concept: Concept) -> Concept:
        """Return the verdict of the main model, or of the majority of several draws."""
        language, draws = self.question.language, self.settings.samples
        drawn = await together(
            *(
                reason_then_decide(
                    own,
                    self._messages(concept),
                    TRUE_FALSE_NEI[language],
                    labels=_LABELS,
                    reminder=PROMPTS.fill(language, "verdict_again"),
                    temperature=SAMPLING_TEMPERATURE if draws > 1 else 0.0,
                    sample=number if draws > 1 else None,
                )
                for number in range(draws)
            )
        )
        drawn = independent(drawn)
        if not drawn:
            return concept.noted({}, reason="repeated")
        draws = len(drawn)
        # Replies that name no verdict vote too, for nothing: one True among three is no majority.
        votes = Counter(reply.label for reply in drawn).most_common(2)
        (label, count), tied = votes[0], len(votes) == 2 and votes[0][1] == votes[1][1]
        if label is None or tied:
            reasoning = drawn[0].reasoning or drawn[0].text
            concept = concept.noted({}, reason="tie" if tied else "unreadable", reasoning=reasoning)
        else:
            chosen = next(reply for reply in drawn if reply.label == label)
            scores: tuple[Score, ...] = ()
            if draws > 1:
                value, inputs = count / draws, (float(count), float(draws))
                formula = "ever.verdict_share"
                shown = Score(name="verdict_share", value=value, formula=formula, inputs=inputs)
                scores = (shown,)
            elif chosen.choice is not None and chosen.choice.source == "logprobs":
                scores = (_probability(chosen.choice, label),)
            fields = {"verdict": EVIDENCE_VERDICTS[label], "scores": scores}
            if fields["verdict"] == "supported" and self._reads_past(own, concept):
                fields = {"verdict": "not_enough"}
            concept = concept.noted(fields, reasoning=chosen.reasoning)
        if self.settings.variant == "nrg_sq" and concept.detail.reasoning:
            # What the model recalled takes the place of passages.
            recalled = Passage(
                id=f"recalled-{concept.step}",
                title=concept.text,
                text=concept.detail.reasoning,
                source="recalled",
                rank=1,
            )
            concept = concept.noted({"passages": (recalled,)})
        return concept


def _probability(choice: Choice, label: str) -> Score:
    everything = tuple(choice.probabilities.values())
    value, formula = choice.probabilities[label], "ever.verdict_probability"
    return Score(name="verdict_probability", value=value, formula=formula, inputs=everything)


# EVER's rectification: one call that corrects a sentence, whatever was found wrong with it.

_WORDING = load_wording("ever")
_ANNOUNCED, _COMMENTARY = _WORDING.pattern("announced"), _WORDING.pattern("commentary")
_FINAL = ".!?。！？"


def may_go_on(check: SentenceCheck, rounds: int, limit: int) -> bool:
    """Return whether a sentence is rectified once more after `rounds` times.

    Anything doubtful is rectified once; after that only what is still contradicted is, as long as
    `limit` allows: the evidence would decide no more about what is rewritten again.
    """
    if not check.doubtful or rounds >= limit:
        return False
    return rounds == 0 or bool(check.of("contradicted"))


def rectify_reason(check: SentenceCheck) -> RevisionReason:
    """Return what is to be done: "revise" contradicted details, "rewrite" undecided ones,
    or both.
    """
    verdicts = {concept.verdict for concept in check.doubtful}
    if verdicts == {"contradicted"}:
        return "revise"
    return "rewrite" if verdicts == {"not_enough"} else "revise_and_rewrite"


async def rectify(
    scope: Scope, question: Question, check: SentenceCheck, demonstrations: Demonstrations
) -> str:
    """Return what the model makes of the sentence; "" where that is no sentence that could take
    its place.

    The prompt holds every doubtful concept with its reasoning, contradicted or not decided, and
    the evidence of all of them.
    """
    language, target = question.language, check.target
    feedback = (
        PROMPTS.fill(
            language,
            f"feedback_{concept.verdict}",
            concept=concept.text,
            reasoning=" ".join(concept.detail.reasoning.split()),
        )
        for concept in check.doubtful
    )
    short = target.concept is not None
    reason = "revise_answer" if short else rectify_reason(check)
    async with scope.span(
        "rectify", sentence=target.sentence, round=target.round + 1, draft=target.draft
    ) as step:
        written = await ask_line(
            step,
            PROMPTS.turns(
                language,
                reason,
                "rectify_sentence",
                question=question.text,
                context=target.context or PROMPTS.fill(language, "none_before"),
                sentence=target.text,
                feedback=FilledText.joined("\n", feedback),
                evidence=evidence_listed(language, check),
            ),
            max_tokens=160,
            # Of the three ways of rectifying, the adapter was trained and measured on this one.
            adapted=reason == "revise" and adapts(step, demonstrations, "revise"),
        )
    return read_rectified(written, target.text, question, short=short)


def read_rectified(written: str, sentence: str, question: Question, *, short: bool = False) -> str:
    """Return the one sentence of a reply that can take the place of `sentence`; "" where there
    is none.

    Words that announce it are left out. More than one sentence, words about the evidence or the
    task instead of an answer, a question and a change of language cannot be used. A short answer
    need be no sentence.
    """
    announced = _ANNOUNCED.match(written)
    text = visible(written[announced.end() :]) if announced else written
    spans = split_sentences(text)
    known = f"{sentence} {question.text}".casefold()
    commentary = any(match.group().casefold() not in known for match in _COMMENTARY.finditer(text))
    asks = text.endswith(("?", "？")) and not sentence.endswith(("?", "？"))
    if len(spans) != 1 or commentary or asks:
        return ""
    if short:
        return text
    if has_han(text) != has_han(sentence):
        return ""
    # Without its full stop the sentence would run into the next one.
    ends = sentence[-1:] in _FINAL and text.rstrip("\"'”’）)")[-1:] not in _FINAL
    return f"{text}{sentence[-1]}" if ends else text


def evidence_listed(language: Language, check: SentenceCheck) -> str:
    """Return the evidence on what is doubtful as prompts show it, or a word for its absence."""
    return PROMPTS.listed(language, check.evidence) or PROMPTS.fill(language, "none_found")
