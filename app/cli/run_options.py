"""What a run is made of, as options of a command: models, evidence, prices, limits, wording."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import time
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from dataclasses import field as attribute
from functools import partial
from math import ceil, inf
from pathlib import Path
from typing import Any, cast, get_args

from pydantic import TypeAdapter, ValidationError

from app.cli.forms import add_option, add_worded, number, terminal_words
from app.cli.shared import amount, say, text_of_file
from components.forms import BUDGET, MODEL, PRICE, RUN_LIMITS
from pipelines.base import Language
from pipelines.engine.asking import RunRequest
from pipelines.engine.estimate import Account, RunBudget, expected_of
from pipelines.engine.library import SAMPLE_LIBRARY
from pipelines.engine.profiles import read_profile
from pipelines.engine.service import Service
from pipelines.error_words import first_problem, phrase
from pipelines.errors import failure
from pipelines.evaluation.beginning import LIMITS, checked_limits, currencies_of
from pipelines.evaluation.plan import Budget, EvaluationSpec
from pipelines.methods.registry import used_roles
from pipelines.models.judges.hub import judge_name, split_revision
from pipelines.models.judges.hub_formats import parse_format, parse_labels
from pipelines.models.probe import probe
from pipelines.models.providers import (
    PROVIDERS,
    Currency,
    ModelSpec,
    Price,
    provider_of,
    refuse_shared_names,
)
from pipelines.prompts import Wording, checked_wording, overlaid
from pipelines.remote import read_address, usable_key
from pipelines.retrieval.base import RetrievalMode
from pipelines.retrieval.documents import cut_document, load_library
from pipelines.retrieval.indexes import default_embedder
from pipelines.retrieval.qdrant import (
    Configured,
    configured,
    configured_collection,
    open_client,
    read_passages,
    upload,
)
from pipelines.retrieval.web import WEB_SEARCHES
from pipelines.run.events import JUDGES, ROLES, EvidenceSpec, by_language, default_models
from pipelines.run.ledger import LIMIT_NAMES, Ledger, RunLimits, UsageTotals
from pipelines.store.tables import refuse_keys_in_prompts

_BUNDLED = "embedded"
_OF_JUDGES = {
    "--judge-format": "judge_format",
    "--judge-labels": "judge_labels",
    "--judge-languages": "languages",
}
_OTHER_ROLES = [role for role in ROLES if role != "main"]


def add_main_model_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that `main_model` reads."""
    own = " or ".join(one.key_variable for one in PROVIDERS.values() if one.key_variable)
    add_option(parser, MODEL["kind"], "--profile", choices=list(PROVIDERS), default=_BUNDLED)
    add_option(parser, MODEL["model"], default="")
    add_option(parser, MODEL["base_url"])
    add_worded(parser, "cli.key_env", "--key-env", metavar="NAME", facts={"own": own})


