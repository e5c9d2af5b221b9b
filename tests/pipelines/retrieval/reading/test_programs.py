"""Files that different programs wrote: each is read, or refused with its reason.

`tests/data/documents/README.md` says which program wrote which.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from pipelines.retrieval.reading.files import read_file
from pipelines.retrieval.reading.parsed import RefusedError

FOLDER = Path(__file__).parents[3] / "data" / "documents"
TITLE = "Tides of the Bay of Fundy"
MOON = "most coasts see high water twice a day, a little later every time."
FUNNEL = "high and low water is sixteen metres, more than anywhere else on earth."
PANDAS = "大熊猫生活在四川的竹林里，主要吃竹子，一天要吃很多。"


@pytest.mark.parametrize(
    ("name", "title", "pages", "held"),
    [
        ("chromium.pdf", TITLE, 2, (MOON, FUNNEL, PANDAS)),
        ("fpdf2.pdf", TITLE, 2, (MOON, FUNNEL)),
        ("jspdf.pdf", TITLE, 2, (MOON, FUNNEL)),
        ("pdfkit.pdf", TITLE, 2, (MOON, FUNNEL)),
        ("reportlab.pdf", TITLE, 2, (MOON, FUNNEL)),
        ("typst.pdf", TITLE, 2, (MOON, FUNNEL)),
        ("matplotlib.pdf", TITLE, 1, ("Difference between high and low water in metres", "Ungava")),
        ("pdf-lib-500.pdf", "Five hundred pages", 500, ("This is page 317 of a long report.",)),
        ("docx-js.docx", TITLE, 0, (MOON, FUNNEL, PANDAS, "Place | Metres\nFundy | 16")),
        ("pandoc.docx", TITLE, 0, (MOON, FUNNEL, "Measured at Burntcoat Head.")),
        ("python-docx.docx", TITLE, 0, (MOON, FUNNEL, PANDAS)),
        ("word-tables.docx", "word-tables", 0, ("Above\nTop left | Top right\n", "\nBelow")),
        ("word-footnotes.docx", "word-footnotes", 0, ("Ouch.", "A tachyon walks into a bar.")),
    ],
)
def test_what_a_program_wrote_is_read(name: str, title: str, pages: int, held: tuple[str, ...]):
    reading = read_file(FOLDER / name, name)
    (part,) = reading.parts
    assert (reading.title, reading.remarks) == (title, ())
    assert len(part.breaks) == pages
    for words in held:
        assert words in part.text


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("pillow-scan.pdf", "scanned"),
        ("pypdf-encrypted.pdf", "encrypted"),
        ("libreoffice-picture.docx", "scanned"),
    ],
)
def test_what_holds_no_text_to_be_read_says_why(name: str, reason: str):
    with pytest.raises(RefusedError) as refused:
        read_file(FOLDER / name, name)
    assert refused.value.reason == reason


@pytest.mark.parametrize("name", ["chromium.pdf", "docx-js.docx"])
@pytest.mark.parametrize("part", [0.02, 0.5])
def test_a_file_that_was_cut_off_is_refused_as_damaged(tmp_path: Path, name: str, part: float):
    whole = (FOLDER / name).read_bytes()
    cut = tmp_path / "original"
    cut.write_bytes(whole[: int(len(whole) * part)])
    with pytest.raises(RefusedError) as refused:
        list(read_file(cut, name).parts)
    assert refused.value.reason == "broken"


def test_every_document_of_the_folder_is_tried():
    tried = Path(__file__).read_text(encoding="utf-8")
    kept = [path.name for path in FOLDER.iterdir() if path.suffix in (".pdf", ".docx")]
    assert len(kept) >= 10
    assert [name for name in kept if f'"{name}"' not in tried] == []
