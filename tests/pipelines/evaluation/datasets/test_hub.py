"""Data sets of the hub. The library `datasets` is replaced by a stand-in: it is optional.

The stand-in has what the reader uses of the real one: the two functions, rows with features, and
the names of its errors.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import pytest

from pipelines.errors import InvalidInputError, NotFoundError, OfflineError
from pipelines.evaluation.datasets import open_data_set, opening
from pipelines.evaluation.datasets.opening import HubAddress


class ClassLabel(NamedTuple):
    names: list[str]


class Text(NamedTuple):
    pass


class Loaded:
    """A split as the library gives it: rows, their number, and the kinds of its columns."""

    features = {"question": Text(), "answer": Text(), "label": ClassLabel(["ok", "bad"])}  # noqa: RUF012

    def __init__(self, rows: list[dict[str, Any]]) -> None:
        self._rows = rows
        self.num_rows = len(rows)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self._rows)


Install = Callable[..., list[tuple[Any, ...]]]


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Install:
    def installed(
        *splits: str, rows: int = 2, error: Exception | None = None
    ) -> list[tuple[Any, ...]]:
        asked: list[tuple[Any, ...]] = []

        def load_dataset(name: str, config: str | None, *, split: str) -> Loaded:
            asked.append((name, config, split))
            if error is not None:
                raise error
            return Loaded(
                [
                    {"question": f"who is {number}?", "answer": ["Ann"], "label": number % 2}
                    for number in range(rows)
                ]
            )

        module = ModuleType("datasets")
        vars(module).update(
            load_dataset=load_dataset,
            get_dataset_split_names=lambda _name, _config: list(splits),
        )
        monkeypatch.setitem(sys.modules, "datasets", module)
        return asked

    return installed


@pytest.mark.parametrize(
    ("address", "parts"),
    [
        ("hub:squad", ("squad", None, None)),
        ("hub:rajpurkar/squad_v2", ("rajpurkar/squad_v2", None, None)),
        ("hub:a/b@test", ("a/b", None, "test")),
        ("hub:a/b.c/plain-text@train[:10%]", ("a/b.c", "plain-text", "train[:10%]")),
    ],
)
def test_an_address_names_data_set_configuration_and_split(address: str, parts: tuple):
    assert HubAddress.of(address) == parts


@pytest.mark.parametrize("address", ["hub:", "hub:a/b/c/d", "hub:../../a", "hub:a b", "hub:a@"])
def test_other_addresses_are_refused(address: str):
    with pytest.raises(InvalidInputError, match="hub:OWNER/NAME@SPLIT"):
        open_data_set(address)


def test_a_folder_of_that_name_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "owner" / "nq").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidInputError, match="'owner/nq' is a folder or a file here"):
        open_data_set("hub:owner/nq")


@pytest.mark.parametrize(
    ("splits", "chosen"),
    [(("train", "test", "validation"), "validation"), (("train", "test"), "test"), (("x",), "x")],
)
def test_a_split_for_evaluation_is_preferred(
    install: Install, splits: tuple[str, ...], chosen: str
):
    asked = install(*splits)
    data_set = open_data_set("hub:owner/nq")
    assert asked == [("owner/nq", None, chosen)]
    assert data_set.name == f"owner/nq@{chosen}"
    # It is recognised by its columns as a file is.
    assert data_set.source.startswith("Kwiatkowski")
    assert data_set.items[0].answers == ("Ann",)


def test_the_split_and_the_configuration_are_passed_on(install: Install):
    asked = install()
    open_data_set("hub:owner/nq/english@test", limit=1)
    assert asked == [("owner/nq", "english", "test")]


def test_numbers_of_classes_become_their_names(install: Install):
    install()
    table = opening.read_hub(HubAddress("owner/nq", split="test"))
    assert [row["label"] for row in table.rows] == ["ok", "bad"]


def named_error(name: str, *bases: type[Exception]) -> Exception:
    """An error of the library, which is told by the name of its class."""
    return type(name, bases or (Exception,), {})("first line\nsecond line")


@pytest.mark.parametrize(
    ("error", "kind", "said"),
    [
        (named_error("DatasetNotFoundError", FileNotFoundError), NotFoundError, "without signing"),
        (ConnectionError("no route"), OfflineError, "download the files elsewhere"),
        (named_error("ConnectError"), OfflineError, "cannot be reached"),
        (named_error("OfflineModeIsEnabled", ConnectionError), OfflineError, "cannot be reached"),
        (ValueError("Unknown split"), InvalidInputError, "ValueError: Unknown split"),
        (RuntimeError("scripts\nmore"), InvalidInputError, r"RuntimeError: scripts\)"),
    ],
)
def test_failures_say_what_to_do(
    install: Install, error: Exception, kind: type[Exception], said: str
):
    install(error=error)
    with pytest.raises(kind, match=said):
        open_data_set("hub:owner/nq@test")


def test_a_split_without_rows_or_with_too_many_is_refused(
    install: Install, monkeypatch: pytest.MonkeyPatch
):
    install(rows=0)
    with pytest.raises(InvalidInputError, match="has no rows"):
        open_data_set("hub:owner/nq@test")
    install(rows=3)
    monkeypatch.setattr(opening, "MAXIMUM_ROWS", 2)
    with pytest.raises(InvalidInputError, match=r"has 3 rows.*test\[:2\]"):
        open_data_set("hub:owner/nq@test")


def test_without_the_library_it_is_named(monkeypatch: pytest.MonkeyPatch):
    # None in the table of modules means that the import fails.
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(InvalidInputError, match=r"pip install -r requirements-hub\.txt"):
        open_data_set("hub:owner/nq@test")
