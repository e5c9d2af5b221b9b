"""Collections at the command line: made, searched, used by a question, deleted."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pytest
from filelock import FileLock

from pipelines.engine.library import Collections, Libraries
from pipelines.retrieval.reading.parsed import MAX_FILE
from tests.app.cli.conftest import CommandLine
from tests.pipelines.retrieval.reading.made import PAGE, encrypted_pdf, pdf
from tests.scripted.cli import write_script
from tests.scripted.web_wire import serve, shows
from tests.scripted.wire import Handler


@pytest.fixture
def run(tmp_path: Path, command_line: CommandLine, monkeypatch: pytest.MonkeyPatch) -> CommandLine:
    """Runs a command on a folder of its own, without an embedder."""
    made = Libraries.__init__
    monkeypatch.setattr(
        Libraries,
        "__init__",
        lambda self, indexes: made(self, indexes, find_embedder=lambda: None),
    )

    return partial(command_line, "--data", str(tmp_path / "data"))


@pytest.fixture
def papers(tmp_path: Path) -> Path:
    folder = tmp_path / "papers"
    (folder / "sub" / ".hidden").mkdir(parents=True)
    (folder / "whales.pdf").write_bytes(pdf(["Whales swim in the sea."]))
    (folder / "sub" / "cats.txt").write_text("Cats sleep most of the day.", encoding="utf-8")
    (folder / "sub" / ".hidden" / "no.txt").write_text("Hidden.", encoding="utf-8")
    (folder / "program.py").write_text("print()", encoding="utf-8")
    return folder


def test_a_folder_is_added_searched_and_deleted(run: CommandLine, papers: Path):
    status, out, err = run("library", "add", "Sea", str(papers))
    assert (status, out) == (0, "2 documents, 2 passages, 0 refused\n")
    assert "2 files added, 0 were there already." in err
    _, out, err = run("library", "add", "Sea", str(papers))
    assert "0 files added, 2 were there already." in err
    _, out, _ = run("library", "list", "--json")
    listed = json.loads(out)
    assert (listed["name"], listed["documents"], listed["passages"]) == ("Sea", 2, 2)
    _, out, _ = run("library", "list")
    assert out == "Sea  2 documents, 2 passages, embedder all-MiniLM-L6-v2\n"
    _, out, _ = run("library", "show", "Sea")
    assert out.splitlines() == [
        "sub/cats.txt  text 1 pages 1 passages",
        "whales.pdf  pdf 1 pages 1 passages",
    ]
    status, out, _ = run("library", "search", "Sea", "where whales swim", "--mode", "bm25")
    assert status == 0
    assert out.splitlines()[0] == "bm25:"
    assert "whales.pdf, p. 1" in out.splitlines()[1]
    status, out, _ = run("library", "search", "Sea", "whales", "--json", "-k", "1")
    found = [json.loads(line) for line in out.splitlines()]
    assert [one["title"] for one in found] == ["whales", "whales"]
    _, out, _ = run("library", "search", "Sea", "whales")
    assert "dense:\n  " in out
    assert run("library", "rename", "Sea", "Animals")[0] == 0
    assert run("library", "delete", "Animals", "whales.pdf")[0] == 0
    assert run("library", "search", "Animals", "whales", "--mode", "bm25")[1] == "bm25:\n"
    assert run("library", "delete", "Animals")[0] == 0
    assert run("library", "list")[1] == ""


def test_links_lead_nowhere_else(run: CommandLine, papers: Path, tmp_path: Path):
    (tmp_path / "secret.txt").write_text("The password is swordfish.", encoding="utf-8")
    (papers / "out.txt").symlink_to(tmp_path / "secret.txt")
    (papers / "in.txt").symlink_to(papers / "sub" / "cats.txt")
    (papers / "sub" / "up").symlink_to(tmp_path)
    assert run("library", "add", "Sea", str(papers))[0] == 0
    _, out, _ = run("library", "show", "Sea")
    assert [line.split()[0] for line in out.splitlines()] == [
        "in.txt",
        "sub/cats.txt",
        "whales.pdf",
    ]


def test_what_fits_is_indexed(run: CommandLine, papers: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("pipelines.store.collections.MAX_DOCUMENTS", 1)
    status, out, err = run("library", "add", "Sea", str(papers))
    assert (status, out) == (2, "1 documents, 1 passages, 0 refused\n")
    assert "1 documents at most" in err
    assert "sub/cats.txt" in run("library", "search", "Sea", "cats", "--mode", "bm25")[1]


def test_an_unchanged_folder_is_asked_while_it_is_being_indexed(
    run: CommandLine, papers: Path, tmp_path: Path
):
    scripted = ["--profile", "scripted", "--model", str(write_script(tmp_path / "script.json"))]
    ask = [
        "ask",
        "Where do whales swim?",
        "--method",
        "rag",
        *scripted,
        "--evidence",
        "bm25",
        "--json",
    ]
    assert "whales.pdf, p. 1" in run(*ask, "--library", str(papers))[1]
    (place,) = (tmp_path / "data" / "collections").iterdir()
    with FileLock(place / "indexing.lock"):
        assert "whales.pdf, p. 1" in run(*ask, "--library", str(papers))[1]


def test_a_refused_file_is_named_and_the_others_are_there(run: CommandLine, papers: Path):
    (papers / "locked.pdf").write_bytes(encrypted_pdf("secret"))
    status, out, _ = run("library", "add", "Sea", str(papers))
    assert status == 3
    assert out.splitlines() == [
        "locked.pdf: It needs a password. Save a copy without a password, and add that.",
        "2 documents, 2 passages, 1 refused",
    ]
    assert "locked.pdf  refused: It needs a password." in run("library", "show", "Sea")[1]


def test_of_a_file_that_is_too_large_only_the_beginning_is_read(
    run: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    large = tmp_path / "large.txt"
    with large.open("wb") as file:
        file.truncate(MAX_FILE + 2**20)
    read: list[int] = []
    checked = Collections._checked
    monkeypatch.setattr(
        Collections, "_checked", lambda *given: read.append(len(given[-1])) or checked(*given)
    )
    status, out, err = run("library", "add", "Sea", str(large))
    assert (status, out, read) == (2, "", [MAX_FILE + 1])
    assert "large.txt" in err


def test_the_pages_of_a_list_are_fetched_read_and_found(run: CommandLine, tmp_path: Path):
    def respond(handler: Handler) -> None:
        (shows(PAGE) if handler.path == "/tides" else shows("gone", 404))(handler)

    addresses = tmp_path / "addresses.txt"
    with serve() as wire:
        wire.answers(respond)
        addresses.write_text(f"# pages\n{wire.url}/tides\n{wire.url}/gone\n", encoding="utf-8")
        status, out, err = run("library", "add", "Web", "--urls", str(addresses))
        again = run("library", "add", "Web", "--urls", str(addresses))
        # What was read is not fetched again; what was refused is.
        assert [seen.path for seen in wire.seen] == ["/tides", "/gone", "/gone"]
    refused, counted = out.splitlines()
    assert "2 addresses added, 0 were there already." in err
    assert refused == (
        f"{wire.url}/gone: The page could not be fetched (status 404)."
        " Check the address, then try again."
    )
    assert (status, counted.startswith("1 documents"), counted[-9:]) == (3, True, "1 refused")
    assert "1 addresses added, 1 were there already." in again[2]
    _, out, _ = run("library", "search", "Web", "Bay of Fundy", "--mode", "bm25", "--json")
    found = [json.loads(line) for line in out.splitlines()]
    assert found[0]["title"] == "Tides"
    assert {one["url"] for one in found} == {f"{wire.url}/tides"}


def test_mistakes_say_what_to_do(run: CommandLine, tmp_path: Path):
    (tmp_path / "empty").mkdir()
    # Its first line is an address behind the mark with which some programs begin a text.
    marked = tmp_path / "marked.txt"
    marked.write_text("http://127.0.0.1/tides\nelsewhere\n", encoding="utf-8-sig")
    for arguments, words in (
        (("add", "Sea"), "There is nothing to add."),
        (("add", "Sea", str(tmp_path / "nothing")), "no file or folder"),
        (("add", "Sea", str(tmp_path / "empty")), "no file of a kind"),
        (("add", "Sea", "--urls", str(tmp_path / "none")), "cannot be read"),
        (("add", "Sea", "--urls", str(marked)), "elsewhere"),
        (("add", "Sea", str(tmp_path), "--embedder-url", "http://x/v1"), "needs the name"),
        (("show", "Lost"), "There is no such collection."),
        (("search", "Lost", "whales"), "There is no such collection."),
        (("delete", "Lost"), "There is no such collection."),
    ):
        status, out, err = run("library", *arguments)
        assert status in (1, 2), arguments
        assert words in err
        assert out == ""


def test_a_question_is_answered_from_a_collection_or_a_folder(
    run: CommandLine, papers: Path, tmp_path: Path
):
    scripted = ["--profile", "scripted", "--model", str(write_script(tmp_path / "script.json"))]
    run("library", "add", "Sea", str(papers))
    ask = ["ask", "Where do whales swim?", "--method", "rag", *scripted, "--json"]
    for library in ("Sea", str(papers)):
        _, out, _ = run(*ask, "--library", library, "--evidence", "bm25")
        events = [json.loads(line) for line in out.splitlines()]
        evidence = events[0]["spec"]["evidence"]
        assert evidence["collection"]
        assert len(evidence["edition"]) == 16
        retrieved = next(one for one in events if one["kind"] == "retrieved")
        assert retrieved["passages"][0]["source"] == "whales.pdf, p. 1"
    # A folder is taken as it is now.
    (papers / "whales.pdf").unlink()
    _, out, _ = run(*ask, "--library", str(papers), "--evidence", "bm25")
    retrieved = next(one for one in map(json.loads, out.splitlines()) if one["kind"] == "retrieved")
    assert [one["source"] for one in retrieved["passages"]] != ["whales.pdf, p. 1"]
    status, _, err = run(*ask, "--library", "Lost")
    assert (status, "There is no library 'Lost'" in err) == (1, True)
