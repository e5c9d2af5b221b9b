"""Reads events of earlier versions, of version 0.1 above all, with its untyped details.

Recordings and exports of those versions stay readable: an event is brought into today's form before
it is checked. What today's pages do not need is left out. Earlier versions called HAARAG's
alignment support.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pipelines.error_words import PhraseError

_PLACE = ("draft", "sentence", "index", "round", "side", "role", "language", "start", "end")


def renewed(event: Any) -> Any:
    """Return `event` as today's models read it; anything but an event of version 0.1 stays
    as it is.

    Raises ValueError for one of version 0.1 that is not as that version wrote it.
    """
    if not isinstance(event, Mapping):
        return event
    try:
        return _renewed(event)
    except (AttributeError, LookupError, TypeError) as error:
        raise PhraseError("run_file.no_event") from error


def _renewed(event: Mapping[str, Any]) -> Any:
    kind = event.get("kind")
    if kind == "span_started" and "step" in event:
        return _span(dict(event))
    if kind == "judged" and isinstance(old := event.get("detail"), Mapping) and "kind" not in old:
        event = {**event, "detail": _finding(event.get("what", ""), old)}
    if kind == "judged" and event.get("verdict") in ("supported", "doubtful"):
        return _aligned(event)
    if kind == "revised" and "detail" in event:
        kept = {name: event[name] for name in event if name != "detail"}
        return {**kept, "at": _only(event["detail"] or {}, *_PLACE)}
    if kind == "retrieved" and "by_meaning" in event:
        return {("dense" if name == "by_meaning" else name): event[name] for name in event}
    return event


def _aligned(event: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a verdict by the alignment alone under today's name; every other event as it is."""
    detail, scores = event.get("detail"), event.get("scores") or ({},)
    first = scores[0]
    if isinstance(detail, Mapping) and detail.get("kind") in ("alignment", "aligned"):
        by_alignment = not detail.get("judged")
    else:
        by_alignment = event.get("what") == "answer"
    named = first.get("name") in ("evidence_alignment", "sentence_alignment")
    if not (by_alignment and named):
        return event
    if event["verdict"] == "supported":
        return {**event, "verdict": "aligned"}
    return {**event, "verdict": "not_aligned"} if first.get("flagged") else event


def _span(event: dict[str, Any]) -> dict[str, Any]:
    name, detail = event.pop("step"), dict(event.pop("detail", None) or {})
    event["name"] = name
    event["detail"] = _step_detail(name, detail)
    if name != "method":
        event["at"] = _only(detail, *_PLACE)
    return event


def _step_detail(name: str, old: Mapping[str, Any]) -> dict[str, Any] | None:
    match name:
        case "method":
            settings = dict(old.get("settings", {}))
            if "entropy_pooling" in settings:
                # DRAD's, where no theta_2 meant that entropy decides nothing.
                settings.setdefault("use_entropy", settings.get("theta_2") is not None)
            known = _only(old, "models", "embedder")
            return {"kind": "method", **known, "settings": settings}
        case "draft" if "confidence" in old:
            return {"kind": "draft", "confidence": old["confidence"]}
        case "check":
            kept = {name: value for name, value in old.items() if name != "auto"}
            return {"kind": "rowen_plan", **kept}
        case "pair":
            return {"kind": "paraphrase", "text": old.get("text", "")}
        case "retrieve" | "refine" if "depth" in old:
            return {"kind": "round", **_only(old, "depth", "parts", "rephrase")}
        case "align":
            return {"kind": "align", **_only(old, "sentences", "chunks", "weak")}
        case "ask_judges":
            judges = [
                {**_only(judge, "role", "name", "also"), "scale": judge.get("shipped", {})}
                for judge in old.get("judges", ())
            ]
            known = _only(old, "text", "sentences", "flags", "left_out")
            return {"kind": "panel", **known, "judges": judges}
        case _:
            return None


def _finding(what: str, old: Mapping[str, Any]) -> dict[str, Any] | None:
    match what:
        case "entity":
            return {"kind": "entity", **old.get("reading", {})}
        case "pair":
            return {"kind": "pair", **_only(old, "side", "index", "hard", "soft", "source")}
        case "concepts":
            return {"kind": "concepts", **old}
        case "concept":
            return {"kind": "concept", **old}
        case "sentence" if "stopped" in old:
            words = {"settled": "finished", "thrown": "discarded"}
            return {"kind": "ever_sentence", **{k: words.get(v, v) for k, v in old.items()}}
        case "sentence" if "chunk" in old:
            return {"kind": "aligned", **old}
        case "retrieval":
            return {"kind": "retrieval", **_only(old, "depth", "queries", "chunks")}
        case "alignment":
            return {"kind": "alignment", "status": old["status"]}
        case "cell" | "whole":
            return {"kind": "cell", **old}
        case "answer" if "variant" in old:
            return {"kind": "rowen_verdict", **_only(old, "variant", "retrieve")}
        case "answer" if "scales" in old:
            return {"kind": "slm_verdict", **_only(old, "threshold_source")}
        case _:
            return None


def _only(old: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: old[name] for name in names if name in old}
