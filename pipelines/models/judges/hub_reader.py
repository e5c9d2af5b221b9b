"""A loaded judge: from claims to verdicts, in batches of windows."""

from __future__ import annotations

import itertools
import threading
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor

from pipelines.base import UnsupportedSpan
from pipelines.models.base import Claim
from pipelines.models.devices import (
    in_halves,
    like_lengths,
    mixed_precision,
    rows_of_length,
    stays_close,
)
from pipelines.models.judges.base import TYPICAL, ClaimVerdict, JudgedClaim
from pipelines.models.judges.hub_formats import JudgeFormat, JudgeReading
from pipelines.text import split_sentences

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


# Evidence as a judge reads it: whole where it fits, else in windows of sentences.
#
# A statement is supported when some window supports it. So did MiniCheck's authors in their
# published code (Tang, Laban and Durrett 2024), and SummaC-ZS before (Laban and others 2022,
# section 3.2).


class JudgedTexts(NamedTuple):
    """What a judge is asked: a document, a statement, and the question that it answers, if any.

    `passages` is how many texts the document was made of.
    """

    document: str
    statement: str
    question: str
    passages: int = 1

    @property
    def asked(self) -> str:
        """Question and statement as one text: an answer may be one word."""
        return f"{self.question} {self.statement}".strip()


def texts_of(claim: Claim, marks: Sequence[str] = (), *, numbered: bool = False) -> JudgedTexts:
    """Return the texts of `claim`; all its evidence is one document, of passages `numbered`
    if wanted.

    Another answer stands behind the question, as the statement does. `marks` are the special tokens
    of a tokenizer: written in a text they would be read as such, so they are left out.
    """
    evidence = claim.evidence
    if claim.relation == "same":
        evidence = tuple(f"{claim.question} {answer}" for answer in evidence)
    pieces = [one for text in evidence if (one := without_marks(text, marks).strip())]
    if numbered:
        pieces = [f"passage {number}: {piece}" for number, piece in enumerate(pieces, start=1)]
    statement, question = (without_marks(text, marks) for text in (claim.statement, claim.question))
    return JudgedTexts("\n".join(pieces), statement.strip(), question.strip(), len(pieces))


def without_marks(text: str, marks: Sequence[str]) -> str:
    """Return the text with spaces in place of `marks`, so that all else keeps its place."""
    for mark in marks:
        text = text.replace(mark, " " * len(mark))
    return text


def windows_of(tokenizer: PreTrainedTokenizerBase, document: str, room: int) -> list[str]:
    """Return the document in windows of at most `room` (1 or more) tokens, in order; none for
    no text.

    A window holds whole sentences, as many as fit. A sentence longer than a window is cut between
    tokens.
    """
    starts = [start for start, _ in offsets_of(tokenizer, document)]
    if not starts:
        return []
    if len(starts) <= room:
        return [document]
    cuts = [0]
    for sentence in split_sentences(document):
        end = bisect_left(starts, sentence.end)
        begin = bisect_left(starts, sentence.start)
        if end - cuts[-1] <= room:
            continue
        # The sentence does not fit into the window that was begun.
        if begin > cuts[-1]:
            cuts.append(begin)
        while end - cuts[-1] > room:
            cuts.append(cuts[-1] + room)
    bounds = [*(starts[cut] for cut in cuts), len(document)]
    pieces = (document[a:b].strip() for a, b in itertools.pairwise(bounds))
    return [piece for piece in pieces if piece]


def offsets_of(tokenizer: PreTrainedTokenizerBase, text: str) -> list[tuple[int, int]]:
    """Return where in `text` each of its tokens stands: [start, end) in characters."""
    found: Any = tokenizer(
        text, add_special_tokens=False, return_offsets_mapping=True, verbose=False
    )
    return [(int(start), int(end)) for start, end in found["offset_mapping"] if end > start]


def last_tokens(tokenizer: PreTrainedTokenizerBase, text: str, most: int) -> str:
    """Return the last `most` (1 or more) tokens of `text`: there the statement stands."""
    offsets = offsets_of(tokenizer, text)
    return text if len(offsets) <= most else text[offsets[-most][0] :].strip()


# The texts that judges were trained on: they have to be put in these very words.
#
# Sources: the published code of MiniCheck (Tang, Laban and Durrett 2024) and FactCG (Lei and others
# 2025), the configuration of HHEM-2.1-open (Vectara 2024), and RAGTruth's instructions (Niu and
# others 2024), on which LettuceDetect was trained (Kovács and Recski 2025).

Texts = tuple[str, ...]
"""One text, or a pair of texts that the tokenizer joins."""