def add_model_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that `models_by_role` reads."""
    add_main_model_options(parser)
    add_worded(
        parser,
        "cli.role",
        "--role",
        action="append",
        default=[],
        metavar="ROLE=PROFILE[:MODEL]",
        facts={"roles": ", ".join(_OTHER_ROLES)},
    )
    add_worded(
        parser, "cli.role_url", "--role-url", action="append", default=[], metavar="ROLE=URL"
    )
    add_worded(
        parser,
        "cli.role_key_env",
        "--role-key-env",
        action="append",
        default=[],
        metavar="ROLE=NAME",
    )
    add_worded(parser, "cli.proxy", "--proxy", metavar="MODEL")
    add_worded(parser, "cli.judge", "--judge", action="append", default=[], metavar="MODEL")
    for option, name in _OF_JUDGES.items():
        metavar = f"ROLE={option.rpartition('-')[2].upper()}"
        look: dict[str, Any] = {"action": "append", "default": [], "metavar": metavar}
        add_option(parser, MODEL[name], option, type=None, choices=None, **look)


CHECK_SECONDS = 30.0
"""Seconds that the check of all models may take before a run."""


@dataclass
class ModelCheck:
    """What the check of the models before a run took, which its limits count.

    `seconds` is by the clock, `used` by role, without money.
    """

    seconds: float = 0.0
    used: dict[str, UsageTotals] = attribute(default_factory=dict)

    def totals(self, models: Mapping[str, ModelSpec]) -> UsageTotals:
        """Return what it took of all together, at the prices of `models`."""
        total = UsageTotals()
        for role, one in self.used.items():
            price = models[role].price if role in models else None
            money: dict[str, float] = {}
            if price is not None:
                amount = (price.read * one.read + price.written * one.written) / 1e6
                money = {price.currency: amount}
            total = total.plus(one._replace(money=money))
        return total


async def _checked(
    service: Service, spec: ModelSpec, role: str, key: str | None, check: ModelCheck, most: float
) -> ModelSpec:
    """Return the hosted model with what it was found able to do, in what is left of `most` s."""
    seconds = max(0.0, most - check.seconds)
    say(f"Checking what {spec.name} can do ({seconds:.0f} s at most) ...")
    ledger, began = Ledger(), time.monotonic()
    try:
        report = await probe(await service.model(spec, key, ledger), seconds)
    finally:
        check.seconds += time.monotonic() - began
        check.used[role] = ledger.spent
    if report.unknown:
        say(f"{spec.name}: not known, taken as usual: {', '.join(report.unknown)}")
    return spec.with_capabilities(report.capabilities)


async def main_model(service: Service, options: argparse.Namespace) -> tuple[ModelSpec, str | None]:
    """Return the options' one model, probed if hosted, and its key; raises InvalidInputError."""
    every = argparse.ArgumentParser()
    add_model_options(every)
    # The other roles are left as they are without their options.
    alone = argparse.Namespace(**{**vars(every.parse_args([])), **vars(options)})
    specs, keys = await models_by_role(service, alone)
    return specs["main"], keys.get(specs["main"].name)


async def models_by_role(
    service: Service,
    options: argparse.Namespace,
    saved: Mapping[str, ModelSpec] | None = None,
    check: ModelCheck | None = None,
) -> tuple[dict[str, ModelSpec], dict[str, str]]:
    """Return a map from role to model, and the keys by model name; hosted models are probed for
    what they can do.

    `saved` are models of a profile, for the roles that no option names. The bundled judges judge
    unless others are given. `check` is told what the probing took: 30 s at most, and half of the
    time of the run.
    Raises InvalidInputError when an option cannot be understood.
    """
    saved, check = saved or {}, check or ModelCheck()
    # Half of the time is left for the run itself.
    most = min(CHECK_SECONDS, (getattr(options, "max_seconds", None) or inf) / 2)
    unnamed = (options.profile, options.model, options.base_url) == (_BUNDLED, "", None)
    main = saved.get("main") if unnamed else None
    specs = dict(saved)
    specs["main"] = main or _spec(options.profile, options.model, options.base_url)
    urls = by_role(options.role_url, "--role-url")
    given = by_role(options.role, "--role")
    if options.proxy:
        given["proxy"] = f"local:{options.proxy}"
    given |= _judges(options.judge, given)
    for role, value in given.items():
        profile, _, model = value.partition(":")
        if profile not in PROVIDERS:
            raise failure("command.no_profile", profile=profile, known=[*PROVIDERS])
        specs[role] = _spec(profile, model, urls.get(role))
    specs = _with_readings(specs, options)
    keys = keys_of(options, specs)
    for role, spec in specs.items():
        specs[role] = await _ready(service, spec, role, keys, check, most)
    if not (given.keys() | saved.keys()) & set(JUDGES):
        specs |= {role: spec for role, spec in default_models().items() if role in JUDGES}
    return specs, keys


async def _ready(
    service: Service,
    spec: ModelSpec,
    role: str,
    keys: Mapping[str, str],
    check: ModelCheck,
    most: float,
) -> ModelSpec:
    """Return a model pinned to its weights, or checked for what it can do where it is hosted."""
    provider = provider_of(spec.kind)
    if provider.pin is not None:
        spec = await service.pinned(spec)
    if provider.hosted:
        spec = await _checked(service, spec, role, keys.get(spec.name), check, most)
    return spec


