"""What is told about models that can be downloaded, and about their downloads."""

from __future__ import annotations

import pytest

from components.base.words import Catalogue
from components.models import (
    catalogue_table,
    download_progress,
    entry_facts,
    gigabytes,
    speed_words,
)
from pipelines.models.catalogue import CatalogueEntry, catalogue
from pipelines.models.download import DownloadState
from tests.components.html_tree import read

MEGA = 1_000_000


@pytest.mark.parametrize(
    ("size", "shown"),
    [
        (639_446_688, "0.64 GB"),
        (1_834_426_016, "1.8 GB"),
        (8_060_917_568, "8.1 GB"),
        (12e9, "12 GB"),
    ],
)
def test_sizes_have_two_digits(size: float, shown: str):
    assert gigabytes(size) == shown


@pytest.mark.parametrize("entry", catalogue(), ids=lambda entry: entry.name)
def test_a_model_tells_what_it_takes(entry: CatalogueEntry, t: Catalogue):
    page = read(entry_facts(entry, "", t))
    told = page.text()
    assert entry.name in told
    assert entry.licence in told
    assert gigabytes(entry.size) in told
    assert gigabytes(entry.memory * 1e9) in told
    assert t("language.zh") in told
    assert t(f"catalogue.note.{entry.note}") in told


@pytest.mark.parametrize(
    ("tokens", "shown"), [(0.437, "0.4"), (4.96, "5"), (9.7, "9.7"), (14.2, "14"), (123.4, "123")]
)
def test_a_speed_is_an_estimate(tokens: float, shown: str):
    said = speed_words(tokens, Catalogue("en"), measuring=False)
    assert said == f"Speed on this machine: about {shown} tokens per second (rough estimate)"


def test_a_speed_that_is_not_known_is_said_to_be_so():
    t = Catalogue("en")
    assert speed_words(None, t, measuring=True) == "Speed on this machine: being estimated"
    assert speed_words(None, t, measuring=False) == "Speed on this machine: not known"


def test_a_download_under_way(t: Catalogue):
    state = DownloadState("running", 500 * MEGA, 2000 * MEGA, speed=50.0 * MEGA)
    page = read(download_progress(state, t))
    bar = page.one("progress")
    assert bar.attributes["value"] == "0.2500"
    assert bar.attributes["aria-label"] == t("catalogue.stage.running")
    told = page.text()
    assert "0.50 GB" in told
    assert "2.00 GB" in told
    assert t("catalogue.rate", size="50 MB") in told
    assert t("catalogue.left", value=t("unit.seconds", value="30")) in told


@pytest.mark.parametrize("stage", ["waiting", "asking", "checking", "paused", "failed", "done"])
def test_every_stage_has_its_words(stage: str, t: Catalogue):
    state = DownloadState(stage, 1, 0 if stage == "asking" else 10)  # type: ignore[arg-type]
    page = read(download_progress(state, t))
    assert t(f"catalogue.stage.{stage}") in page.text()
    bars = page.all("progress")
    assert len(bars) == (0 if stage == "done" else 1)
    # How far it is is not known while the hub is asked.
    assert all(("value" in bar.attributes) == (stage != "asking") for bar in bars)


def test_all_of_them_as_a_list(t: Catalogue):
    page = read(catalogue_table(catalogue(), t))
    assert len(page.one("tbody").all("tr")) == len(catalogue())
    assert page.all("button") == []