_HHEM = (
    "<pad> Determine if the hypothesis is true given the premise?\n\n"
    "Premise: {document}\n\nHypothesis: {statement}"
)
_FACTCG = (
    "{document}\n\nChoose your answer: based on the paragraph above can we conclude that"
    ' "{statement}"?\n\nOPTIONS:\n- Yes\n- No\nI think the answer is '
)
_ANSWER_TO = (
    "Briefly answer the following question:\n{question}\nBear in mind that your response should be"
    " strictly based on the following {count} passages:\n{passages}\nIn case the passages do not"
    " contain the necessary information to answer the question, please reply with:"
    ' "Unable to answer based on given passages."\noutput:\n'
)
_SUMMARY = "Summarize the following text:\n{passages}\noutput:\n"


def prompt_of(kind: JudgeFormat, texts: JudgedTexts, end: str) -> Texts:
    """Return what a judge of that kind reads of `texts`; `end` is the end mark of its tokenizer."""
    document, asked = texts.document, texts.asked
    # Braces in a text are no placeholders: what is put in is not formatted again.
    match kind:
        case "nli":
            return document, asked
        case "minicheck":
            return (f"{document}{end}{asked}",)
        case "minicheck_t5":
            return (f"predict: {document}{end}{asked}",)
        case "hhem":
            return (_HHEM.format(document=document, statement=asked),)
        case "factcg":
            return (_FACTCG.format(document=document, statement=asked),)
        case "spans":
            if not texts.question:
                return _SUMMARY.format(passages=document), texts.statement
            prompt = _ANSWER_TO.format(
                question=texts.question, count=texts.passages, passages=document
            )
            return prompt, texts.statement


_BATCH = 8
"""Prompts that are read at once on the CPU."""

_MARGIN = 4
"""Tokens left free: a window by itself may be cut into a few more tokens than in its document."""

_MIN_EVIDENCE = 32
"""Tokens of evidence that a long statement leaves room for."""

_WINDOW_TOKENS: dict[JudgeFormat, int] = {
    "nli": 512,
    "minicheck": 400,
    "minicheck_t5": 650,
    "hhem": 1024,
    "factcg": 700,
    "spans": 4096,
}
"""Tokens of evidence in a window, at most, where the model can read as many.

MiniCheck's authors cut at 400 tokens, and for Flan-T5 at 500 words; FactCG's at 550 words. Here
tokens are counted, about as many. LettuceDetect reads 4096. HHEM has no limit; 1024 is ours."""

_OFFSET_KINDS = frozenset(
    {"roberta", "xlm-roberta", "xlm-roberta-xl", "camembert", "longformer", "mpnet", "xmod"}
)
"""Kinds of models whose positions are counted from behind the padding's number."""


class TokenDoubt(NamedTuple):
    """A token of a statement at [start, end), and P(nothing supports it) in [0, 1]."""

    start: int
    end: int
    probability: float


def longest_input(config: Mapping[str, Any]) -> int | None:
    """Return how many tokens a model reads at once; None: relative positions set no limit."""
    kind = config.get("model_type")
    relative = kind in ("t5", "mt5", "umt5", "HHEMv2") or (
        kind in ("deberta-v2", "deberta") and not config.get("position_biased_input", True)
    )
    positions = config.get("max_position_embeddings")
    if relative or not isinstance(positions, int) or positions < 1:
        return None
    if kind in _OFFSET_KINDS:
        positions -= int(config.get("pad_token_id") or 0) + 1
    return positions


