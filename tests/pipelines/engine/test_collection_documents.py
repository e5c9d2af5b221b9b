"""Files that different programs wrote, from the file to a search: indexed, or refused and why.

`tests/data/documents/README.md` says which program wrote which.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from pipelines.engine.library import Collections
from pipelines.retrieval.embedders import Embedders
from pipelines.store import RunStore
from tests.pipelines.retrieval.examples import WordEmbedder

ME = "a" * 48
FOLDER = Path(__file__).parents[2] / "data" / "documents"
REFUSED = {
    "pillow-scan.pdf": "scanned",
    "libreoffice-picture.docx": "scanned",
    "pypdf-encrypted.pdf": "encrypted",
    "cut.pdf": "broken",
    "cut.docx": "broken",
}
_SECONDS = 300
"""How long reading and indexing may take on a busy machine."""


@pytest.fixture
def collections(tmp_path: Path) -> Iterator[Collections]:
    with closing(RunStore(f"sqlite:///{tmp_path}/veriscope.db")) as store:
        embedder = WordEmbedder()
        opened = Collections(store.collections, tmp_path / "files", Embedders(lambda: embedder))
        yield opened
        opened.close()


def documents() -> dict[str, bytes]:
    """Every document of the folder, and two of them cut off in their middle."""
    kinds = (".pdf", ".docx")
    found = {one.name: one.read_bytes() for one in FOLDER.iterdir() if one.suffix in kinds}
    for whole, cut in (("chromium.pdf", "cut.pdf"), ("docx-js.docx", "cut.docx")):
        found[cut] = found[whole][: len(found[whole]) // 2]
    return found


async def test_each_is_indexed_and_found_or_refused_with_its_reason(collections: Collections):
    mine = collections.create(ME, "Real files")
    for name, data in documents().items():
        collections.add(ME, mine, name, data)
    job = collections.index(ME, mine)
    job.wait(_SECONDS)
    assert job.state == "done", job.error
    listed = collections.store.documents(ME, mine)
    assert {one.name: one.reason for one in listed if one.state == "refused"} == REFUSED
    assert {one.name for one in listed if one.state == "ready"} == documents().keys() - REFUSED
    pages = {one.name: one.pages for one in listed}
    assert pages["pdf-lib-500.pdf"] == 500
    assert collections.is_current(ME, mine)

    async def files(query: str) -> list[str]:
        """The files in which words of `query` were found, the best first."""
        found = (await collections.search(ME, mine, query, 20))["bm25"]
        assert found.error is None
        return [one.source.partition(",")[0] for one in found.passages]

    assert (await files("tachyon"))[0] == "word-footnotes.docx"
    assert (await files("Burntcoat Head"))[0] == "pandoc.docx"
    assert (await files("page 317"))[0] == "pdf-lib-500.pdf"
    written = {"chromium.pdf", "docx-js.docx", "python-docx.docx"}
    assert written <= set(await files("大熊猫吃竹子"))
