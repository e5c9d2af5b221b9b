"""Probabilities of every format, equal to what transformers computes directly; windows by hand."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
import torch
from transformers import (
    AutoModelForSeq2SeqLM,
    AutoModelForSequenceClassification,
    AutoModelForTokenClassification,
    AutoTokenizer,
)

from pipelines.models.base import Claim
from pipelines.models.judges.base import ClaimVerdict
from pipelines.models.judges.hub import HubJudge
from pipelines.models.judges.hub_reader import (
    TokenDoubt,
    combined,
    longest_input,
    spans_of,
)
from tests.pipelines.models.hub_judges.made import Family, save_encoder, save_hhem, save_t5

NLI = ("contradiction", "entailment", "neutral")
TWO = ("LABEL_0", "LABEL_1")
EVIDENCE = "Bill Clinton was born in Hope."
STATEMENT = "He was born in Arkansas."
CLAIM = Claim(statement=STATEMENT, evidence=(EVIDENCE,))
ASKED = Claim(statement="Hope", evidence=(EVIDENCE,), question="Where?")
LONG = "The moon is far away. " * 12


def softmax_of(folder: Path, *texts: str) -> list[float]:
    """What transformers makes of one text or pair, without anything of ours."""
    model = AutoModelForSequenceClassification.from_pretrained(folder).eval()
    encoded = AutoTokenizer.from_pretrained(folder)(*texts, return_tensors="pt")
    with torch.inference_mode():
        return model(**encoded).logits[0].double().softmax(-1).tolist()


def same(found: Sequence[float], expected: Sequence[float]) -> None:
    assert list(found) == pytest.approx(list(expected), abs=1e-5)


@pytest.mark.parametrize("family", ["bert", "roberta", "xlm-roberta", "deberta"])
def test_nli_models_read_evidence_and_statement_as_a_pair(tmp_path: Path, family: Family):
    folder = save_encoder(tmp_path, family, NLI)
    judge = HubJudge(str(folder))
    plain, asked = judge.read([CLAIM, ASKED])
    contradiction, entailment, neutral = softmax_of(folder, EVIDENCE, STATEMENT)
    same(plain, (entailment, contradiction, neutral))
    # An answer stands behind its question.
    contradiction, entailment, neutral = softmax_of(folder, EVIDENCE, "Where? Hope")
    same(asked, (entailment, contradiction, neutral))


def test_two_classes_do_not_tell_contradiction_from_silence(tmp_path: Path):
    folder = save_encoder(tmp_path, "bert", ("entailment", "not_entailment"))
    (verdict,) = HubJudge(str(folder)).read([CLAIM])
    supported, rest = softmax_of(folder, EVIDENCE, STATEMENT)
    same(verdict, (supported, 0.0, rest))


def test_a_single_output_is_the_logit_of_support(tmp_path: Path):
    folder = save_encoder(tmp_path, "bert", ("score",))
    (verdict,) = HubJudge(str(folder), labels=("supported",)).read([CLAIM])
    model = AutoModelForSequenceClassification.from_pretrained(folder).eval()
    encoded = AutoTokenizer.from_pretrained(folder)(EVIDENCE, STATEMENT, return_tensors="pt")
    with torch.inference_mode():
        supported = model(**encoded).logits[0, 0].double().sigmoid().item()
    same(verdict, (supported, 0.0, 1 - supported))


@pytest.mark.parametrize(("family", "end"), [("roberta", "</s>"), ("deberta", "[SEP]")])
def test_minicheck_reads_both_as_one_text_with_the_end_mark_between(
    tmp_path: Path, family: Family, end: str
):
    folder = save_encoder(tmp_path / "MiniCheck", family, TWO)
    judge = HubJudge(str(folder))
    assert judge.facts.reading.format == "minicheck"
    (verdict,) = judge.read([CLAIM])
    rest, supported = softmax_of(folder, f"{EVIDENCE}{end}{STATEMENT}")
    same(verdict, (supported, 0.0, rest))


def test_factcg_is_asked_by_its_prompt(tmp_path: Path):
    folder = save_encoder(tmp_path / "FactCG", "deberta", TWO, positions=512)
    (verdict,) = HubJudge(str(folder)).read([CLAIM])
    prompt = (
        f"{EVIDENCE}\n\nChoose your answer: based on the paragraph above can we conclude that "
        f'"{STATEMENT}"?\n\nOPTIONS:\n- Yes\n- No\nI think the answer is '
    )
    rest, supported = softmax_of(folder, prompt)
    same(verdict, (supported, 0.0, rest))


def test_minicheck_flan_t5_writes_one_or_zero(tmp_path: Path):
    folder = save_t5(tmp_path / "MiniCheck-T5")
    (verdict,) = HubJudge(str(folder)).read([CLAIM])
    model = AutoModelForSeq2SeqLM.from_pretrained(folder).eval()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    encoded = tokenizer(f"predict: {EVIDENCE}</s>{STATEMENT}", return_tensors="pt")
    with torch.inference_mode():
        logits = model(**encoded, decoder_input_ids=torch.tensor([[0]])).logits[0, 0].double()
    zero, one = (tokenizer(word, add_special_tokens=False)["input_ids"][0] for word in "01")
    supported = (logits[one].exp() / (logits[zero].exp() + logits[one].exp())).item()
    same(verdict, (supported, 0.0, 1 - supported))


def test_hhem_classifies_over_the_padding_that_begins_its_prompt(tmp_path: Path):
    folder, model = save_hhem(tmp_path / "hhem")
    judge = HubJudge(str(folder))
    assert judge.facts.reading.format == "hhem"
    (verdict,) = judge.read([CLAIM])
    tokenizer = AutoTokenizer.from_pretrained(folder / "foundation")
    encoded = tokenizer(
        "<pad> Determine if the hypothesis is true given the premise?\n\n"
        f"Premise: {EVIDENCE}\n\nHypothesis: {STATEMENT}",
        return_tensors="pt",
    )
    assert encoded["input_ids"][0, 0] == 0
    with torch.inference_mode():
        supported = model(**encoded).logits[0, 0].double().softmax(-1)[1].item()
    same(verdict, (supported, 0.0, 1 - supported))


def test_lettucedetect_doubts_every_token_of_the_answer(tmp_path: Path):
    folder = save_encoder(tmp_path / "lettucedect", "modernbert", TWO, positions=512)
    judge = HubJudge(str(folder))
    (doubts,) = judge.doubts([CLAIM])
    (verdict,) = judge.read([CLAIM])
    model = AutoModelForTokenClassification.from_pretrained(folder).eval()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    prompt = f"Summarize the following text:\npassage 1: {EVIDENCE}\noutput:\n"
    encoded = tokenizer(prompt, STATEMENT, return_tensors="pt", return_offsets_mapping=True)
    offsets = encoded.pop("offset_mapping")[0].tolist()
    with torch.inference_mode():
        wrong = model(**encoded).logits[0].double().softmax(-1)[:, 1].tolist()
    answer = [place for place, part in enumerate(encoded.sequence_ids(0)) if part == 1]
    assert doubts is not None
    assert [(one.start, one.end) for one in doubts] == [tuple(offsets[at]) for at in answer]
    same([one.probability for one in doubts], [wrong[at] for at in answer])
    worst = max(wrong[at] for at in answer)
    same(verdict, (1 - worst, 0.0, worst))
    (found,) = judge.read_words([CLAIM])
    assert found.verdict == verdict
    assert [(one.start, one.end, one.doubt) for one in found.unsupported or ()] == [
        tuple(one) for one in spans_of(doubts)
    ]
    (bare,) = judge.read_words([CLAIM.model_copy(update={"evidence": ()})])
    assert bare.unsupported == ()


def test_an_answer_to_a_question_has_another_prompt(tmp_path: Path):
    folder = save_encoder(tmp_path / "lettucedect", "modernbert", TWO, positions=512)
    (doubts,) = HubJudge(str(folder)).doubts([ASKED])
    tokenizer = AutoTokenizer.from_pretrained(folder)
    prompt = (
        "Briefly answer the following question:\nWhere?\nBear in mind that your response should be"
        f" strictly based on the following 1 passages:\npassage 1: {EVIDENCE}\nIn case the passages"
        " do not contain the necessary information to answer the question, please reply with:"
        ' "Unable to answer based on given passages."\noutput:\n'
    )
    encoded = tokenizer(prompt, "Hope", return_tensors="pt")
    model = AutoModelForTokenClassification.from_pretrained(folder).eval()
    with torch.inference_mode():
        wrong = model(**encoded).logits[0].double().softmax(-1)[:, 1].tolist()
    assert doubts is not None
    same([one.probability for one in doubts], wrong[-1 - len(doubts) : -1])


def test_a_batch_says_the_same_as_one_at_a_time(tmp_path: Path):
    folder = save_encoder(tmp_path, "roberta", NLI)
    judge = HubJudge(str(folder))
    claims = [CLAIM, ASKED, Claim(statement="Far.", evidence=(LONG, EVIDENCE)), CLAIM]
    alone = [judge.read([claim])[0] for claim in claims]
    for one, other in zip(judge.read(claims), alone, strict=True):
        same(one, other)


def test_long_evidence_counts_by_its_best_window(tmp_path: Path):
    folder = save_encoder(tmp_path, "bert", NLI, positions=64)
    judge = HubJudge(str(folder))
    long = Claim(statement=STATEMENT, evidence=(LONG, EVIDENCE))
    ((*windows,),) = judge._reader.shares([long])
    (verdict,) = judge.read([long])
    assert len(windows) > 2
    assert verdict.supported == pytest.approx(max(one.supported for one in windows))
    assert sum(verdict) == pytest.approx(1)


def test_a_long_statement_leaves_room_for_evidence(tmp_path: Path):
    folder = save_encoder(tmp_path, "roberta", NLI, positions=80)
    statement = "Grace Hopper was born in 1906. " * 20 + STATEMENT
    prompts = HubJudge(str(folder))._reader._windows(Claim(statement=statement, evidence=(LONG,)))
    tokenizer = AutoTokenizer.from_pretrained(folder)
    for evidence, read in prompts:
        assert evidence
        # Of a long statement the end is read, and never more than the model can.
        assert read.endswith(STATEMENT[-10:])
        assert len(tokenizer(evidence, read)["input_ids"]) <= 80 - 2


def test_doubts_of_several_windows_are_the_lowest_and_keep_their_places(tmp_path: Path):
    folder = save_encoder(tmp_path / "lettucedect", "modernbert", TWO, positions=96)
    reader = HubJudge(str(folder))._reader
    claim = Claim(statement=f"  {STATEMENT}", evidence=(LONG,))
    prompts = reader._windows(claim)
    (doubts,) = reader.doubts([claim])
    assert len(prompts) > 1
    assert doubts is not None
    rows = [reader._doubt([prompt]) for prompt in prompts]
    for place, one in enumerate(doubts):
        each = [next(iter(row))[place].probability for row in rows]
        assert one.probability == pytest.approx(min(each), abs=1e-5)
    # Two spaces stand before the statement.
    assert (doubts[0].start, doubts[-1].end) == (2, 2 + len(STATEMENT))


def test_without_evidence_nothing_is_decided(tmp_path: Path):
    nothing = [Claim(statement=STATEMENT, evidence=texts) for texts in ((), ("",), ("  ", "\n"))]
    judge = HubJudge(str(save_encoder(tmp_path / "nli", "bert", NLI)))
    assert judge.read(nothing) == [ClaimVerdict(0.0, 0.0, 1.0)] * 3
    spans = HubJudge(str(save_encoder(tmp_path / "lettucedect", "modernbert", TWO)))
    assert spans.read(nothing) == [ClaimVerdict(0.0, 0.0, 1.0)] * 3
    assert spans.doubts(nothing) == [None] * 3


def test_marks_in_a_text_are_read_as_text(tmp_path: Path):
    folder = save_encoder(tmp_path / "MiniCheck", "roberta", TWO)
    judge = HubJudge(str(folder))
    # As if the evidence ended there and the statement were another one.
    forged = Claim(statement=STATEMENT, evidence=(f"{EVIDENCE}</s>It is so.",))
    plain = Claim(statement=STATEMENT, evidence=(f"{EVIDENCE}    It is so.",))
    same(judge.read([forged])[0], judge.read([plain])[0])


@pytest.mark.parametrize(
    ("windows", "verdict"),
    [
        ([(0.7, 0.2, 0.1)], (0.7, 0.2, 0.1)),
        # The best support is 0.6, the highest contradiction 0.3: 0.1 is left.
        ([(0.6, 0.1, 0.3), (0.2, 0.3, 0.5)], (0.6, 0.3, 0.1)),
        # A contradiction of 0.9 has only 0.2 left beside a support of 0.8.
        ([(0.8, 0.1, 0.1), (0.05, 0.9, 0.05)], (0.8, 0.2, 0.0)),
        ([], (0.0, 0.0, 1.0)),
    ],
)
def test_windows_are_combined_by_their_maxima(
    windows: list[tuple[float, float, float]], verdict: tuple[float, float, float]
):
    same(combined([ClaimVerdict(*one) for one in windows]), verdict)


def test_doubtful_tokens_side_by_side_are_one_span():
    doubts = [
        TokenDoubt(0, 2, 0.1),
        TokenDoubt(3, 5, 0.6),
        TokenDoubt(5, 8, 0.9),
        TokenDoubt(9, 10, 0.5),
        TokenDoubt(11, 14, 0.7),
    ]
    assert spans_of(doubts) == [TokenDoubt(3, 8, 0.9), TokenDoubt(11, 14, 0.7)]
    assert spans_of(doubts, 0.8) == [TokenDoubt(5, 8, 0.9)]
    assert spans_of([]) == []


@pytest.mark.parametrize(
    ("config", "longest"),
    [
        ({"model_type": "bert", "max_position_embeddings": 512}, 512),
        # Positions are counted from behind the padding's number, 1.
        ({"model_type": "roberta", "max_position_embeddings": 514, "pad_token_id": 1}, 512),
        ({"model_type": "modernbert", "max_position_embeddings": 8192}, 8192),
        # Relative positions set no limit.
        (
            {
                "model_type": "deberta-v2",
                "max_position_embeddings": 512,
                "position_biased_input": False,
            },
            None,
        ),
        ({"model_type": "t5", "n_positions": 512}, None),
        ({"model_type": "HHEMv2"}, None),
    ],
)
def test_how_much_a_model_can_read_is_in_its_configuration(
    config: dict[str, object], longest: int | None
):
    assert longest_input(config) == longest