class HubReader:
    """A judge with its tokenizer. Safe to call from several threads; one reads at a time."""

    def __init__(
        self, model: Any, tokenizer: Any, reading: JudgeReading, config: Mapping[str, Any]
    ) -> None:
        self._model, self._tokenizer, self._reading = model, tokenizer, reading
        self._limit = longest_input(config)
        self._marks = tuple(sorted(map(str, tokenizer.all_special_tokens), key=len, reverse=True))
        self._end = str(tokenizer.eos_token or tokenizer.sep_token or "")
        self._lock = threading.Lock()
        self.device = next(model.parameters()).device
        self._rows = rows_of_length(self.device, model.config, _BATCH)
        # None: who calls says in which numbers it computes.
        self._narrow: bool | None = None
        self._narrow = stays_close(self.device, self._of_typical)

    def _of_typical(self) -> list[float]:
        """Return P(supported) of typical claims."""
        return [verdict.supported for verdict in self.read(TYPICAL)]

    def _precision(self) -> AbstractContextManager[Any]:
        narrow = self._narrow
        return (
            nullcontext() if narrow is None else mixed_precision(str(self.device), enabled=narrow)
        )

    def read(self, claims: Sequence[Claim]) -> list[ClaimVerdict]:
        """Return a verdict for every claim; without evidence it is "not enough"."""
        if self._reading.format == "spans":
            return [_of_doubts(doubts) for doubts in self.doubts(claims)]
        shares = self.shares(claims)
        return [combined(windows) for windows in shares]

    def read_words(self, claims: Sequence[Claim]) -> list[JudgedClaim]:
        """Read as `read` does; the format "spans" also says which pieces are unsupported."""
        if self._reading.format != "spans":
            return [JudgedClaim(verdict) for verdict in self.read(claims)]
        return [
            JudgedClaim(_of_doubts(doubts), _unsupported(doubts or ()))
            for doubts in self.doubts(claims)
        ]

    def shares(self, claims: Sequence[Claim]) -> list[list[ClaimVerdict]]:
        """Return what each window of the evidence of every claim says by itself, in their order.

        Only for formats that judge a statement as a whole.
        """
        texts = [self._windows(claim) for claim in claims]
        scored = iter(self._in_batches(list(chain.from_iterable(texts)), self._judge))
        return [list(islice(scored, len(windows))) for windows in texts]

    def doubts(self, claims: Sequence[Claim]) -> list[list[TokenDoubt] | None]:
        """Return how doubtful each token of the statements is; None without evidence or tokens.

        Only for the format "spans". Of several windows the one counts that supports the token
        best: what stands in another window is no error. (LettuceDetect's own package takes the
        highest doubt instead.) Places count from the beginning of the claim's statement.
        """
        texts = [self._windows(claim) for claim in claims]
        scored = iter(self._in_batches(list(chain.from_iterable(texts)), self._doubt))
        found: list[list[TokenDoubt] | None] = []
        for claim, windows in zip(claims, texts, strict=True):
            rows = [
                {(one.start, one.end): one for one in row} for row in islice(scored, len(windows))
            ]
            known = list(dict.fromkeys(chain.from_iterable(rows)))
            begin = self._begin(claim, windows[0]) if windows else 0
            least = [
                min((row[at] for row in rows if at in row), key=_by_probability) for at in known
            ]
            moved = [
                TokenDoubt(begin + one.start, begin + one.end, one.probability) for one in least
            ]
            found.append(moved or None)
        return found

    def _begin(self, claim: Claim, prompt: Texts) -> int:
        """Return where what is read of the claim's statement begins: of a long one the end."""
        return max(0, without_marks(claim.statement, self._marks).rfind(prompt[1]))

    def _windows(self, claim: Claim) -> list[Texts]:
        """Return what is read for a claim, a prompt a window."""
        kind, limit = self._reading.format, self._limit
        texts = texts_of(claim, self._marks, numbered=kind == "spans")
        most = _WINDOW_TOKENS[kind] + (0 if limit is None else min(0, limit - _WINDOW_TOKENS[kind]))
        around = self._length(prompt_of(kind, JudgedTexts("", "", ""), self._end))
        statement = max(1, (most if limit is None else limit) - around - _MARGIN - _MIN_EVIDENCE)
        texts = self._shortened(texts, statement)
        used = self._length(prompt_of(kind, texts._replace(document=""), self._end))
        room = most if limit is None else min(most, limit - used - _MARGIN)
        if kind in ("nli", "spans"):
            # Their windows are counted with the statement.
            room = min(room, most - used - _MARGIN)
        windows = windows_of(self._tokenizer, texts.document, max(1, room))
        return [prompt_of(kind, texts._replace(document=one), self._end) for one in windows]

    def _shortened(self, texts: JudgedTexts, most: int) -> JudgedTexts:
        """Return the same with at most `most` tokens of question and statement, their last ones."""
        if len(offsets_of(self._tokenizer, texts.asked)) <= most:
            return texts
        statement = last_tokens(self._tokenizer, texts.statement, most)
        return texts._replace(statement=statement, question="")

    def _length(self, prompt: Texts) -> int:
        return len(self._tokenizer(*prompt, verbose=False)["input_ids"])

    def _in_batches(self, prompts: Sequence[Texts], judge: Any) -> list[Any]:
        # In characters: a token has one or more.
        lengths = [sum(map(len, prompt)) for prompt in prompts]
        found: dict[int, Any] = {}
        with self._lock, torch.inference_mode(), self._precision():
            for chosen in like_lengths(lengths, self._rows):
                rows = in_halves([prompts[at] for at in chosen], judge)
                found.update(zip(chosen, rows, strict=True))
        return [found[at] for at in range(len(prompts))]

    def _encode(self, prompts: Sequence[Texts], **options: Any) -> Any:
        columns = [list(column) for column in zip(*prompts, strict=True)]
        return self._tokenizer(
            *columns, padding=True, return_tensors="pt", verbose=False, **options
        )

    def _forward(self, encoded: Mapping[str, Tensor], **more: Tensor) -> Tensor:
        inputs = {name: one.to(self.device) for name, one in encoded.items()}
        return self._model(**inputs, **more).logits.double().cpu()

    def _judge(self, prompts: Sequence[Texts]) -> Iterable[ClaimVerdict]:
        encoded = self._encode(prompts)
        match self._reading.format:
            case "hhem":
                # The prompt begins with a padding token, over whose output the model classifies.
                supported = self._forward(encoded)[:, 0].softmax(-1)[:, 1]
            case "minicheck_t5":
                supported = self._of_first_token(encoded)
            case _:
                return [self._of_classes(row) for row in self._forward(encoded).tolist()]
        return [ClaimVerdict(one, 0.0, 1 - one) for one in supported.tolist()]

    def _of_first_token(self, encoded: Mapping[str, Tensor]) -> Tensor:
        """Return P("1") against "0" as the first token that is written, shape [prompts]."""
        begin = self._model.config.decoder_start_token_id
        first = torch.full((len(encoded["input_ids"]), 1), begin)
        logits = self._forward(encoded, decoder_input_ids=first.to(self.device))[:, 0]
        return logits[:, [self._first_id("0"), self._first_id("1")]].softmax(-1)[:, 1]

    def _first_id(self, word: str) -> int:
        return int(self._tokenizer(word, add_special_tokens=False)["input_ids"][0])

    def _of_classes(self, logits: Sequence[float]) -> ClaimVerdict:
        labels = self._reading.labels
        values = torch.tensor(logits, dtype=torch.float64)
        # A single output is the logit of support against the rest.
        both = values.sigmoid() if len(labels) == 1 else values.softmax(-1)
        shares = dict(zip(labels, both.tolist(), strict=True))
        supported, contradicted = shares["supported"], shares.get("contradicted", 0.0)
        return ClaimVerdict(supported, contradicted, max(0.0, 1 - supported - contradicted))

    def _doubt(self, prompts: Sequence[Texts]) -> Iterable[list[TokenDoubt]]:
        encoded = self._encode(prompts, return_offsets_mapping=True)
        offsets = encoded.pop("offset_mapping").tolist()
        right = self._reading.labels.index("supported")
        doubts = (1 - self._forward(encoded).softmax(-1)[:, :, right]).tolist()
        return [
            [
                TokenDoubt(start, end, doubt)
                for (start, end), doubt, part in zip(
                    offsets[row], doubts[row], encoded.sequence_ids(row), strict=True
                )
                if part == 1 and end > start
            ]
            for row in range(len(prompts))
        ]


