"""Profiles: what is in one, what it still needs, and what differs from the defaults."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from components.base.elements import Column, TableRow, part, sign, table
from components.base.html import Child, Html, tag
from components.base.words import Catalogue, named, setting_key
from components.models import kind_label, model_address
from components.prompts import prompt_diffs
from components.run.compare import setting_words
from components.run.spending import calibrations_table
from pipelines.engine.profiles import Lack, ProfileTemplate, idle_calibrations, setting_rows
from pipelines.models.providers import ModelSpec
from pipelines.prompts import own_prompts
from pipelines.store.profiles import Profile, ProfileOrigin

_NONE = "–"


def profile_view(profile: Profile, lacking: Sequence[Lack], in_use: bool, t: Catalogue) -> str:
    """Return a profile in the list: its name, what it is for, what is in it, what it
    still needs.
    """
    used = tag("span.vs-chip", t("profiles.in_use")) if in_use else None
    origin = profile.origin
    return tag(
        "div.vs-run.vs-profile",
        tag("p.vs-profile-name", tag("bdi", profile.name), used),
        tag("p", tag("bdi", profile.description)) if profile.description else None,
        tag("p.vs-note", contents_words(profile, t)),
        tag("p.vs-note", _origin_words(origin, t)) if origin else None,
        lacks_view(lacking, t),
    )


def _origin_words(origin: ProfileOrigin, t: Catalogue) -> str:
    return t("profile.from", study=origin.study, data=origin.data_set, date=origin.date)


def contents_words(profile: Profile, t: Catalogue) -> str:
    """Return how much is in a profile, in one line."""
    settings = sum(map(len, profile.settings.values()))
    counts = {
        "models": len(profile.models),
        "settings": settings,
        "prompts": len(own_prompts(profile.prompts)),
        "calibrations": len(profile.calibrations),
        "prices": len({one.name for one in profile.models.values() if one.price is not None}),
    }
    said = [t(f"profiles.count.{name}", count=count) for name, count in counts.items() if count]
    return " · ".join(said) or t("profiles.empty")


def lacks_view(lacking: Sequence[Lack], t: Catalogue) -> Html | None:
    """Return what the models still need, a line each; None where they need nothing."""
    lines: list[Html] = []
    for one in lacking:
        role = named("role", one.role, t)
        words = t(f"profiles.lacks.{one.what}", role=role, name=one.model.name)
        lines.append(tag("li.vs-profile-lack", sign("!"), tag("span", words)))
    return tag("ul.vs-profile-lacks", lines) if lines else None


def profile_details(profile: Profile, t: Catalogue) -> str:
    """Return everything in a profile: models with roles and prices, what differs, calibrations."""
    parts = [
        _models(profile.models, t),
        _settings(profile, t),
        _calibrations(profile, t),
        _prompts(profile, t),
    ]
    return tag("div.vs-run.vs-profile-parts", parts)


def _models(models: Mapping[str, ModelSpec], t: Catalogue) -> Html | None:
    if not models:
        return None
    columns = [
        t("report.role"),
        t("report.model"),
        t("report.kind_of_model"),
        t("models.address"),
        t("profiles.price"),
    ]
    rows = (
        TableRow(
            role,
            [
                named("role", role, t),
                tag("bdi", " · ".join(filter(None, dict.fromkeys((one.name, model_address(one)))))),
                kind_label(one.kind, t),
                tag("bdi", one.base_url or _NONE),
                tag("span.vs-num", price_words(one, t)),
            ],
        )
        for role, one in models.items()
    )
    title = t("profiles.models")
    return part(title, table(title, columns, rows))


def price_words(model: ModelSpec, t: Catalogue) -> str:
    """Return what a million tokens cost, read and written; a dash where that is not known."""
    price = model.price
    if price is None:
        return _NONE
    amounts = {"read": f"{price.read:g}", "written": f"{price.written:g}"}
    return t("profiles.price.of", currency=price.currency, **amounts)


def _settings(profile: Profile, t: Catalogue) -> Html | None:
    rows: list[TableRow] = []
    for method, field, value, usual in setting_rows(profile):
        key = setting_key(method, field, t)
        cells: list[Child] = [
            named("method", method, t),
            named(key.rpartition(".")[0], field, t),
            tag("span.vs-strong", setting_words(method, field, value, t)),
            tag("span.vs-num", setting_words(method, field, usual, t)),
        ]
        rows.append(TableRow(f"{method}-{field}", cells))
    if not rows:
        return None
    columns = [
        t("profiles.method"),
        t("report.setting"),
        t("profiles.value"),
        Column(t("report.default"), "vs-note"),
    ]
    title = t("profiles.settings")
    return part(title, table(title, columns, rows))


def _calibrations(profile: Profile, t: Catalogue) -> Html | None:
    found = calibrations_table(profile.calibrations, idle_calibrations(profile), t)
    return None if found is None else part(t("calibration.title"), found)


def _prompts(profile: Profile, t: Catalogue) -> Html | None:
    drawn = prompt_diffs(profile.prompts, t)
    return part(t("profiles.prompts"), drawn) if drawn else None


def template_view(one: ProfileTemplate, lacking: Sequence[Lack], t: Catalogue) -> str:
    """Return a built-in template: its name, what it is for, its models, what it still needs."""
    models = t("list.separator").join(
        t("profiles.role_of", role=named("role", role, t), name=spec.name)
        for role, spec in one.models.items()
    )
    return tag(
        "div.vs-run.vs-profile",
        tag("p.vs-profile-name", t(f"profiles.template.{one.name}")),
        tag("p", t(f"profiles.template.{one.name}.note")),
        tag("p.vs-note", models),
        lacks_view(lacking, t) or tag("p.vs-note", t("profiles.complete")),
    )