async def system_models(
    service: Service, names: Iterable[str], options: argparse.Namespace, keys: dict[str, str]
) -> dict[str, dict[str, ModelSpec]]:
    """Return the models that single systems have instead of the others', by system and role.

    They are `--system-role SYSTEM.ROLE=PROFILE:MODEL`; their keys, by `--system-key-env`, are added
    to `keys`. Raises InvalidInputError when an assignment cannot be understood.
    """
    check = ModelCheck()
    found: dict[str, dict[str, ModelSpec]] = {name: {} for name in names}
    tables: list[dict[tuple[str, str], str]] = []
    for option, assignments in (
        ("--system-role", options.system_role),
        ("--system-role-url", options.system_role_url),
        ("--system-key-env", options.system_key_env),
    ):
        table: dict[tuple[str, str], str] = {}
        for assignment in assignments:
            place, _, value = assignment.partition("=")
            name, _, role = place.rpartition(".")
            if name not in found or role not in ROLES or not value:
                raise failure(
                    "command.no_system_role",
                    option=option,
                    assignment=assignment,
                    systems=[*found],
                    roles=list(ROLES),
                )
            table[name, role] = value
        tables.append(table)
    models, urls, variables = tables
    for (name, role), value in models.items():
        profile, _, model = value.partition(":")
        if profile not in PROVIDERS:
            raise failure("command.no_profile", profile=profile, known=[*PROVIDERS])
        spec = _spec(profile, model, urls.get((name, role)))
        if key := named_key(variables.get((name, role))):
            keys[spec.name] = key
        found[name][role] = await _ready(service, spec, role, keys, check, CHECK_SECONDS)
    return found


def role_models(roles: Sequence[str], addresses: Sequence[str]) -> dict[str, ModelSpec]:
    """Return a map from role to model, of `ROLE=KIND[:MODEL]` and `ROLE=URL`, "main" too; nothing
    is asked.

    Raises InvalidInputError when an assignment cannot be understood.
    """
    urls = by_role(addresses, "--role-url", ROLES)
    found: dict[str, ModelSpec] = {}
    for role, value in by_role(roles, "--role", ROLES).items():
        kind, _, model = value.partition(":")
        found[role] = _spec(kind, model, urls.get(role))
    if unused := [role for role in urls if role not in found]:
        raise failure("command.unused_role_url", role=unused[0])
    return found


def keys_of(options: argparse.Namespace, models: Mapping[str, ModelSpec]) -> dict[str, str]:
    """Return the keys by model name, from the variables that the options name, else the
    providers' own.

    Raises InvalidInputError where two services have a model of the same name.
    """
    variables = {"main": options.key_env, **by_role(options.role_key_env, "--role-key-env")}
    refuse_shared_names(models.values())
    keys: dict[str, str] = {}
    for role, spec in models.items():
        provider, key = provider_of(spec.kind), named_key(variables.get(role))
        if variables.get(role) is None and spec.base_url is None:
            # The provider's own variable is read for its own address only.
            key = os.environ.get(provider.key_variable or "")
        if key:
            keys[spec.name] = key
    return keys


def _judges(named: Sequence[str], given: Mapping[str, str]) -> dict[str, str]:
    """Return a map from role to provider and model for --judge; raises InvalidInputError."""
    free = [role for role in JUDGES if role not in given]
    if len(named) > len(free):
        raise failure("command.many_judges", given=len(named), free=len(free), roles=[*JUDGES])
    bundled = {spec.model for spec in PROVIDERS["judge"].bundled}
    kinds = ("judge" if model in bundled else "hub_judge" for model in named)
    return {role: f"{kind}:{model}" for role, kind, model in zip(free, kinds, named, strict=False)}