def _by_probability(doubt: TokenDoubt) -> float:
    return doubt.probability


def combined(windows: Sequence[ClaimVerdict]) -> ClaimVerdict:
    """Return one verdict of several windows: the highest support counts, as for MiniCheck.

    So does the highest contradiction, as far as support leaves room for it (ours): the sum is 1.
    """
    if not windows:
        return ClaimVerdict(0.0, 0.0, 1.0)
    supported = max(one.supported for one in windows)
    contradicted = min(1 - supported, max(one.contradicted for one in windows))
    return ClaimVerdict(supported, contradicted, max(0.0, 1 - supported - contradicted))


def _of_doubts(doubts: Sequence[TokenDoubt] | None) -> ClaimVerdict:
    """Return the verdict that follows from doubts: a statement is as doubtful as its most doubtful
    token (ours).

    So it is below 0.5 exactly where LettuceDetect marks a token, as its example-level figures do.
    """
    if not doubts:
        return ClaimVerdict(0.0, 0.0, 1.0)
    worst = max(one.probability for one in doubts)
    return ClaimVerdict(1 - worst, 0.0, worst)


def spans_of(doubts: Sequence[TokenDoubt], threshold: float = 0.5) -> list[TokenDoubt]:
    """Return doubtful tokens (above `threshold`) side by side as spans with their highest doubt."""
    found: list[TokenDoubt] = []
    open_span = False
    for one in doubts:
        if one.probability <= threshold:
            open_span = False
        elif open_span:
            last = found[-1]
            highest = max(last.probability, one.probability)
            found[-1] = TokenDoubt(last.start, one.end, highest)
        else:
            found.append(one)
            open_span = True
    return found


def _unsupported(doubts: Sequence[TokenDoubt]) -> tuple[UnsupportedSpan, ...]:
    return tuple(
        UnsupportedSpan(start=one.start, end=one.end, doubt=one.probability)
        for one in spans_of(doubts)
    )
