"""The one rule by which every method goes from its parts to a verdict on the whole.

A method looks at parts of a text: sentences, concepts, claims, questions. What it could not judge
may be wrong, whatever the reason: no reply, an unreadable one, a failed search, a limit, a part
that was dropped on the way. So a text is supported only where every part of it was judged (ours;
published code of several methods counts what it could not read as agreement).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pipelines.run.events import Verdict

FAVOURABLE: frozenset[Verdict] = frozenset({"supported", "confident"})
"""The verdicts that speak for what was looked at."""


@dataclass(frozen=True)
class PartCounts:
    """How many parts of a text have which verdict.

    `unchecked` parts were to be judged and could not be: a call or a search failed, a reply could
    not be read. `dropped` ones were never asked about: over a limit, not found in the text, listed
    by a reply that could not be read.
    """

    supported: int = 0
    contradicted: int = 0
    not_enough: int = 0
    unchecked: int = 0
    dropped: int = 0

    @classmethod
    def of(cls, verdicts: Iterable[Verdict], *, dropped: int = 0) -> PartCounts:
        """Return the counts of the parts' verdicts, and of the parts that have none.

        "confident" counts as supported, "doubtful" as contradicted.
        """
        found = list(verdicts)
        return cls(
            supported=sum(one in FAVOURABLE for one in found),
            contradicted=found.count("contradicted") + found.count("doubtful"),
            not_enough=found.count("not_enough"),
            unchecked=found.count("unchecked"),
            dropped=dropped,
        )

    @property
    def judged(self) -> int:
        """Return how many parts were judged."""
        return self.supported + self.contradicted + self.not_enough

    @property
    def missing(self) -> int:
        """Return how many parts were not judged, for any reason."""
        return self.unchecked + self.dropped

    @property
    def parts(self) -> int:
        """Return how many parts there are."""
        return self.judged + self.missing


@dataclass(frozen=True)
class Decision:
    """What the parts say of the whole.

    `share` is that of supported parts among all parts, in [0, 1]; None where none was judged. It is
    1 only where every part is supported. `flags` are the remarks on what was not judged.
    """

    verdict: Verdict
    share: float | None
    flags: tuple[str, ...] = ()


def decide(counts: PartCounts, *, least: float = 1.0) -> Decision:
    """Return the verdict on a text from those on its parts.

    It is supported where all parts were judged and at least `least` of them, in [0, 1], are
    supported; contradicted where of the parts that evidence decides fewer than that are supported
    and some are contradicted; else not in the evidence where that holds of a part. In all other
    cases it is unchecked.
    """
    share = counts.supported / counts.parts if counts.judged else None
    return Decision(_verdict(counts, least), share, _remarks(counts))


def _verdict(counts: PartCounts, least: float) -> Verdict:
    supported, contradicted = counts.supported, counts.contradicted
    if supported and not counts.missing and supported >= least * counts.parts:
        return "supported"
    if contradicted and (not supported or supported < least * (supported + contradicted)):
        return "contradicted"
    return "not_enough" if counts.not_enough else "unchecked"


def _remarks(counts: PartCounts) -> tuple[str, ...]:
    if counts.missing and not counts.judged:
        return ("not_checked",)
    remarks = {"checks_incomplete": counts.unchecked, "parts_dropped": counts.dropped}
    return tuple(flag for flag, count in remarks.items() if count)


def withheld(verdict: Verdict, counts: PartCounts) -> Verdict:
    """Return a verdict by a score over several parts; unchecked where it speaks for unjudged ones.

    A doubt stands: it rests on the parts that were judged.
    """
    return "unchecked" if verdict in FAVOURABLE and counts.missing else verdict