def _with_readings(
    specs: Mapping[str, ModelSpec], options: argparse.Namespace
) -> dict[str, ModelSpec]:
    """Return the models with what the options say of judges; raises InvalidInputError."""
    found = dict(specs)
    said = (
        ("judge_format", "--judge-format", options.judge_format, parse_format),
        ("judge_labels", "--judge-labels", options.judge_labels, parse_labels),
        ("languages", "--judge-languages", options.judge_languages, _languages),
    )
    for field, option, assigned, read in said:
        for role, value in by_role(assigned, option).items():
            if role not in found or found[role].kind != "hub_judge":
                raise failure("command.no_hub_judge", option=option, role=role)
            found[role] = found[role].model_copy(update={field: read(value)})
    return found


def _languages(text: str) -> tuple[Language, ...]:
    words = [word.strip() for word in text.split(",")]
    if not set(words) <= set(get_args(Language)):
        raise failure("command.judge_languages", text=text)
    return tuple(cast("list[Language]", sorted(set(words))))


def named_key(variable: str | None) -> str | None:
    """Return the key in an environment variable that an option names; None where none was named.

    Raises InvalidInputError where the variable holds nothing.
    """
    if variable is None:
        return None
    if not (key := os.environ.get(variable)):
        raise failure("command.no_key_in", variable=variable)
    return key


def _spec(profile: str, model: str, base_url: str | None) -> ModelSpec:
    provider = provider_of(profile)
    bundled = {spec.model: spec for spec in provider.bundled}
    if model in bundled:
        return bundled[model]
    if not model:
        raise failure("command.needs_model", profile=profile)
    if provider.only_bundled:
        raise failure(
            "command.not_bundled",
            profile=profile,
            model=model,
            known=[name or phrase("detail.no_name") for name in bundled],
        )
    name, revision = model, None
    if provider.pin is not None:
        model, revision = split_revision(model)
        name = judge_name(model)
    return ModelSpec(kind=profile, name=name, model=model, base_url=base_url, revision=revision)


def by_role(
    assignments: Sequence[str], option: str, roles: Sequence[str] = _OTHER_ROLES
) -> dict[str, str]:
    """Return the values of `assignments`, each written ROLE=VALUE, as given to `option`.

    Raises InvalidInputError for one without a value, or whose role is not among `roles`.
    """
    found: dict[str, str] = {}
    for assignment in assignments:
        role, _, value = assignment.partition("=")
        if role not in roles or not value:
            raise failure("command.no_role", option=option, assignment=assignment, known=[*roles])
        found[role] = value
    return found


# What models cost, as it is told on the command line: for the main model, or in a file for all.
#
# Example of a file, for a million tokens that are read and written::
#
#     {"qwen-max": {"read": 2.4, "written": 9.6, "currency": "CNY"}}

_FORM = '{"NAME": {"read": 2.4, "written": 9.6, "currency": "CNY"}}'
_PRICES = TypeAdapter(dict[str, Price])


def add_price_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that `priced_models` reads."""
    add_option(parser, PRICE["read"], "--price-in")
    add_option(parser, PRICE["written"], "--price-out")
    add_option(parser, PRICE["currency"])
    add_worded(parser, "cli.prices", "--prices", metavar="FILE", facts={"form": _FORM})


def priced_models(
    models: Mapping[str, ModelSpec], options: argparse.Namespace
) -> dict[str, ModelSpec]:
    """Return `models` by role, with the prices that the options give.

    Raises InvalidInputError for a file that cannot be used, for a name in it that no model has,
    and where only one half of a price is given.
    """
    prices = _from_file(Path(options.prices)) if options.prices else {}
    names = {spec.name for spec in models.values()}
    if unknown := [name for name in prices if name not in names]:
        raise failure(
            "prices.unknown_model", file=options.prices, name=unknown[0], known=sorted(names)
        )
    halves = (options.price_in, options.price_out)
    if None in halves and (halves != (None, None) or options.currency):
        raise failure("prices.half")
    if None not in halves:
        main = models["main"].name
        read, written = halves
        prices[main] = Price(read=read, written=written, currency=options.currency or "USD")
    return {
        role: spec.model_copy(update={"price": prices[spec.name]}) if spec.name in prices else spec
        for role, spec in models.items()
    }


def refuse_prices(options: argparse.Namespace) -> None:
    """Raise InvalidInputError where prices are given for an evaluation that has begun."""
    given = (options.price_in, options.price_out, options.currency, options.prices)
    if any(one is not None for one in given):
        raise failure("prices.too_late")


def _from_file(path: Path) -> dict[str, Price]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise failure("prices.unreadable", file=path) from error
    try:
        return _PRICES.validate_python(json.loads(text))
    except json.JSONDecodeError as error:
        raise failure("prices.no_json", file=path, line=error.lineno, form=_FORM) from error
    except ValidationError as error:
        place, problem = first_problem(error)
        raise failure(
            "prices.none",
            file=path,
            place=place or phrase("detail.whole"),
            problem=problem,
            form=_FORM,
        ) from error


# The estimate and the limits of a run, on the command line.


def add_budget_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that `limited` and `begun` read."""
    for name in LIMIT_NAMES:
        add_option(parser, RUN_LIMITS[name], f"--max-{name}")
    add_option(parser, RUN_LIMITS["times"], "--times-expected", type=amount)
    add_worded(parser, "cli.anyway", "--anyway", action="store_true")


