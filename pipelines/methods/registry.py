"""The one table of methods: adding a method is its file and a line here.

Screens, reports, the command line and the public page draw their lists from this table; what they
have to know of a method stands in its class (`Method`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pipelines.errors import failure
from pipelines.methods.base import Method
from pipelines.methods.baselines.abstain import Abstain
from pipelines.methods.baselines.adaptive_rag import AdaptiveRag
from pipelines.methods.baselines.adaptive_retrieval import AdaptiveRetrieval
from pipelines.methods.baselines.chain_of_thought import ChainOfThought
from pipelines.methods.baselines.cove import Cove
from pipelines.methods.baselines.critic import Critic
from pipelines.methods.baselines.debate import Debate
from pipelines.methods.baselines.detect_and_mitigate import DetectAndMitigate
from pipelines.methods.baselines.factool import Factool
from pipelines.methods.baselines.flare import Flare
from pipelines.methods.baselines.ircot import Ircot
from pipelines.methods.baselines.luq import Luq
from pipelines.methods.baselines.p_true import PTrue
from pipelines.methods.baselines.p_yes import PYes
from pipelines.methods.baselines.rarr import Rarr
from pipelines.methods.baselines.sac3 import Sac3
from pipelines.methods.baselines.self_rag import SelfRag
from pipelines.methods.baselines.self_reflection import SelfReflection
from pipelines.methods.baselines.selfcheck import SelfCheck
from pipelines.methods.baselines.semantic_entropy import SemanticEntropy
from pipelines.methods.baselines.token_probability import TokenProbability
from pipelines.methods.baselines.verbalised_confidence import VerbalisedConfidence
from pipelines.methods.direct import Direct
from pipelines.methods.drad import Drad
from pipelines.methods.ever import Ever
from pipelines.methods.haarag import Haarag
from pipelines.methods.rag import Rag
from pipelines.methods.rowen import Rowen
from pipelines.methods.slm import Slm
from pipelines.methods.together.method import Together
from pipelines.models.providers import ModelSpec
from pipelines.prompts import Wording, used_wording

_DETECTORS: tuple[Method[Any], ...] = (
    TokenProbability(),
    SelfCheck(),
    PYes(),
    Together(),
    PTrue(),
    SemanticEntropy(),
    Sac3(),
    Luq(),
    VerbalisedConfidence(),
)

_CORRECTORS: tuple[Method[Any], ...] = (
    ChainOfThought(),
    Abstain(),
    Ircot(),
    Flare(),
    DetectAndMitigate(),
    AdaptiveRag(),
    AdaptiveRetrieval(),
    SelfRag(),
    Cove(),
    SelfReflection(),
    Debate(),
    Rarr(),
    Critic(),
    Factool(),
)

METHODS: dict[str, Method[Any]] = {
    method.name: method
    for method in (
        Direct(),
        Rag(),
        Rowen(),
        Drad(),
        Ever(),
        Haarag(),
        Slm(),
        *_DETECTORS,
        *_CORRECTORS,
    )
}
"""Every method by name, in the order in which screens list them."""


def standard_methods() -> list[str]:
    """Return the five methods, and an answer without and with passages, which they are compared
    with; other baselines are not. These are ticked until somebody chooses, as far as a run of them
    is short enough (`first_methods` in `pipelines/engine/estimate.py`).
    """
    plain = ("direct", "rag")
    return [name for name, method in METHODS.items() if name in plain or not method.baseline]


def grouped_methods() -> dict[str, tuple[str, ...]]:
    """Return every method under what it is: "published" for the five, "answering" for baselines
    that give an answer, "detecting" for those that only check one.
    """
    groups: dict[str, tuple[str, ...]] = {"published": (), "answering": (), "detecting": ()}
    for name, method in METHODS.items():
        baseline = "answering" if method.rewrites else "detecting"
        group = baseline if method.baseline else "published"
        groups[group] = (*groups[group], name)
    return groups


def method_presets() -> dict[str, tuple[str, ...]]:
    """Return choices of methods by name: "quick" takes a few calls each; "five" are the published
    methods beside an answer without and with passages; "papers" adds the baselines that the tables
    of the five papers have; "all" is every method that runs on any weights.
    """
    five = tuple(standard_methods())
    tables = (
        *("token_probability", "selfcheck", "p_yes"),
        *("chain_of_thought", "ircot", "rarr", "critic"),
    )
    return {
        "quick": ("direct", "rag", "drad", "slm"),
        "five": five,
        "papers": (*five, *tables),
        "all": tuple(name for name, method in METHODS.items() if not method.own_weights),
    }


def get_method(name: str) -> Method[Any]:
    """Return the method called `name`; raises InvalidInputError where there is none."""
    if name not in METHODS:
        known = ", ".join(METHODS)
        raise failure("methods.unknown", name=name, known=known)
    return METHODS[name]


def different(method: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return those of `values` that differ from the method's defaults. Raises InvalidInputError."""
    known = get_method(method)
    defaults = known.settings().model_dump(mode="json")
    chosen = known.settings(values).model_dump(mode="json")
    return {name: value for name, value in chosen.items() if value != defaults[name]}


def used_models(methods: Iterable[str], models: Mapping[str, ModelSpec]) -> dict[str, ModelSpec]:
    """Return those of `models`, by role, that the named methods can use; "main" is always one.

    Prices are left out: no run holds them.

    Raises InvalidInputError for a method that does not exist.
    """
    return {role: spec.without_price() for role, spec in used_roles(methods, models).items()}


def used_roles(methods: Iterable[str], models: Mapping[str, ModelSpec]) -> dict[str, ModelSpec]:
    """Return what `used_models` returns, with their prices."""
    used = {"main", *(role for name in methods for role in get_method(name).roles)}
    return {role: spec for role, spec in models.items() if role in used}


def wording_of(methods: Iterable[str], wording: Wording) -> dict[str, Any]:
    """Return the part of `wording` that the named methods can use.

    Raises InvalidInputError for a method that does not exist.
    """
    return used_wording(wording, (one for name in methods for one in get_method(name).prompts))


def method_pages() -> dict[str, tuple[str, ...]]:
    """Return the pages that show methods in detail, in order, each with its methods."""
    pages: dict[str, tuple[str, ...]] = {}
    for name, method in METHODS.items():
        if method.page:
            pages[method.page] = (*pages.get(method.page, ()), name)
    return pages
