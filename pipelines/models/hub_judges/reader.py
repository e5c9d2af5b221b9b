"""A loaded judge: from claims to verdicts, in batches of windows."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, islice
from typing import Any, NamedTuple

import torch
from torch import Tensor

from pipelines.models.base import Claim
from pipelines.models.hub_judges.formats import JudgeFormat, JudgeReading
from pipelines.models.hub_judges.prompts import Texts, prompt_of
from pipelines.models.hub_judges.windows import (
    JudgedTexts,
    last_tokens,
    offsets_of,
    texts_of,
    windows_of,
    without_marks,
)
from pipelines.models.judges.base import ClaimVerdict, JudgedClaim
from pipelines.types import UnsupportedSpan

_BATCH = 8
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
    """Return how many tokens a model can read at once; None where positions are relative and set
    no limit.
    """
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
        """Return where in the claim's statement begins what is read of it: of a long one
        the end.
        """
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
        # Prompts of like length side by side: less padding is read.
        order = sorted(range(len(prompts)), key=lambda at: sum(map(len, prompts[at])))
        found: dict[int, Any] = {}
        with self._lock, torch.inference_mode():
            for start in range(0, len(order), _BATCH):
                chosen = order[start : start + _BATCH]
                rows = judge([prompts[at] for at in chosen])
                found.update(zip(chosen, rows, strict=True))
        return [found[at] for at in range(len(prompts))]

    def _encode(self, prompts: Sequence[Texts], **options: Any) -> Any:
        columns = [list(column) for column in zip(*prompts, strict=True)]
        return self._tokenizer(
            *columns, padding=True, return_tensors="pt", verbose=False, **options
        )

    def _forward(self, encoded: Mapping[str, Tensor], **more: Tensor) -> Tensor:
        device = next(self._model.parameters()).device
        inputs = {name: one.to(device) for name, one in encoded.items()}
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
        device = next(self._model.parameters()).device
        logits = self._forward(encoded, decoder_input_ids=first.to(device))[:, 0]
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
    """Return doubtful tokens (above `threshold`) side by side as spans, each with its
    highest doubt.
    """
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