def limited(
    request: RunRequest, options: argparse.Namespace, check: ModelCheck | None = None
) -> RunRequest:
    """Return what is asked for with the prices of its models and the limits that the options give,
    less what the `check` of the models took.

    Raises InvalidInputError for a price or a limit that cannot be used, or that the check has
    reached.
    """
    models = by_language(request.models, request.spoken)
    priced = priced_models(used_roles((one.name for one in request.methods), models), options)
    currencies: list[Currency] = sorted(
        {one.price.currency for one in priced.values() if one.price}
    )
    given = {name: getattr(options, f"max_{name}") for name in LIMIT_NAMES}
    if (times := getattr(options, "times_expected", None)) is not None:
        given["times"] = times or None
    try:
        limits = RunLimits(**given, currency=currencies[0] if currencies else "USD")
    except ValidationError:
        raise failure("command.no_seconds") from None
    if check is not None:
        limits = _less(limits, check, priced)
    return replace(request, models={**models, **priced}, limits=limits)


def _less(limits: RunLimits, check: ModelCheck, models: Mapping[str, ModelSpec]) -> RunLimits:
    """Return what the check left of the limits; raises InvalidInputError where that is nothing."""
    totals = check.totals(models)
    took: dict[str, float] = {
        "calls": totals.calls,
        "tokens": ceil(totals.tokens),
        "seconds": check.seconds,
        "money": totals.money.get(limits.currency, 0.0),
    }
    left = {
        name: getattr(limits, name) - took.get(name, 0.0) for name in limits.names if took.get(name)
    }
    for name, rest in left.items():
        if rest <= 0:
            most, used = f"{getattr(limits, name):,.10g}", f"{took[name]:,.3g}"
            raise failure("command.check_took_all", limit=f"--max-{name}", most=most, used=used)
    return limits.model_copy(update=left)


def budget_words(budget: RunBudget) -> str:
    """Return a text such as "Expected: about 41 calls, 5,000 tokens, 12 s; limit: 50 calls"."""
    found, limits = budget.expected, budget.limits
    if found is None:
        return ""
    unknown = {"seconds": "time not known", "money": "price not known"}
    expected = [
        unknown.get(name, "")
        if (value := expected_of(found, name, limits.currency)) is None
        else _said(name, value, limits.currency)
        for name in LIMIT_NAMES
    ]
    said = f"Expected: about {', '.join(expected)}"
    set_ = [
        f"{getattr(limits, name):,.10g} {_unit(name, limits.currency)}" for name in limits.names
    ]
    return f"{said}; limit: {', '.join(set_)}" if set_ else said


def taken_words(account: Account) -> str:
    """Return a text such as "Taken: 12 calls, 3,400 tokens, 0.004 USD"."""
    taken = account.taken
    money = [f"{value:.2g} {unit}" for unit, value in taken.money.items()]
    said = ", ".join([f"{taken.calls:,} calls", f"{taken.tokens:,.0f} tokens", *money])
    reached = account.ledger.reached
    return f"Taken: {said}{f'; stopped at the limit of {reached}' if reached else ''}"


