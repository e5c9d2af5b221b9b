"""From where on a detector's score is taken for support, by what a text is checked against.

These thresholds are fitted on statements whose truth is known (`research/calibrate/together.py`,
docs/verdicts.md) for detectors and judges that ship. Of all that keep false statements that are
called supported at one in ten, each is the lowest.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Literal

from pydantic import TypeAdapter

from pipelines.base import Frozen, Language, calibration
from pipelines.run.events import Score

Use = Literal["given", "library", "web", "own"]
"""What a text is checked against: sources that came with it, a searched library, the web, or
whatever stood behind an answer that the model of the run wrote itself."""

NEAREST_USE: Mapping[Use, Use] = {"web": "library", "own": "library", "given": "library"}
"""Where a use has no data of its own: passages of a search are what its judges read too."""


class HeldOutScores(Frozen):
    """How good a combination is on statements it was not fitted on; shares in [0, 1].

    `statements` were counted; `accuracy` is the share of right verdicts ("supported" or not),
    `false_supported` that of the false ones that are called supported, `true_doubted` that of the
    true ones that are not.
    """

    statements: int
    auroc: float
    accuracy: float
    false_supported: float
    true_doubted: float


class Limit(Frozen):
    """A threshold of one detector's score for a use, and how good it is on other statements."""

    use: Use
    language: Language
    method: str
    judges: tuple[str, ...]
    value: float
    fitted: int
    reported: HeldOutScores


_LIMITS = TypeAdapter(tuple[Limit, ...])


@cache
def limits() -> tuple[Limit, ...]:
    """Return the thresholds of single detectors by use that ship."""
    return _LIMITS.validate_python(calibration("together").get("limits", ()))


def limit_for(
    method: str, use: Use, language: Language, judges: Iterable[str] | None = None
) -> Limit | None:
    """Return the threshold of a detector for a use, or for the nearest one that was measured.

    `judges` are the names of those whose word makes the score: a threshold holds for these alone.
    """
    wanted = None if judges is None else tuple(sorted(judges))
    known = _limits_of(method, use, language)
    return next((one for one in known if wanted is None or one.judges == wanted), None)


def least_yes(judge: str, language: Language, otherwise: float) -> float:
    """Return the least P(yes) of a language model that is taken for support of what was searched
    for; `otherwise` where it has no fitted limit.

    What a small one says of right and of wrong claims lies close together, so that one half tells
    nothing.
    """
    limit = limit_for("p_yes", "library", language, [judge])
    return otherwise if limit is None else limit.value


def limit_used(method: str, score: Score | None, use: Use, language: Language) -> Limit | None:
    """Return the fitted threshold that a score was held against; None where it was another one."""
    if score is None:
        return None
    known = _limits_of(method, use, language)
    return next((one for one in known if one.value == score.threshold), None)


def _limits_of(method: str, use: Use, language: Language) -> Iterator[Limit]:
    """Yield the thresholds of a detector for a use, then those for the nearest one."""
    for one in (use, NEAREST_USE.get(use)):
        wanted = (method, one, language)
        yield from (it for it in limits() if (it.method, it.use, it.language) == wanted)
