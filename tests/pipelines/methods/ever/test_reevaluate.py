"""EVER re-evaluated: as it was live, and for other settings as a live run with them would be."""

from __future__ import annotations

import random
from typing import Any

import pytest

from pipelines.methods.ever import EverSettings
from pipelines.run.events import EvidenceSpec
from tests.scripted.ever import (
    FIRST,
    HANDED,
    UNHANDED,
    WHOLE,
    Archive,
    Part,
    ever_run,
    found_of,
    judged_of,
    reevaluated,
)
from tests.worlds import worlds

SAID = [f"Ada Brandt was a chemist called {name}." for name in "ABC"]
STUBBORN = Part(
    texts={"": SAID[0], SAID[2]: " She left."},
    concepts={text: ["chemist"] for text in SAID},
    verdicts={"chemist": "False"},
    rectified={SAID[0]: SAID[1], SAID[1]: SAID[2]},
)


def test_the_number_of_rounds_is_offered_on_a_recorded_run():
    assert EverSettings.REPLAYABLE == ("max_rounds",)
    assert set(EverSettings.REPLAYABLE) <= set(EverSettings.model_fields)


async def test_fewer_rounds_end_the_last_sentence_earlier():
    outcome = await ever_run(STUBBORN, max_rounds=2)
    again = reevaluated(outcome, max_rounds=1)
    assert again.diverges_at is None
    assert again.answer is not None
    assert (again.answer.text, again.answer.flags) == (SAID[1], ("contradicted",))
    looks = [e for e in again.method.judged if e.what == "concepts"]
    assert [e.text for e in looks] == SAID[:2]


async def test_more_rounds_than_were_recorded_need_a_new_run():
    outcome = await ever_run(STUBBORN, max_rounds=1)
    again = reevaluated(outcome, max_rounds=2)
    # Draft 2 would be what another correction makes of draft 1.
    assert (again.diverges_at, again.answer) == (2, None)
    assert [e.after for e in again.method.drafts] == SAID[:2]


async def test_fewer_rounds_within_a_text_need_a_new_run():
    part = Part(
        texts={"": f"{SAID[0]} She left.", SAID[2]: " She left."},
        concepts=STUBBORN.concepts,
        verdicts=STUBBORN.verdicts,
        rectified=STUBBORN.rectified,
    )
    outcome = await ever_run(part, max_rounds=2)
    again = reevaluated(outcome, max_rounds=1)
    # After draft 1 the next sentence would be written on another text.
    assert (again.diverges_at, again.answer) == (2, None)
    ended = [e for e in again.method.judged if e.what == "sentence"]
    assert [e.text for e in ended] == [SAID[1]]


@pytest.mark.parametrize(
    ("changes", "drafts"),
    [({"task": "chain"}, 0), ({"variant": "nrg_sq"}, 1), ({"passages": 2}, 1), ({"samples": 3}, 1)],
)
async def test_other_settings_need_a_new_run_from_where_they_matter(changes, drafts):
    outcome = await ever_run(STUBBORN)
    again = reevaluated(outcome, **changes)
    assert (again.diverges_at, again.answer) == (drafts, None)


async def test_fewer_facts_can_be_looked_at_without_a_new_run():
    outcome = await ever_run(Part(texts={"": FIRST}, concepts={FIRST: ["chemist", "1931"]}))
    again = reevaluated(outcome, max_concepts=1)
    assert again.answer is not None
    assert again.answer.flags == ("concepts_left_out",)


async def test_writing_ahead_changes_nothing_that_is_found():
    outcome = await ever_run(Part(texts={"": WHOLE, FIRST: " She left."}), speculative=True)
    again = reevaluated(outcome, speculative=False)
    assert again.answer == outcome.answer
    assert found_of(again.trace.of_method("ever")) == found_of(outcome.events)


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
            # An answer that stays empty is an error.
            count = chance("count", key).randint(0 if key else 1, 3)
            said = [sentence(f"{key}{number}") for number in range(count)]
            if not key:
                return chance("kind").choice([" ".join(said), "; ".join(WORDS[:count])])
            return "".join(f" {one}" for one in said) or default

    class Concepts(dict[str, str]):
        def get(self, key: str, default: Any = None) -> str:
            count = chance("concepts", key).randint(0, 3)
            words = [word for word in key.strip(".").split() if word in WORDS][:count]
            odd = chance("odd", key).random() < 0.1
            return "Not a list at all, really" if odd else "\n".join(words) or "None"

    class Questions(dict[str, str]):
        def get(self, key: str, default: Any = None) -> str:
            return chance("question", key).choice([f"Does {key} fit Ada Brandt?", f"({key})"])

    class Rectified(dict[str, str]):
        def get(self, key: str, default: Any = None) -> str:
            mended = sentence(f"mended {key}")
            odd = ["", key, f"The evidence does not say so. {mended}", f"{mended} {mended}"]
            return chance("bad", key).choice([*odd, *4 * [mended]])

    part = Part(texts=Texts(), concepts=Concepts(), rectified=Rectified(), questions=Questions())
    part.verdicts = {word: chance("verdict", word).choice(VERDICTS) for word in WORDS}
    part.candidates = "\n".join(sentence(f"candidate {n}") for n in range(3))
    part.short = chance("short").choice(["a chemist", "I don't know."])
    return part


def random_settings(seed: int) -> dict[str, Any]:
    chance = random.Random(seed)
    return {
        "variant": chance.choice(["nrg_er", "nrg_sq", "rag_er"]),
        "task": chance.choice(["long", "long", "chain", "short"]),
        "max_rounds": chance.randint(1, 4),
        "max_sentences": chance.randint(1, 4),
        "max_concepts": chance.randint(1, 3),
        "samples": chance.choice([1, 1, 3]),
        "speculative": chance.random() < 0.3,
        "candidates": chance.randint(0, 3),
        "max_tokens": chance.choice([16, 24, 192]),
        "capabilities": chance.choice([HANDED, UNHANDED]),
        "shelf": Archive(lambda query: ["A passage."] if len(query) % 4 else []),
        "evidence": EvidenceSpec(source=chance.choice(["library", "wikipedia"])),
    }


@pytest.mark.parametrize("seed", worlds(100))
async def test_it_goes_as_it_did_live_and_as_another_live_run_would(seed):
    settings = random_settings(seed)
    # Its own settings are compared with the live run in `ever_run`.
    outcome = await ever_run(random_part(seed), **settings)
    if seed % 2:
        other = {"max_rounds": 1 + (settings["max_rounds"] + seed) % 4}
    else:
        drawn = random_settings(seed + 1000)
        other = {
            name: drawn[name]
            for name in random.Random(seed).sample(list(EverSettings.model_fields), 4)
            if name in drawn
        }
    again = reevaluated(outcome, **other)
    live = await ever_run(random_part(seed), **{**settings, **other})
    assert (again.answer is None) == (again.diverges_at is not None)
    if again.answer is not None:
        assert again.answer == live.answer
        assert found_of(again.trace.of_method("ever")) == found_of(live.events)
        (ended,) = judged_of(live, "answer")
        assert [e.scores[0].value for e in again.method.judged if e.what == "answer"] == [
            ended.scores[0].value
        ]
    else:
        drafts = [event.after for event in again.method.drafts]
        assert drafts == live.drafts[: len(drafts)]
        assert len(drafts) == again.diverges_at
