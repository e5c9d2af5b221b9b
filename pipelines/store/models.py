"""Saved model configurations, per owner. Keys are refused, not stored."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from sqlalchemy import delete, select
from sqlalchemy.dialects import postgresql, sqlite

from pipelines.errors import InvalidInputError, NotFoundError
from pipelines.run.spec import ModelSpec
from pipelines.store.database import Database
from pipelines.store.encoding import to_json
from pipelines.store.keys import refuse_keys
from pipelines.store.tables import ModelRow

MAX_NAME = 200
"""Characters of a model's name."""


class ModelStore:
    """The model configurations of every owner, in the database of a RunStore."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def save(self, owner: str, spec: ModelSpec) -> None:
        """Keep `spec` under its name, in place of one of the same name.

        Raises InvalidInputError if the name is empty or too long or if anything in the
        configuration looks like a key.
        """
        if not spec.name.strip() or len(spec.name) > MAX_NAME:
            raise InvalidInputError(
                "The model needs a name to be saved under.",
                remedy=f"Give it one of 1 to {MAX_NAME} characters.",
            )
        refuse_keys(spec)
        row = {
            "owner": owner,
            "name": spec.name,
            "spec": to_json(spec),
            "saved": datetime.now(UTC),
        }
        # The same statement, which each dialect spells in a module of its own.
        insert = postgresql.insert if self._database.dialect == "postgresql" else sqlite.insert
        statement = insert(ModelRow).values(row)
        statement = statement.on_conflict_do_update(
            index_elements=[ModelRow.owner, ModelRow.name],
            set_={"spec": statement.excluded.spec, "saved": statement.excluded.saved},
        )
        with self._database.write() as session:
            session.execute(statement)

    def delete(self, owner: str, name: str) -> None:
        """Forget a configuration. Raises NotFoundError if this owner has none of that name."""
        statement = (
            delete(ModelRow)
            .where(ModelRow.owner == owner, ModelRow.name == name)
            .returning(ModelRow.name)
        )
        with self._database.write() as session:
            if session.execute(statement).one_or_none() is None:
                raise NotFoundError(
                    "There is no saved model of that name.",
                    remedy="Choose one from the list of saved models.",
                )

    def delete_older_than(self, seconds: float) -> int:
        """Forget every configuration last saved more than `seconds` ago; how many."""
        statement = (
            delete(ModelRow)
            .where(ModelRow.saved < datetime.now(UTC) - timedelta(seconds=seconds))
            .returning(ModelRow.name)
        )
        with self._database.write() as session:
            return len(session.execute(statement).all())

    def list(self, owner: str) -> list[ModelSpec]:
        """The configurations of `owner`, by name."""
        query = select(ModelRow.spec).where(ModelRow.owner == owner).order_by(ModelRow.name)
        with self._database.read() as session:
            return [ModelSpec.model_validate(spec) for spec in session.scalars(query)]