def _said(name: str, value: float, currency: str) -> str:
    if name == "money" and not value:
        return "free"
    number = f"{value:.2g}" if value < 10 else f"{value:,.0f}"
    return f"{number} {_unit(name, currency)}"


def _unit(name: str, currency: str) -> str:
    return {"seconds": "s", "money": currency}.get(name, name)


# Which evidence a command works with, and passages for a Qdrant server.


def add_evidence_options(parser: argparse.ArgumentParser) -> None:
    """Add `--library` and `--evidence`, and which Qdrant server and collection it may mean."""
    add_worded(parser, "cli.library", "--library", default="sample", metavar="NAME|FOLDER")
    add_worded(parser, "cli.embedder_key_env", "--embedder-key-env", metavar="NAME")
    add_worded(
        parser,
        "cli.evidence",
        "--evidence",
        choices=[*get_args(RetrievalMode), "qdrant"],
        default="hybrid",
    )
    add_qdrant_options(parser)


def add_tag_option(parser: argparse.ArgumentParser) -> None:
    """Add `--tag`, which chooses items by the data set's own classes."""
    add_worded(parser, "cli.tag", "--tag", action="append", default=[], metavar="TAG")


def add_web_options(parser: argparse.ArgumentParser) -> None:
    """Add `--web`, and the address and key of that search."""
    add_worded(parser, "cli.web", "--web", choices=list(WEB_SEARCHES))
    add_worded(parser, "cli.web_url", "--web-url", metavar="URL")
    add_worded(parser, "cli.search_key_env", "--search-key-env", metavar="NAME")


def web_key(options: argparse.Namespace) -> str | None:
    """Return the key of the web search that the options name; None without one."""
    return named_key(options.search_key_env)


def add_qdrant_options(parser: argparse.ArgumentParser) -> None:
    """Add options for which Qdrant server and collection."""
    add_worded(parser, "cli.qdrant_url", "--qdrant-url", metavar="URL")
    add_worded(parser, "cli.collection", "--collection")
    add_worded(parser, "cli.qdrant_key_env", "--qdrant-key-env", metavar="NAME")


def read_evidence(options: argparse.Namespace, keys: dict[str, str]) -> EvidenceSpec:
    """Return what the options name, a key of Qdrant added to `keys`; raises InvalidInputError."""
    if options.evidence != "qdrant":
        return EvidenceSpec(library=options.library, mode=options.evidence)
    server = _server(options)
    if server.key:
        keys["search:qdrant"] = server.key
    return EvidenceSpec(source="qdrant", library=server.collection, base_url=server.url)


def qdrant_key(options: argparse.Namespace, evidence: EvidenceSpec | None) -> str | None:
    """Return the key for evidence that was chosen earlier, if it is a Qdrant server's."""
    if evidence is None or evidence.source != "qdrant":
        return None
    known = configured()
    same = known is not None and known.url == evidence.base_url
    return named_key(options.qdrant_key_env) or (known.key if same and known else None)


async def index_in_qdrant(service: Service, options: argparse.Namespace) -> int:
    """Upload the passages of a file, or of the sample library, into a new collection."""
    server = _server(options)
    if options.passages:
        text = text_of_file(options.passages, phrase("wanted.json_lines"))
        # Of all that ends a line, a text in JSON may hold anything but this.
        passages = list(read_passages(text.split("\n")))
    else:
        documents = await asyncio.to_thread(load_library, SAMPLE_LIBRARY)
        passages = [passage for document in documents for passage in cut_document(document)]

    def tell(done: int, total: int) -> None:
        print(f"\r{done}/{total} passages", end="", file=sys.stderr)

    client = open_client(server.url, usable_key(server.key, "Qdrant"))
    try:
        embedded = await upload(client, server.collection, passages, default_embedder(), tell)
    finally:
        await client.close()
    print(file=sys.stderr)
    print(f"{len(passages)} passages in {server.collection}, {embedded} with a dense vector")
    return 0


