"""EVER decided again: as it was live, and for another limit as a run with it would be."""

from __future__ import annotations

import random
from typing import Any

import pytest

from pipelines.methods.ever.settings import EVER_DECIDABLE, EverSettings
from tests.pipelines.methods.ever.bench import (
    FIRST,
    HANDED,
    UNHANDED,
    WHOLE,
    Archive,
    Part,
    decided,
    ever_run,
)

SAID = [f"Ada Brandt was a chemist called {name}." for name in "ABC"]
STUBBORN = Part(
    texts={"": SAID[0], SAID[2]: " She left."},
    concepts={text: ["chemist"] for text in SAID},
    verdicts={"chemist": "False"},
    rectified={SAID[0]: SAID[1], SAID[1]: SAID[2]},
)


def test_only_the_number_of_rounds_can_be_decided_again():
    assert EVER_DECIDABLE == ("max_rounds",)
    assert set(EVER_DECIDABLE) <= set(EverSettings.model_fields)


async def test_fewer_rounds_end_the_last_sentence_earlier():
    outcome = await ever_run(STUBBORN, max_rounds=2)
    decision = decided(outcome, max_rounds=1)
    assert decision.diverges_at is None
    assert decision.answer is not None
    assert (decision.answer.text, decision.answer.flags) == (SAID[1], ("contradicted",))
    (sentence,) = decision.sentences
    assert (sentence.text, sentence.verdict, len(sentence.checks)) == (SAID[1], "contradicted", 2)


async def test_more_rounds_than_were_recorded_need_a_new_run():
    outcome = await ever_run(STUBBORN, max_rounds=1)
    decision = decided(outcome, max_rounds=2)
    # Draft 1 is what the one rectification made, and what another would begin with.
    assert (decision.diverges_at, decision.reason) == (1, "ever_more_rounds")
    assert decision.answer is None
    assert decision.score == decided(outcome).score


async def test_fewer_rounds_within_a_text_need_a_new_run():
    part = Part(
        texts={"": f"{SAID[0]} She left.", SAID[2]: " She left."},
        concepts=STUBBORN.concepts,
        verdicts=STUBBORN.verdicts,
        rectified=STUBBORN.rectified,
    )
    outcome = await ever_run(part, max_rounds=2)
    decision = decided(outcome, max_rounds=1)
    assert (decision.diverges_at, decision.reason) == (1, "ever_fewer_rounds")
    assert decision.sentences[0].text == SAID[1]


@pytest.mark.parametrize(
    "changes", [{"task": "chain"}, {"variant": "nrg_sq"}, {"passages": 2}, {"samples": 3}]
)
async def test_other_settings_need_a_new_run_and_the_recorded_verdicts_stay(changes):
    outcome = await ever_run(STUBBORN)
    decision = decided(outcome, **changes)
    assert (decision.diverges_at, decision.reason) == (0, "settings")
    assert decision.answer is None
    assert decision.sentences == decided(outcome).sentences
    assert decision.flagged


async def test_writing_ahead_changes_nothing_that_is_decided():
    outcome = await ever_run(Part(texts={"": WHOLE, FIRST: " She left."}))
    assert decided(outcome, speculative=True) == decided(outcome)


WORDS = ("chemist", "1931", "Bergen", "salt", "works", "Oslo", "crown")
VERDICTS = ("True", "True", "False", "NEI", "Well.")


def random_part(seed: int) -> Part:
    """A model that answers at random, but the same request always alike."""

    def chance(*about: object) -> random.Random:
        return random.Random(f"{seed}:{about}")

    def sentence(about: str) -> str:
        words = chance("words", about).sample(WORDS, 3)
        return f"Ada {' '.join(words)} {chance('id', about).randint(10, 99)}."

    class Texts(dict[str, str]):
        def get(self, key: str, default: Any = None) -> str:
            count = chance("count", key).randint(0, 3)
            said = [sentence(f"{key}{number}") for number in range(count)]
            if not key:
                return " ".join(said)
            return "".join(f" {one}" for one in said) or default

    class Concepts(dict[str, str]):
        def get(self, key: str, default: Any = None) -> str:
            count = chance("concepts", key).randint(0, 3)
            words = [word for word in key.strip(".").split() if word in WORDS][:count]
            odd = chance("odd", key).random() < 0.1
            return "Not a list at all, really" if odd else "\n".join(words) or "None"

    class Rectified(dict[str, str]):
        def get(self, key: str, default: Any = None) -> str:
            return chance("bad", key).choice(["", key, *3 * [sentence(f"mended {key}")]])

    part = Part(texts=Texts(), concepts=Concepts(), rectified=Rectified())
    part.verdicts = {word: chance("verdict", word).choice(VERDICTS) for word in WORDS}
    part.candidates = "\n".join(sentence(f"candidate {n}") for n in range(3))
    return part


def random_settings(seed: int) -> dict[str, Any]:
    chance = random.Random(seed)
    return {
        "variant": chance.choice(["nrg_er", "nrg_sq", "rag_er"]),
        "task": chance.choice(["long", "long", "chain", "short"]),
        "max_rounds": chance.randint(1, 4),
        "max_sentences": chance.randint(1, 4),
        "max_concepts": chance.randint(1, 3),
        "speculative": chance.random() < 0.3,
        "candidates": chance.randint(0, 3),
        "max_tokens": chance.choice([16, 24, 192]),
        "capabilities": chance.choice([HANDED, UNHANDED]),
        "shelf": Archive(lambda query: ["A passage."] if len(query) % 4 else []),
    }


@pytest.mark.parametrize("seed", range(100))
async def test_it_decides_as_it_did_live_and_as_another_limit_would(seed):
    settings = random_settings(seed)
    # Deciding with the run's own settings is compared with the live answer in `ever_run`.
    outcome = await ever_run(random_part(seed), **settings)
    other = 1 + (settings["max_rounds"] + seed) % 4
    decision = decided(outcome, max_rounds=other)
    assert (decision.answer is None) == (decision.diverges_at is not None)
    again = await ever_run(random_part(seed), **{**settings, "max_rounds": other})
    if decision.answer is not None:
        live = decided(again)
        assert decision.answer == live.answer
        assert decision.score is not None
        assert live.score is not None
        assert decision.score.inputs == live.score.inputs
    else:
        assert again.drafts != outcome.drafts
