"""The schema and its revisions."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from threading import Thread

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.operations import Operations
from alembic.script import ScriptDirectory
from sqlalchemy import Column, Engine, Integer, String, Table, create_engine, inspect, text

from pipelines.store import RunStore, StorageError
from pipelines.store.database import open_engine
from pipelines.store.migrations import FOLDER, alembic_config, check, migrating, upgrade
from pipelines.store.migrations.__main__ import main, revise
from pipelines.store.tables import Base, UtcDateTime, item_order
from tests.pipelines.store import examples
from tests.schema import migrated


@pytest.fixture(autouse=True)
def one_by_one() -> Iterator[None]:
    """Stores go through the migrations, as those of the product."""
    with migrated():
        yield


@pytest.fixture
def engine(url: str) -> Iterator[Engine]:
    engine = open_engine(url)
    yield engine
    engine.dispose()


def revision(engine: Engine) -> str | None:
    with engine.connect() as connection:
        return MigrationContext.configure(connection).get_current_revision()


def newest(engine: Engine) -> str | None:
    with engine.connect() as connection:
        return ScriptDirectory.from_config(alembic_config(connection)).get_current_head()


def test_an_empty_database_gets_the_newest_schema(engine: Engine, url: str):
    assert revision(engine) is None
    upgrade(engine)
    assert revision(engine) == newest(engine)
    assert set(inspect(engine).get_table_names()) == {
        "alembic_version",
        "annotation_claims",
        "annotation_events",
        "annotation_failed_links",
        "annotation_guidelines",
        "annotation_items",
        "annotation_links",
        "annotation_sessions",
        "annotators",
        "collection_documents",
        "collections",
        "evaluation_attempts",
        "evaluation_items",
        "evaluation_judgements",
        "evaluation_judges",
        "evaluation_scores",
        "evaluation_tasks",
        "evaluations",
        "events",
        "judgements",
        "judging_costs",
        "models",
        "outcomes",
        "profiles",
        "run_facets",
        "run_labels",
        "runs",
    }


def test_the_migrated_schema_is_that_of_the_tables(engine: Engine, url: str):
    upgrade(engine)
    with engine.connect() as connection:
        context = MigrationContext.configure(
            connection, opts={"compare_type": True, "compare_server_default": True}
        )
        assert compare_metadata(context, Base.metadata) == []
    inspector = inspect(engine)
    for table in Base.metadata.sorted_tables:
        assert inspector.get_pk_constraint(table.name)["name"] == table.primary_key.name
        for key in inspector.get_foreign_keys(table.name):
            assert key["name"] in {own.name for own in table.foreign_key_constraints}
            assert key.get("options") == {"ondelete": "CASCADE"}


def test_an_up_to_date_database_is_left_as_it_is(engine: Engine, url: str):
    for number in range(3):
        upgrade(engine)
        with closing(RunStore(url)) as store:
            store.create(f"r{number}", "me", examples.started(f"r{number}"))
            assert len(store.list("me")) == number + 1


def test_a_database_of_a_newer_release_is_not_touched(engine: Engine, url: str):
    upgrade(engine)
    with engine.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(StorageError, match="newer release"):
        RunStore(url)
    assert revision(engine) == "9999"


def test_a_database_from_before_the_first_release_is_refused(engine: Engine, url: str):
    upgrade(engine)
    check(engine)
    with engine.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '0008'"))
    for opening in (lambda: RunStore(url), lambda: check(engine)):
        with pytest.raises(StorageError, match="before the first release"):
            opening()
    assert revision(engine) == "0008"


def test_a_foreign_database_is_not_touched(engine: Engine, url: str):
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE events (mine INTEGER)"))
    with pytest.raises(StorageError):
        RunStore(url)
    assert inspect(engine).get_table_names() == ["events"]


def test_several_may_open_a_new_database_at_once(url: str):
    failures: list[BaseException] = []

    def open_and_write(number: int) -> None:
        try:
            with closing(RunStore(url)) as store:
                store.create(f"r{number}", "me", examples.started(f"r{number}"))
        except BaseException as error:
            failures.append(error)

    threads = [Thread(target=open_and_write, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    with closing(RunStore(url)) as store:
        assert len(store.list("me")) == 6


def test_rebuilding_a_table_keeps_what_refers_to_it(engine: Engine, url: str):
    with closing(RunStore(url)) as store:
        store.create("r1", "me", examples.started("r1"))
    with migrating(engine) as connection:
        operations = Operations(MigrationContext.configure(connection))
        with operations.batch_alter_table("runs", recreate="auto") as runs:
            runs.alter_column("question", type_=String(100_000))
    with engine.begin() as connection:
        assert connection.execute(text("SELECT count(*) FROM events")).scalar_one() == 1
        connection.execute(text("DELETE FROM runs"))
        assert connection.execute(text("SELECT count(*) FROM events")).scalar_one() == 0


def test_a_migration_that_fails_leaves_nothing(engine: Engine, url: str):
    upgrade(engine)

    def stumble() -> None:
        with migrating(engine) as connection:
            connection.execute(text("CREATE TABLE half (done INTEGER)"))
            raise RuntimeError("stumbled")

    with pytest.raises(RuntimeError, match="stumbled"):
        stumble()
    assert "half" not in inspect(engine).get_table_names()


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """A copy of the migrations, to write revisions into."""
    return Path(shutil.copytree(FOLDER, tmp_path / "100% copied", dirs_exist_ok=True))


def test_there_is_nothing_to_revise(copied: Path):
    before = sorted(copied.rglob("*.py"))
    assert revise("nothing new", copied) is None
    assert sorted(copied.rglob("*.py")) == before


def test_a_new_table_becomes_a_revision(copied: Path, tmp_path: Path):
    engine = create_engine(f"sqlite:///{tmp_path}/notes.db")
    columns = [Column("id", Integer, primary_key=True), Column("at", UtcDateTime())]
    table = Table("notes", Base.metadata, *columns)
    try:
        path = revise("Notes on runs", copied)
    finally:
        Base.metadata.remove(table)
    assert path is not None
    ours = sorted((FOLDER / "versions").glob("0*.py"))
    assert path.name == f"{int(ours[-1].name[:4]) + 1:04}_notes_on_runs.py"
    written = path.read_text()
    assert f'down_revision = "{ours[-1].name[:4]}"' in written.replace("'", '"')
    # A revision stays true when our own types change.
    assert "sa.DateTime(timezone=True)" in written
    assert "pipelines" not in written
    with engine.begin() as connection:
        command.upgrade(alembic_config(connection, copied), "head")
    assert "notes" in inspect(engine).get_table_names()
    engine.dispose()


def test_items_of_earlier_sessions_get_their_order(engine: Engine, url: str):
    """Begun ones come first, full ones need nobody, control items stand apart."""
    with migrating(engine) as connection:
        command.upgrade(alembic_config(connection), "0009")
    at = "2026-01-01 00:00:00+00:00"
    items = [  # labels, gold, text
        (0, None, "One."),
        (0, None, "Two."),
        (1, None, "One."),
        (2, None, "Three."),
        (0, '{"verdict": "yes"}', "Four."),
    ]
    with engine.begin() as connection:
        connection.execute(
            text(
                "INSERT INTO annotation_sessions (id, owner, name, created, closed, seed, overlap,"
                " guidelines, events, spec) VALUES"
                f" ('s', 'me', 'S', '{at}', NULL, 'x', 2, 1, 0, '{{}}')"
            )
        )
        for number, (labels, gold, said) in enumerate(items):
            connection.execute(
                text(
                    "INSERT INTO annotation_items (session, number, key, task, labels, probability,"
                    " gold, body, hidden) VALUES ('s', :number, :key, 'answer', :labels, NULL,"
                    " :gold, :body, '{}')"
                ),
                {
                    "number": number,
                    "key": f"k{number}",
                    "labels": labels,
                    "gold": gold,
                    "body": json.dumps({"text": said}),
                },
            )
        connection.execute(
            text(
                "INSERT INTO annotation_claims (session, item, annotator, slot, state, taken,"
                f" expires, revealed) VALUES ('s', 1, 0, 0, 'open', '{at}', '{at}', :no)"
            ),
            {"no": False},
        )
    upgrade(engine)
    with engine.connect() as connection:
        query = "SELECT priority, place, first, second FROM annotation_items ORDER BY number"
        found = connection.execute(text(query)).all()
    assert [one.priority for one in found] == [1_000_000, 0, 1, None, -1]
    for number, (one, (_, gold, said)) in enumerate(zip(found, items, strict=True)):
        expected = item_order(f"k{number}", {"text": said}, gold)
        assert {name: getattr(one, name) for name in ("place", "first", "second")} == {
            name: expected[name] for name in ("place", "first", "second")
        }


def test_the_command_says_what_it_did(capsys: pytest.CaptureFixture[str]):
    assert main([]) == 2
    assert "usage" in capsys.readouterr().err
    assert main(["nothing new"]) == 0
    assert "Nothing to write" in capsys.readouterr().out
