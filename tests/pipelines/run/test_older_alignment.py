"""HAARAG's verdicts by its alignment alone, as earlier versions recorded them."""

from typing import Any

import pytest

from pipelines.run.older import renewed

SUPPORTED: dict[str, Any] = {"kind": "judged", "verdict": "supported", "what": "answer"}
C_A = {"name": "evidence_alignment", "value": 0.7, "flagged": False}


@pytest.mark.parametrize(
    ("changes", "verdict"),
    [
        ({"scores": [C_A]}, "aligned"),
        ({"verdict": "doubtful", "scores": [C_A | {"flagged": True}]}, "not_aligned"),
        # By the judges.
        ({"verdict": "doubtful", "scores": [C_A]}, "doubtful"),
        ({"scores": [{"name": "entailment", "value": 0.9}]}, "supported"),
        ({"what": "sentence", "scores": [C_A], "detail": {"kind": "aligned"}}, "aligned"),
        ({"scores": [C_A], "detail": {"kind": "aligned", "judged": True}}, "supported"),
        ({"scores": [{"name": "supported_share", "value": 1.0}]}, "supported"),
        ({"scores": []}, "supported"),
    ],
)
def test_alignment_was_called_support(changes: dict[str, Any], verdict: str) -> None:
    assert renewed(SUPPORTED | changes)["verdict"] == verdict