def add_index_options(parser: argparse.ArgumentParser) -> None:
    """Add options for what `index` uploads, and where."""
    add_worded(parser, "cli.qdrant", "--qdrant", action="store_true")
    add_worded(parser, "cli.passages", "--passages", type=Path, metavar="FILE")
    add_qdrant_options(parser)


def _server(options: argparse.Namespace) -> Configured:
    """Return the server of the options or the environment; raises InvalidInputError for none."""
    known = configured()
    if options.qdrant_url:
        example = "http://localhost:6333"
        url = read_address(options.qdrant_url, example=example, what=phrase("server.qdrant")).url
        same = known is not None and known.url == url
        key = known.key if same and known else None
        known = Configured(url, key, configured_collection())
    if known is None:
        raise failure("command.no_qdrant")
    return Configured(
        known.url,
        named_key(options.qdrant_key_env) or known.key,
        options.collection or known.collection,
    )


# The limits of an evaluation on the command line: given at its beginning, changed on the way.

_NONE = "none"
"""Takes a limit away."""


def add_limit_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that `read_limits` reads."""
    t = terminal_words()
    for name, field in BUDGET.fields.items():
        told = t("evaluate.most.kept", option=field.option(t))
        add_option(parser, field, f"--max-{name}", type=_limit(partial(number, field)), help=told)


def read_limits(options: argparse.Namespace, spec: EvaluationSpec) -> Budget:
    """Return `spec`'s limits with those that the options change; raises InvalidInputError."""
    given = {name: getattr(options, f"max_{name}") for name in LIMITS}
    changed = {
        name: None if value == _NONE else value
        for name, value in given.items()
        if value is not None
    }
    return checked_limits(spec, Budget.model_validate({**spec.limits.model_dump(), **changed}))


def limit_words(limits: Budget, spec: EvaluationSpec) -> str:
    """Return a text such as "100 calls, 5 USD"; "" without any."""
    units = {name: name for name in LIMITS} | {"money": " ".join(currencies_of(spec))}
    amounts = ((name, getattr(limits, name)) for name in LIMITS)
    return ", ".join(f"{most:,.10g} {units[name]}" for name, most in amounts if most is not None)


def _limit(read: Callable[[str], float]) -> Callable[[str], float | str]:
    """Return a limit as `read` reads it, or "none"."""

    def limit(text: str) -> float | str:
        return _NONE if text == _NONE else read(text)

    return limit


# Texts in place of shipped prompts, as the command line reads them from a file.
#
# A file with such texts has the form of the files in `assets/prompts`, with each language under the
# name of its prompt file::
#
#     [ever.en]
#     verify = '''
#     ... $passages ... $question ...
#     '''

_WORDING = TypeAdapter(dict[str, dict[str, dict[str, str]]])
_MOST = 1_000_000
"""Characters of a file."""


def add_prompts_option(parser: argparse.ArgumentParser) -> None:
    """Add the option `--prompts`."""
    add_worded(parser, "cli.prompts", "--prompts", type=Path, metavar="FILE")


def chosen_wording(
    options: argparse.Namespace, saved: Wording
) -> dict[str, dict[str, dict[str, str]]]:
    """Return the texts of `--prompts` over those of a profile. Raises InvalidInputError."""
    given = checked_wording(read_wording(options.prompts)) if options.prompts else {}
    return overlaid(saved, given)


def read_wording(path: Path) -> dict[str, dict[str, dict[str, str]]]:
    """Return the texts in a file, TOML or a profile's JSON, not checked as prompts yet.

    Raises InvalidInputError for a file that cannot be read or is written otherwise, with the place.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise failure("prompts.no_text_file", file=path, problem=type(error).__name__) from None
    if len(text) > _MOST:
        raise failure("prompts.large_file", file=path, most=f"{_MOST:,}")
    if text.lstrip().startswith("{"):
        return read_profile(text).prompts
    try:
        body = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise failure("prompts.no_toml", file=path, problem=error) from None
    try:
        found = _WORDING.validate_python(body)
    except ValidationError as error:
        where, problem = first_problem(error)
        raise failure("prompts.bad_field", file=path, where=where, problem=problem) from None
    refuse_keys_in_prompts(found)
    return found
