"""Profiles: models, settings, prompts and calibrations under a name, and where they come from.

They hold no keys.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import Field
from sqlalchemy import select

from pipelines.base import Frozen
from pipelines.error_words import phrase
from pipelines.errors import failure
from pipelines.run.calibrations import Calibrations
from pipelines.run.events import ModelSpec
from pipelines.store.database import Database
from pipelines.store.tables import (
    MAX_NAME,
    ProfileRow,
    insert_or_replace,
    looks_like_key,
    refuse_keys,
    refuse_keys_in_prompts,
    to_json,
)

MAX_DESCRIPTION = 2_000
"""Characters of a profile's description."""

MAX_SIZE = 300_000
"""Characters of a whole profile as JSON."""


class ProfileOrigin(Frozen):
    """The study whose choice a profile holds.

    `evaluation` is its id and `data_set` what it was on; `system` is the system, `study` what was
    varied, `metric` what chose the values. `held_out` is the metric on items that chose nothing.
    `date` is the day, as YYYY-MM-DD.
    """

    evaluation: str = ""
    data_set: str = ""
    system: str = ""
    study: str = ""
    metric: str = ""
    held_out: float | None = None
    date: Annotated[str, Field(pattern=r"^(\d{4}-\d\d-\d\d)?$")] = ""


class Profile(Frozen):
    """Settings that runs can use: by method those that differ from its defaults.

    `models` are by role, where the profile names any; without their keys, with their prices.
    `prompts` are texts in place of shipped prompts, see `pipelines.prompts.Wording`. `calibrations`
    say what scores mean, by people's labels.
    """

    name: str
    description: Annotated[str, Field(max_length=MAX_DESCRIPTION)] = ""
    settings: dict[str, dict[str, Any]] = Field(default_factory=dict)
    models: dict[str, ModelSpec] = Field(default_factory=dict)
    prompts: Annotated[
        dict[str, dict[str, dict[str, str]]], Field(exclude_if=lambda prompts: not prompts)
    ] = Field(default_factory=dict)
    calibrations: Calibrations = ()
    origin: ProfileOrigin | None = None


class ProfileStore:
    """The profiles of every owner, in the database of a RunStore. Every method blocks.

    A profile belongs to its owner: for anyone else it does not exist (NotFoundError).
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def save(self, owner: str, profile: Profile, *, replace: bool = True) -> None:
        """Keep `profile` under its name, in place of one of the same name.

        Raises InvalidInputError if the name is empty or too long, if the whole is too large, if
        anything in it looks like a key, and without `replace` if the name is taken.
        """
        if not profile.name.strip() or len(profile.name) > MAX_NAME:
            raise failure("storage.no_profile_name", most=MAX_NAME)
        refuse_keys_in_profile(profile)
        body = to_json(profile, exclude={"name"})
        if len(json.dumps(body)) > MAX_SIZE:
            raise failure("storage.profile_too_large", most=f"{MAX_SIZE:,}")
        found = {"body": body, "saved": datetime.now(UTC)}
        with self._database.write() as session:
            if not replace and session.get(ProfileRow, (owner, profile.name)) is not None:
                raise failure("storage.profile_exists")
            insert_or_replace(session, ProfileRow, {"owner": owner, "name": profile.name}, found)

    def get(self, owner: str, name: str) -> Profile:
        """Return one profile. Raises NotFoundError."""
        with self._database.read() as session:
            row = session.get(ProfileRow, (owner, name))
            if row is None:
                raise failure("storage.no_profile")
            return Profile.model_validate({"name": row.name, **row.body})

    def list(self, owner: str) -> list[Profile]:
        """Return those of `owner`, by name."""
        row = ProfileRow
        query = select(row.name, row.body).where(row.owner == owner).order_by(row.name)
        with self._database.read() as session:
            return [
                Profile.model_validate({"name": name, **body})
                for name, body in session.execute(query)
            ]

    def edit(self, owner: str, name: str, profile: Profile) -> None:
        """Replace the profile called `name` by `profile`, which may have another name.

        Raises NotFoundError if there is none, and InvalidInputError as `save` does or if another
        profile has the new name.
        """
        self.get(owner, name)
        self.save(owner, profile, replace=profile.name == name)
        if profile.name != name:
            self.delete(owner, name)

    def delete(self, owner: str, name: str) -> None:
        """Delete a profile; runs that used it stay. Raises NotFoundError."""
        with self._database.write() as session:
            row = session.get(ProfileRow, (owner, name))
            if row is None:
                raise failure("storage.no_profile")
            session.delete(row)


def refuse_keys_in_profile(profile: Profile) -> None:
    """Raise InvalidInputError if anything in `profile` looks like a key."""
    for model in profile.models.values():
        refuse_keys(model)
    refuse_keys_in_prompts(profile.prompts)
    # Also in what people write, and in settings that hold text.
    if looks_like_key(json.dumps(profile.model_dump(mode="json"), ensure_ascii=False)):
        raise failure("storage.key_found", what=phrase("key.looks_like"))
