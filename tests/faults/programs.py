"""The cells of the matrix: which kinds of calls there are, and which faults they meet."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Any

from tests.faults import baselines
from tests.faults.brain import PROBE_KINDS
from tests.faults.faults import FAULTS, MIXED


@dataclass(frozen=True)
class Program:
    """A method with settings under which it makes calls of these kinds."""

    method: str
    kinds: tuple[str, ...]
    settings: dict[str, Any] = field(default_factory=dict)
    known: dict[str, Any] = field(default_factory=dict)
    judged: bool = False
    verified: bool = False


_LONG = {"max_sentences": 2, "max_rounds": 1, "wording": "model"}
PROGRAMS: dict[str, Program] = {
    "direct": Program("direct", ("draft",)),
    "rag": Program("rag", ("draft",)),
    "haarag_sentence": Program("haarag", ("nearest",), {"wording": "sentence"}, judged=True),
    "drad": Program("drad", ("draft", "go_on"), {"early_stop": True}, {"prefill": True}),
    "drad_asked": Program("drad", ("continue",)),
    "drad_samples": Program("drad", ("sample",), {"samples": 3}, {"top_logprobs": 0}),
    "rowen": Program(
        "rowen",
        (
            *("first_reason", "first_short", "paraphrase", "translate", "reason", "short"),
            *("same_cl", "same_cm", "query", "repair"),
        ),
        {"k": 2, "threshold": 5.0, "answers": "reasoned", "queries": "rewritten"},
        verified=True,
    ),
    "ever": Program("ever", ("draft", "extract", "validate", "verify", "rectify", "next"), _LONG),
    "ever_prefill": Program("ever", ("go_on",), _LONG, {"prefill": True}),
    "ever_short": Program(
        "ever",
        ("draft", "statement", "verify", "revise_answer"),
        {"task": "short", "max_rounds": 1},
    ),
    "ever_candidates": Program(
        "ever", ("candidates",), {"task": "short", "max_rounds": 1, "candidates": 1}
    ),
    "ever_chain": Program("ever", ("conclude",), _LONG | {"task": "chain"}),
    "ever_recall": Program("ever", ("recall",), _LONG | {"variant": "nrg_sq"}),
    "haarag": Program(
        "haarag",
        ("draft", "rephrase", "judge"),
        {"rephrase": "always", "entailment": "main", "entailment_decides": True},
    ),
    "slm": Program("slm", ("draft", "judge"), {"context": "retrieved"}),
}
_MAIN = {"checked_by": "main"}
BASELINES: dict[str, Program] = {
    "token_probability": Program("token_probability", ("draft",)),
    "selfcheck": Program(
        "selfcheck", ("draft", "sample", "supported"), {"variant": "prompt", "samples": 2}
    ),
    "selfcheck_qa": Program(
        "selfcheck",
        ("choice_questions", "choice"),
        {"variant": "qa", "samples": 2, "questions": 1},
    ),
    "selfcheck_nli": Program("selfcheck", ("relation",), {"variant": "nli", "samples": 2, **_MAIN}),
    "p_yes": Program("p_yes", ("draft", "judge"), _MAIN),
    "p_true": Program("p_true", ("draft", "p_true")),
    "semantic_entropy": Program("semantic_entropy", ("draft", "sample"), {"samples": 2, **_MAIN}),
    "sac3": Program("sac3", ("draft", "paraphrase", "same_cm"), {"paraphrases": 2, **_MAIN}),
    "luq": Program("luq", ("draft", "sample", "relation"), {"samples": 2, **_MAIN}),
    "verbalised_confidence": Program("verbalised_confidence", ("draft", "confidence")),
    "chain_of_thought": Program("chain_of_thought", ("reasoned",)),
    "abstain": Program("abstain", ("draft",)),
    "ircot": Program("ircot", ("step", "next", "conclude_reasoning"), {"max_sentences": 2}),
    "flare": Program("flare", ("draft",)),
    "detect_and_mitigate": Program(
        "detect_and_mitigate",
        ("draft", "concepts", "concept_question", "validate_concept", "repair_sentence"),
        _MAIN,
    ),
    "adaptive_rag": Program("adaptive_rag", ("classify", "draft")),
    "adaptive_retrieval": Program("adaptive_retrieval", ("draft",), {"threshold": 0}),
    "cove": Program("cove", ("draft", "plan", "check_answer", "final")),
    "cove_compared": Program("cove", ("check_agrees",), {"variant": "factor_revise"}),
    "self_reflection": Program(
        "self_reflection",
        (
            *("knowledge", "factual", "refine_knowledge", "answer_known"),
            *("agrees_known", "refine_answer", "relevant"),
        ),
        _MAIN,
    ),
    "debate": Program(
        "debate", ("debate_draft", "debate", "debate_others", "summary"), {"agents": 2, "rounds": 2}
    ),
    "rarr": Program("rarr", ("draft", "fact_questions", "agrees_fact", "edit"), _MAIN),
    "critic": Program("critic", ("draft", "query", "critique", "repair"), _MAIN),
    "factool": Program("factool", ("draft", "claims", "claim_queries", "verify_claim"), _MAIN),
}
"""The other baselines. Each kind of their calls meets a third of the faults."""

ALL_PROGRAMS = PROGRAMS | BASELINES
_THIRD = 3
VERDICTS = {"verify": "concept", "recall": "concept", "judge": "sentence", "same_cl": "pair",
            "same_cm": "pair", **baselines.VERDICTS}  # fmt: skip
"""Kinds of calls that decide something, and what."""

REWRITES = ("go_on", "continue", "next", "rectify", "repair", "revise_answer", "candidates",
            "conclude", "nearest", *baselines.REWRITES)  # fmt: skip
"""Kinds of calls whose reply may become a part of an answer that is there already."""


@dataclass(frozen=True)
class Cell:
    """One run: the `fault` strikes calls of `kind`, the first (`once`) or `always`.

    Of `MIXED` faults `often` is the seed.
    """

    program: str
    kind: str
    fault: str
    often: str = "once"
    streamed: bool = True
    native: bool = False
    language: str = "en"

    def __str__(self) -> str:
        how = ("streamed" if self.streamed else "whole") + (", native" if self.native else "")
        return f"{self.program}/{self.kind} {self.fault} {self.often} ({how}, {self.language})"


def mixed_cells(chance: Random, each: int) -> Iterator[Cell]:
    """So many runs of every program in which several faults meet any of its calls."""
    for program in ALL_PROGRAMS:
        for _ in range(each):
            seed, language = str(chance.randrange(10**6)), chance.choice(("en", "zh"))
            ways = chance.random() < 0.5, chance.random() < 0.2
            yield Cell(program, "any", MIXED, seed, *ways, language)


def all_cells() -> Iterator[Cell]:
    """Every kind of call with every fault, once and always, each of these streamed or whole.

    Which of the two, which protocol and which language alternate, so that every kind of call and
    every fault is met in all of them. Kinds of calls of `BASELINES` meet a third of the faults.
    """
    kinds = [(name, kind, 1) for name, one in PROGRAMS.items() for kind in one.kinds]
    kinds += [("probe", kind, 1) for kind in PROBE_KINDS]
    kinds += [(name, kind, _THIRD) for name, one in BASELINES.items() for kind in one.kinds]
    for number, (program, kind, step) in enumerate(kinds):
        for at, fault in enumerate(FAULTS):
            if (at + number) % step:
                continue
            for turn, often in enumerate(("once", "always")):
                streamed = (number // step + at // step + turn) % 2 == 0
                turned = number // step + at // step
                language = "zh" if program != "probe" and turned % 3 == 0 else "en"
                native = turned % 5 == 0
                yield Cell(program, kind, fault, often, streamed, native, language)
