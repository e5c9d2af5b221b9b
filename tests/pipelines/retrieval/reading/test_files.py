"""Every kind of file is read, or refused with its reason."""

from __future__ import annotations

import io
import sys
import zipfile
from pathlib import Path
from typing import get_args

import pytest
from pypdf import PdfReader, PdfWriter
from pypdf.generic import (
    ArrayObject,
    DictionaryObject,
    NameObject,
    NumberObject,
    TextStringObject,
)

from pipelines.error_words import entries
from pipelines.errors import failure
from pipelines.retrieval.reading import parsed
from pipelines.retrieval.reading.files import read_file
from pipelines.retrieval.reading.parsed import DocumentPart, ParsedFile, RefusedError
from pipelines.retrieval.reading.pdf import flowing
from tests.pipelines.retrieval.reading.made import (
    PAGE,
    archive,
    encrypted_pdf,
    glyphs,
    pdf,
    replaced,
    word,
    word_of,
)

OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600)
STRICT = b"<w:document xmlns:w='http://purl.oclc.org/ooxml/wordprocessingml/main'/>"
BOMB = b"<?xml version='1.0'?><!DOCTYPE a [<!ENTITY x 'ha'>]><w:document/>"


def read(tmp_path: Path, name: str, data: bytes) -> tuple[ParsedFile, list[DocumentPart]]:
    path = tmp_path / "original"
    path.write_bytes(data)
    reading = read_file(path, name)
    return reading, list(reading.parts)


def refusal(tmp_path: Path, name: str, data: bytes) -> RefusedError:
    with pytest.raises(RefusedError) as refused:
        read(tmp_path, name, data)
    # Its words know what to say with its facts.
    failure(f"reading.{refused.value.reason}", **refused.value.facts)
    return refused.value


def test_a_pdf_file_page_by_page(tmp_path: Path):
    pages = ["Cats sleep most of the day.", "", "Whales live in the sea (mostly)."]
    reading, (part,) = read(tmp_path, "animals.pdf", pdf(pages, title="On animals"))
    assert (reading.kind, reading.title) == ("pdf", "On animals")
    assert part.breaks == (0, 29, 31)
    assert part.text[31:] == "Whales live in the sea (mostly)."
    assert (reading.remarks, dict(reading.facts)) == (("silent_pages",), {"silent": 1, "pages": 3})


def test_lines_of_a_pdf_page_flow(tmp_path: Path):
    lines = (
        "The tide is the rise of the sea that the",
        "moon causes. It turns twice a day in most pla-",
        "ces.",
    )
    _, (part,) = read(tmp_path, "tide.pdf", pdf(["\n".join(lines)]))
    assert part.text == (
        "The tide is the rise of the sea that the moon causes. It turns twice a day in most places."
    )


def test_signs_that_only_a_font_needs_are_letters_and_characters():
    # A ligature, and radicals in the place of 大, 山 and 水.
    assert flowing("The con\ufb01guration is e\ufb03cient.") == "The configuration is efficient."
    assert flowing("\u2f24\u2f2d流\n\u2f54。") == "大山流水。"


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ("a most extra-\nordinary tide", "a most extraordinary tide"),
        ("Stratford-upon-\nAvon", "Stratford-upon-Avon"),
        ("a state-of-the-\nart ship", "a state-of-the-art ship"),
        ("from 1914-\n1918 on", "from 1914-1918 on"),
    ],
)
def test_hyphens_at_the_ends_of_lines(lines: str, said: str):
    assert flowing(lines) == said


@pytest.mark.parametrize(("rise", "said"), [(5, "Some 10⁸ metres"), (-3, "Some 108 metres")])
def test_a_small_number_above_the_line_of_a_pdf_page(tmp_path: Path, rise: int, said: str):
    small = f"/F1 7 Tf 1 0 0 1 112 {720 + rise} Tm (8) Tj"
    data = pdf([f"Some 10) Tj {small} /F1 11 Tf 1 0 0 1 116 720 Tm ( metres"], raw=True)
    _, (part,) = read(tmp_path, "a.pdf", data)
    assert part.text == said


def test_what_was_written_into_a_form_of_a_pdf_file(tmp_path: Path):
    writer = PdfWriter(PdfReader(io.BytesIO(pdf(["The bay is deep."]))))
    for number, told in enumerate(
        (
            {"/Subtype": "/Widget", "/T": "Name", "/V": "Ann Lee"},
            {"/Subtype": "/Widget", "/T": "Secret", "/V": "unseen", "/F": 2},
            {"/Subtype": "/Widget", "/T": "Empty", "/V": " "},
            {"/Subtype": "/FreeText", "/Contents": "A remark."},
            {"/Subtype": "/Text", "/Contents": "unseen"},
        )
    ):
        note = DictionaryObject({NameObject("/Rect"): ArrayObject([NumberObject(number)] * 4)})
        for name, value in told.items():
            if isinstance(value, int):
                note[NameObject(name)] = NumberObject(value)
            else:
                note[NameObject(name)] = (
                    NameObject(value) if value.startswith("/") else TextStringObject(value)
                )
        notes = writer.pages[0].setdefault(NameObject("/Annots"), ArrayObject())
        notes.append(note)
    out = io.BytesIO()
    writer.write(out)
    _, (part,) = read(tmp_path, "form.pdf", out.getvalue())
    assert part.text == "The bay is deep.\nName: Ann Lee\nA remark."


def test_a_pdf_file_that_only_forbids_changes_is_read(tmp_path: Path):
    _, (part,) = read(tmp_path, "open.pdf", encrypted_pdf(""))
    assert part.text == "A secret of the archive is kept here."


def test_five_hundred_pages(tmp_path: Path):
    pages = [f"This is page {number} of a long report." for number in range(1, 501)]
    reading, (part,) = read(tmp_path, "long.pdf", pdf(pages))
    assert len(part.breaks) == 500
    assert part.text[part.breaks[499] :] == "This is page 500 of a long report."
    assert reading.remarks == ()


def test_a_docx_file_with_a_table(tmp_path: Path):
    data = word(
        "Pandas eat bamboo.", "大熊猫吃竹子。", table=[["Place", "Height"], ["Fundy", "16"]]
    )
    reading, (part,) = read(tmp_path, "panda.docx", data)
    assert (reading.kind, reading.title) == ("docx", "panda")
    assert part.text.split("\n") == [
        "Pandas eat bamboo.",
        "大熊猫吃竹子。",
        "Place | Height",
        "Fundy | 16",
    ]
    assert read(tmp_path, "x.docx", word("Text.", title="Bears"))[0].title == "Bears"


def test_what_word_files_hide_and_what_they_only_seem_to_hold(tmp_path: Path):
    box = "<w:txbxContent><w:p><w:r><w:t>In a box.</w:t></w:r></w:p></w:txbxContent>"
    body = f"""
        <w:sdt><w:sdtContent><w:p><w:r><w:t>In a control.</w:t></w:r></w:p></w:sdtContent></w:sdt>
        <w:p><w:ins><w:r><w:t>Inserted.</w:t></w:r></w:ins><w:r><w:tab/><w:t>Kept.</w:t></w:r>
        <w:del><w:r><w:delText>Deleted.</w:delText></w:r></w:del></w:p>
        <w:p><w:r><w:t>Beside.</w:t></w:r><mc:AlternateContent>
        <mc:Choice Requires="wps"><w:drawing>{box}</w:drawing></mc:Choice>
        <mc:Fallback><w:pict>{box}</w:pict></mc:Fallback></mc:AlternateContent></w:p>
        <w:tbl><w:tr><w:tc><w:p><w:r><w:t>Outer</w:t></w:r></w:p>
        <w:tbl><w:tr><w:tc><w:p><w:r><w:t>Inner</w:t></w:r></w:p></w:tc></w:tr></w:tbl></w:tc>
        <w:tc><w:p><w:r><w:t>Last</w:t></w:r></w:p></w:tc></w:tr></w:tbl>"""
    _, (part,) = read(tmp_path, "a.docx", word_of(body))
    assert part.text.split("\n") == [
        "In a control.",
        "Inserted.\tKept.",
        "Beside.",
        "In a box.",
        "Outer Inner | Last",
    ]


LISTED = "<w:pPr><w:numPr><w:ilvl w:val='0'/></w:numPr></w:pPr>"


@pytest.mark.parametrize(
    ("body", "lines"),
    [
        # A control within a line, one that holds a cell, and one that nobody has filled in.
        (
            "<w:p><w:r><w:t>Born in </w:t></w:r><w:sdt><w:sdtPr><w:alias w:val='Town'/></w:sdtPr>"
            "<w:sdtContent><w:r><w:t>Hope</w:t></w:r></w:sdtContent></w:sdt></w:p>",
            ["Born in Hope"],
        ),
        (
            "<w:tbl><w:tr><w:sdt><w:sdtContent><w:tc><w:p><w:r><w:t>Cell</w:t></w:r></w:p></w:tc>"
            "</w:sdtContent></w:sdt><w:tc><w:p><w:r><w:t>Other</w:t></w:r></w:p></w:tc></w:tr></w:tbl>",
            ["Cell | Other"],
        ),
        (
            "<w:p><w:r><w:t>Name:</w:t></w:r><w:sdt><w:sdtPr><w:showingPlcHdr/></w:sdtPr>"
            "<w:sdtContent><w:r><w:t>Click here.</w:t></w:r></w:sdtContent></w:sdt></w:p>",
            ["Name:"],
        ),
        (
            f"<w:tbl><w:tr><w:tc><w:p><w:r><w:t>Has:</w:t></w:r></w:p><w:p>{LISTED}<w:r><w:t>one</w:t>"
            f"</w:r></w:p><w:p>{LISTED}<w:r><w:t>two</w:t></w:r></w:p></w:tc></w:tr></w:tbl>",
            ["Has: one; two"],
        ),
    ],
)
def test_content_controls_and_lists_in_cells(tmp_path: Path, body: str, lines: list[str]):
    _, (part,) = read(tmp_path, "a.docx", word_of(body))
    assert part.text.split("\n") == lines


def cell(*inside: str, merged: str = "", width: int = 1) -> str:
    """A cell with paragraphs; `merged` says that it goes on from above or begins to."""
    span = f"<w:vMerge{merged}/>" if merged else ""
    look = f"<w:tcPr><w:gridSpan w:val='{width}'/>{span}</w:tcPr>"
    return f"<w:tc>{look}{''.join(inside) or '<w:p/>'}</w:tc>"


def said(text: str, look: str = "", paragraph: str = "") -> str:
    return f"<w:p>{paragraph}<w:r><w:rPr>{look}</w:rPr><w:t>{text}</w:t></w:r></w:p>"


def table(*rows: str) -> str:
    return f"<w:tbl>{''.join(f'<w:tr>{row}</w:tr>' for row in rows)}</w:tbl>"


BULLET = "<w:pPr><w:pStyle w:val='ListBullet'/></w:pPr>"
RAISED = "<w:vertAlign w:val='superscript'/>"


@pytest.mark.parametrize(
    ("body", "lines"),
    [
        # An empty cell keeps its place, and a cell over several rows is in each.
        (table(cell() + cell(said("2019")) + cell(said("2020")),
               cell(said("Sales")) + cell() + cell(said("5"))), ["| 2019 | 2020", "Sales |  | 5"]),
        (table(cell(said("Fundy"), merged=" w:val='restart'") + cell(said("16")),
               cell(merged=" w:val='continue'") + cell(said("18"))), ["Fundy | 16", "Fundy | 18"]),
        (table(cell(said("Both"), width=2) + cell(said("One"))), ["Both |  | One"]),
        (table("<w:trPr><w:del/></w:trPr>" + cell(said("Gone")), cell(said("Kept"))), ["Kept"]),
        (table(cell(said("one", paragraph=BULLET), said("two", paragraph=BULLET), said("After")))
         , ["one; two; After"]),
        (table(cell(said("Outer"), table(cell(said("a")) + cell(said("b")), cell(said("c"))))),
         ["Outer a, b; c"]),
        (f"<w:p><w:r><w:t>10</w:t></w:r><w:r><w:rPr>{RAISED}</w:rPr><w:t>-6</w:t></w:r></w:p>",
         ["10⁻⁶"]),
        (f"<w:p><w:r><w:t>1</w:t></w:r><w:r><w:rPr>{RAISED}</w:rPr><w:t>st</w:t></w:r></w:p>",
         ["1st"]),
        (said("Hidden", "<w:vanish/>") + said("Struck", "<w:strike/>") + said("Shown", "<w:strike"
         " w:val='0'/>"), ["Shown"]),
        ("<w:p><w:r><w:sym w:font='Symbol' w:char='F061'/><w:t> is an angle</w:t></w:r></w:p>",
         ["α is an angle"]),
        ("<w:p><w:r><w:ruby><w:rt><w:r><w:t>kan</w:t></w:r></w:rt><w:rubyBase><w:r><w:t>漢</w:t>"
         "</w:r></w:rubyBase></w:ruby></w:r></w:p>", ["漢"]),
    ],
)  # fmt: skip
def test_tables_and_looks_of_word(tmp_path: Path, body: str, lines: list[str]):
    _, (part,) = read(tmp_path, "a.docx", word_of(body))
    assert [line for line in part.text.split("\n") if line.strip()] == lines


def run(text: str) -> str:
    return f"<m:r><m:t>{text}</m:t></m:r>"


@pytest.mark.parametrize(
    ("equation", "said"),
    [
        (run("E=m") + f"<m:sSup><m:e>{run('c')}</m:e><m:sup>{run('2')}</m:sup></m:sSup>", "E=mc^2"),
        (f"<m:f><m:num>{run('a+b')}</m:num><m:den>{run('2')}</m:den></m:f>", "(a+b)/2"),
        (f"<m:rad><m:radPr/><m:deg/><m:e>{run('x')}</m:e></m:rad>", "√(x)"),
        (
            "<m:nary><m:naryPr><m:chr m:val='∑'/></m:naryPr>"
            f"<m:sub>{run('i=1')}</m:sub><m:sup>{run('n')}</m:sup><m:e><m:sSub><m:e>{run('x')}</m:e>"
            f"<m:sub>{run('i')}</m:sub></m:sSub></m:e></m:nary>",
            "∑_(i=1)^n x_i",
        ),
        (
            "<m:d><m:dPr><m:begChr m:val='['/><m:endChr m:val=']'/></m:dPr>"
            f"<m:e>{run('x')}</m:e></m:d>",
            "[x]",
        ),
        (f"<m:func><m:fName>{run('sin')}</m:fName><m:e>{run('x')}</m:e></m:func>", "sin x"),
        (
            f"<m:limLow><m:e>{run('lim')}</m:e><m:lim>{run('n→∞')}</m:lim></m:limLow>",
            "lim_(n→∞)",
        ),
        (
            f"<m:m><m:mr><m:e>{run('1')}</m:e><m:e>{run('0')}</m:e></m:mr>"
            f"<m:mr><m:e>{run('0')}</m:e><m:e>{run('1')}</m:e></m:mr></m:m>",
            "1, 0; 0, 1",
        ),
        (
            f"<m:eqArr><m:e>{run('x=1')}</m:e><m:e>{run('y=2')}</m:e></m:eqArr>",
            "x=1; y=2",
        ),
        (
            f"<m:f><m:fPr><m:type m:val='noBar'/></m:fPr><m:num>{run('n')}</m:num>"
            f"<m:den>{run('k')}</m:den></m:f>",
            "n over k",
        ),
        (f"<m:unheard><m:e>{run('kept')}</m:e></m:unheard>", "kept"),
    ],
)
def test_equations_are_written_on_one_line(tmp_path: Path, equation: str, said: str):
    inside = f"<w:p><w:r><w:t>By </w:t></w:r><m:oMath>{equation}</m:oMath></w:p>"
    alone = f"<w:p><m:oMathPara><m:oMath>{equation}</m:oMath></m:oMathPara></w:p>"
    _, (part,) = read(tmp_path, "a.docx", word_of(inside + alone))
    assert part.text.split("\n") == [f"By {said}", said]


def test_a_web_page_without_its_menus(tmp_path: Path):
    reading, (part,) = read(tmp_path, "tides.html", PAGE.encode())
    assert (reading.kind, reading.title) == ("html", "Tides")
    assert "Bay of Fundy" in part.text
    assert "16" in part.text
    for absent in ("Shop", "never shown", "cookies"):
        assert absent not in part.text


def test_lists_of_a_web_page_in_table_cells_and_of_terms(tmp_path: Path):
    lists = """<table><tr><th>Place</th><th>Facts</th></tr>
        <tr><td>Severn</td>
        <td><ul><li>fifteen <b>metres</b></li><li>a bore</li></ul> in spring</td></tr>
        <tr><td>Fundy</td><td><dl><dt>Height</dt><dd>sixteen metres</dd></dl></td></tr></table>
        <dl><dt>Ebb</dt><dt>Outflow</dt><dd>Water that falls.</dd><dd>Twice a day.</dd>
        <div><dt>Neap</dt><dd>The smallest tide.</dd></div></dl>"""
    _, (part,) = read(
        tmp_path, "tides.html", PAGE.replace("</article>", f"{lists}</article>").encode()
    )
    for line in (
        "| Severn | fifteen metres; a bore in spring |",
        "| Fundy | Height: sixteen metres |",
        "- Ebb, Outflow: Water that falls. Twice a day.",
        "- Neap: The smallest tide.",
    ):
        assert line in part.text
    assert "Bay of Fundy" in part.text


@pytest.mark.parametrize(
    ("inside", "line"),
    [
        ("<table><tr><td>Has</td><td><ul><li>one<ol><li>a</li><li>b</li></ol></li><li>two</li></ul>"
         "</td></tr></table>", "| Has | one (a; b); two |"),
        ("<table><tr><td rowspan=2>Fundy</td><td>16</td></tr><tr><td>18</td></tr></table>",
         "| Fundy | 18 |"),
        ("<dl><dt>Sea<dd>Water.<dl><dt>Ebb<dd>Falls.</dl></dl>", "- Sea: Water. (Ebb: Falls.)"),
        ("<dl><dt>Land</dt><dd><p>Dry.</p><p>Firm.</p></dd></dl>", "- Land: Dry. Firm."),
        ("<p>Some 10<sup>6</sup> m<sup>2</sup>, the 1<sup>st</sup>, H<sub>2</sub>O.</p>",
         "Some 10⁶ m², the 1st, H2O."),
        ("<p>It was <del>wrong</del> <s>false</s>right.</p>", "It was right."),
        ("<p>x <math><mfrac><mi>a</mi><mrow><mi>b</mi><mo>+</mo><mn>1</mn></mrow></mfrac></math>"
         "</p>", "x a/(b+1)"),
        ("<p>So <script type='math/tex'>x^2</script> holds.</p>", "So \\(x^2\\) holds."),
        ("<p>So <m:math><m:msup><m:mi>x</m:mi><m:mn>2</m:mn></m:msup></m:math> holds.</p>",
         "So x^2 holds."),
        ("<p>She said <q>no</q> and left.</p>", "She said “no” and left."),
        ("<ul><li>See<table><tr><td>a</td><td>b</td></tr><tr><td>c</td></tr></table></li></ul>",
         "- See (a, b; c)"),
        ("<figure><img src=x><figcaption>A ship on the ground.</figcaption></figure>",
         "A ship on the ground."),
        ("<p>Built on <time>1 July</time> for <x-sum>five</x-sum> men.</p>",
         "Built on 1 July for five men."),
        ("<table><tr><td>Fundy</td><td>In <time>1867</time></td></tr></table>",
         "| Fundy | In 1867 |"),
        ("<div class='wp-caption'><div class='caption'>A ship on the sand.</div></div>",
         "A ship on the sand."),
        ("<dd>A loose definition.</dd>", "A loose definition."),
        ("<center>The sea rises twice a day.</center>", "The sea rises twice a day."),
        ("<section>Bare <b>words</b> here.<p>More.</p></section>", "Bare words here."),
        ("<x-card><p>Words in a card.</p></x-card>", "Words in a card."),
        ("<blockquote>It rises.<footer>— Pytheas</footer></blockquote>", "— Pytheas"),
        ("<p>Deep.<sup><a href='#n'>a</a></sup> Cold.<sup><a href='#n'>[1]</a></sup></p>",
         "Deep.[a] Cold.[1]"),
        ("<h2>Past<span class='mw-editsection'>[edit]</span></h2><p>It was so.</p>", "Past"),
        ("<p>M = <math><mtable><mtr><mtd><mn>1</mn></mtd><mtd><mn>0</mn></mtd></mtr><mtr><mtd>"
         "<mn>5</mn></mtd><mtd><mn>7</mn></mtd></mtr></mtable></math></p>", "M = 1, 0; 5, 7"),
        ("<p>Caf&eacute; &amp; bar &lt;5&nbsp;km &#x4E2D;&#22269; &#150; &#128;</p>",
         "Café & bar <5 km 中国 – €"),
    ],
)  # fmt: skip
def test_elements_of_a_web_page(tmp_path: Path, inside: str, line: str):
    page = PAGE.replace("</article>", f"{inside}</article>")
    _, (part,) = read(tmp_path, "tides.html", page.encode())
    assert line in [" ".join(one.split()) for one in part.text.split("\n")]


@pytest.mark.parametrize(
    "hidden",
    [
        "<p hidden>Unseen</p>",
        "<p style='color:red; display : none'>Unseen</p>",
        "<p style='visibility:hidden'>Unseen</p>",
        "<p style='font-size:0px'>Unseen</p>",
        "<p style='opacity: 0;'>Unseen</p>",
        "<template><p>Unseen</p></template>",
        "<!-- Unseen -->",
        "<div aria-hidden='true'>Unseen</div>",
    ],
)
def test_what_a_web_page_hides_is_not_read(tmp_path: Path, hidden: str):
    page = PAGE.replace("</article>", f"{hidden}<p>It is seen.</p></article>")
    _, (part,) = read(tmp_path, "tides.html", page.encode())
    assert "It is seen." in part.text
    assert "Unseen" not in part.text


TIDES_ZH = "月亮的引力使海水涨落，每天两次。芬迪湾的潮差达到十六米。"


@pytest.mark.parametrize(
    ("head", "encoding"),
    [
        ("<meta http-equiv=Content-Type content='text/html; charset=gb2312'>", "gb18030"),
        ("<meta charset=GBK>", "utf-8"),
        ("<meta charset=utf-8>", "gbk"),
        ("<!-- <meta charset=koi8-r> --><meta charset=gbk>", "gbk"),
        (f"<!--{'x' * 5000}--><meta charset=gbk>", "gbk"),
        ("<meta charset=gbk>", "utf-8-sig"),
        ("<meta charset=utf-16>", "utf-16"),
        ("<meta name=x>", "gbk"),
    ],
)
def test_encodings_of_a_web_page(tmp_path: Path, head: str, encoding: str):
    page = f"<html><head>{head}</head><body><p>{TIDES_ZH}</p></body></html>"
    _, (part,) = read(tmp_path, "tides.html", page.encode(encoding))
    assert part.text == TIDES_ZH


def test_a_page_that_says_latin_1_means_windows_1252(tmp_path: Path):
    page = "<html><head><meta charset=iso-8859-1></head><body><p>“5 €” – it’s</p></body></html>"
    _, (part,) = read(tmp_path, "a.html", page.encode("cp1252"))
    assert part.text == "“5 €” – it’s"


def test_a_chinese_web_page_in_its_own_encoding(tmp_path: Path):
    text = "大熊猫是中国特有的动物，主要生活在四川的竹林里，以竹子为食。" * 5
    page = (
        f"<html><head><meta charset='gb2312'><title>熊猫</title></head><body><p>{text}</p></body>"
    )
    reading, (part,) = read(tmp_path, "panda.htm", page.encode("gb2312"))
    assert reading.title == "熊猫"
    assert "四川的竹林" in part.text


def test_markdown_with_front_matter_and_without(tmp_path: Path):
    reading, (part,) = read(tmp_path, "a.md", b"---\ntitle: Tides\n---\nThe **moon** pulls.")
    assert (reading.title, part.text) == ("Tides", "The moon pulls.")
    reading, (part,) = read(tmp_path, "notes/b.md", b"# The *Moon*\n\nIt pulls.")
    assert (reading.title, part.text) == ("The Moon", "The Moon\n\nIt pulls.")
    assert read(tmp_path, "notes/plain.md", b"No heading.")[0].title == "plain"


@pytest.mark.parametrize(
    ("written", "plain"),
    [
        ("```py\n# no heading\nx = 1\n```\nText.", "# no heading\nx = 1\n\nText."),
        ("Tides\n=====\nText.\n\nMore\n----\nEnd.", "Tides\nText.\n\nMore\nEnd."),
        ("See [the page][1] and [it].\n\n[1]: https://a.example 'T'\n[it]: <b>",
         "See the page and it."),
        ("See <https://a.example/b> and [a](http://a.b/c_(d)) [![x](y.svg)](z).",
         "See https://a.example/b and a x."),
        ("A claim [1].\n\n[1] Lee 2020", "A claim [1].\n\n[1] Lee 2020"),
        ("10<sup>6</sup>, H<sub>2</sub>O, <b>bold</b>&nbsp;&amp; a < b <i>c</i>",
         "10⁶, H2O, bold\u00a0& a < b c"),
        ("It was ~~wrong~~ <del>false</del>right.", "It was  right."),
        ("***both*** **bold *in* it** _i_ snake_case 2 * 3 * 4 a*b*c",
         "both bold in it i snake_case 2 * 3 * 4 a*b*c"),
        ("1\\. no list \\*star\\* \\[1\\]", "1. no list *star* [1]"),
        ("`a*b*c` and $x_1 * y_1$ and \\(x^2\\)", "a*b*c and $x_1 * y_1$ and \\(x^2\\)"),
        ("> > deep\n> one", "deep\none"),
        ("这是**重要**的，也是*斜体*。", "这是重要的，也是斜体。"),
        ("One.\n\n---\n\nTwo.", "One.\n\n\n\nTwo."),
        ("+++\ntitle = 'Tides'\n+++\nText.", "Text."),
        ("Line  \nnext\\\nlast", "Line\nnext\nlast"),
        ("| A | B |\n|---|---|\n| 1 | 2 |", "| A | B |\n|---|---|\n| 1 | 2 |"),
        ("- [x] done\n- [ ] open", "- [x] done\n- [ ] open"),
        ("Said[^1].\n\n[^1]: The note.", "Said[^1].\n\n[^1]: The note."),
        ("---\ntitle: Bay\n...\nText.", "Text."),
        ("See [[Bay]] and [[Severn#North|the Severn]].![[map.png]] %%unseen%%",
         "See Bay and the Severn."),
        ("> [!NOTE]\n> Deep.\n\n> [!tip]- Title\n> Cold.", "Deep.\n\nTitle\nCold."),
        ('!!! warning "Take care"\n    Deep.\n\n??? note\n    Cold.',
         "Take care\n    Deep.\n\n\n    Cold."),
        ('{{< figure src="a.png" >}}{% raw %}Deep.{% endraw %} {{ name }}', "Deep. {{ name }}"),
        (":::tip Title\nDeep.\n:::\n::: {.note}\nCold.\n:::", "Title\nDeep.\n\n\nCold."),
        ("# Bay {#bay .x}\nA [span]{.caps} and f{x}.", "Bay\nA span and f{x}."),
        ("==Deep== H~2~O, x^2^, ++new++; a == b == c; i++ + ++j; ~5 and ~6",
         "Deep H2O, x², new; a == b == c; i++ + ++j; ~5 and ~6"),
        ("<table>\n<tr><td>Fundy</td><td>16</td></tr>\n<tr><th>Severn</th><td>14</td></tr></table>",
         "Fundy | 16\nSevern | 14"),
        ('<Tab value="a">Deep</Tab> and List<String> <Icon/>', "Deep and List<String>"),
    ],
)  # fmt: skip
def test_markdown_loses_its_marks_and_nothing_else(tmp_path: Path, written: str, plain: str):
    _, (part,) = read(tmp_path, "a.md", written.encode())
    assert part.text == plain


@pytest.mark.parametrize(
    ("written", "title"),
    [
        ("```\n# no title\n```\n# Tides\nx", "Tides"),
        ("Tides\n=====\nx", "Tides"),
        ("+++\ntitle = 'Tides'\n+++\nx", "Tides"),
    ],
)
def test_titles_of_markdown(tmp_path: Path, written: str, title: str):
    assert read(tmp_path, "a.md", written.encode())[0].title == title


@pytest.mark.parametrize("text", ["大熊猫吃竹子。", "Panda 大熊猫吃竹子。", "大熊貓吃竹子。"])
def test_short_chinese_texts_in_their_own_encodings(tmp_path: Path, text: str):
    encoding = "big5" if "貓" in text else "gbk"
    _, (part,) = read(tmp_path, "a.txt", text.encode(encoding))
    assert part.text == text


@pytest.mark.parametrize(
    "data",
    [
        (TIDES_ZH * 9).encode()[:-1],
        (TIDES_ZH * 9).encode() + b"\xff",
        ("Le café coûte trois euros. " * 9).encode().replace(b"trois", b"tr\xe9is", 1),
    ],
)
def test_damaged_utf_8_is_read_and_said(tmp_path: Path, data: bytes):
    reading, (part,) = read(tmp_path, "a.txt", data)
    assert (reading.remarks, dict(reading.facts)) == (("damaged",), {"damaged": 1})
    assert part.text == data.decode("utf-8", "replace").strip()


@pytest.mark.parametrize(
    "encoding", ["utf-8", "utf-8-sig", "utf-16", "gb18030", "big5", "cp1252", "utf-16-le"]
)
def test_text_in_usual_encodings(tmp_path: Path, encoding: str):
    if encoding in ("cp1252", "utf-16-le"):
        text = "Le café coûte trois euros à la gare. Les élèves y vont après l'école.\n" * 20
    else:
        text = "大熊貓生活在四川的竹林裡，主要吃竹子，一天要吃很多。\r\n它們不冬眠。\n" * 20
    reading, (part,) = read(tmp_path, "text.txt", text.encode(encoding))
    assert part.text == text.replace("\r\n", "\n").strip()
    guessed = encoding not in ("utf-8", "utf-8-sig", "utf-16")
    assert reading.remarks == (("encoding",) if guessed else ())


def test_a_table_with_texts(tmp_path: Path):
    data = "Title,Text,URL\nCats,They sleep.,https://cats.example\n,No title.,\nEmpty,,\n"
    reading, parts = read(tmp_path, "animals.csv", data.encode())
    assert reading.kind == "csv"
    assert [(one.title, one.text, one.label, one.url) for one in parts] == [
        ("Cats", "They sleep.", "1", "https://cats.example"),
        ("animals", "No title.", "2", None),
    ]


@pytest.mark.parametrize(
    ("name", "written", "text"),
    [
        ("a.csv", "sep=;\ntitle;text\nFundy;Deep, cold.\n", "Deep, cold."),
        ("a.csv", "Survey of bays\n\nbay,depth\nFundy,214\n", "bay: Fundy\ndepth: 214"),
        ("a.csv", "Survey of bays,\ntitle,text\nFundy,Deep.\n", "Deep."),
        ("a.csv", '"a, b, c";text\nx;"Deep, cold"\n', "Deep, cold"),
        ("a.json", '{"count": 1, "articles": [{"title": "Fundy", "text": "Deep."}]}', "Deep."),
        ("a.json", '{"title": "Fundy", "text": ["Deep.", "Cold."]}', "Deep.\nCold."),
        ("a.json", '{"1": {"text": "Deep."}, "2": {"text": ""}}', "Deep."),
        ("a.json", '{"text": "Deep.", "links": [{"url": "u"}]}', "Deep."),
    ],
)
def test_forms_of_tables_as_documents(tmp_path: Path, name: str, written: str, text: str):
    _, parts = read(tmp_path, name, written.encode())
    assert [part.text for part in parts] == [text]


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"\x1b[1mThe bay\x1b[0m is deep.", "The bay is deep."),
        (b"N\x08NA\x08A\n_\x08d_\x08e_\x08e_\x08p", "NA\ndeep"),
        ("日本の首都は東京です。".encode("iso2022_jp"), "日本の首都は東京です。"),
    ],
)
def test_what_terminals_draw_is_read_as_it_looks(tmp_path: Path, data: bytes, text: str):
    assert read(tmp_path, "a.txt", data)[1][0].text == text


def test_a_table_without_a_column_of_texts(tmp_path: Path):
    data = "名称;高度;国家\n珠穆朗玛峰;8849;中国\n"
    _, (part,) = read(tmp_path, "mountains.csv", data.encode())
    assert (part.title, part.text) == ("珠穆朗玛峰", "高度: 8849\n国家: 中国")


def test_lines_of_json_and_an_array(tmp_path: Path):
    lines = '{"title": "A", "content": "One."}\n\n{"content": "Two.", "more": {"x": 1}}\n'
    reading, parts = read(tmp_path, "a.jsonl", lines.encode())
    assert reading.kind == "jsonl"
    assert [(one.title, one.text) for one in parts] == [("A", "One."), ("a", "Two.")]
    _, parts = read(tmp_path, "b.json", b'[\n{"x": "One", "y": [1, 2]}\n]')
    assert [one.text for one in parts] == ["x: One\ny: [1, 2]"]
    _, parts = read(tmp_path, "c.json", b'{\n  "text": "Over several lines."\n}')
    assert [one.text for one in parts] == ["Over several lines."]


@pytest.mark.parametrize(
    ("name", "data", "kind", "promised"),
    [
        ("report.docx", pdf(["Really a PDF."]), "pdf", "docx"),
        ("paper.pdf", word("Really a DOCX."), "docx", "pdf"),
        ("paper.pdf", b"<!doctype html><html><body><p>Please log in.</p></body>", "html", "pdf"),
        ("notes.docx", b"Only text.", "text", "docx"),
        ("notes.txt", b'{"text": "One."}\n{"text": "Two."}', "jsonl", "text"),
    ],
)
def test_what_a_file_is_counts_not_what_it_is_called(
    tmp_path: Path, name: str, data: bytes, kind: str, promised: str
):
    reading, parts = read(tmp_path, name, data)
    assert (reading.kind, reading.remarks) == (kind, ("mislabelled",))
    assert dict(reading.facts) == {"promised": promised, "kind": kind}
    assert parts[0].text


def test_an_unknown_ending_promises_nothing(tmp_path: Path):
    reading, _ = read(tmp_path, "https://example.org/article", PAGE.encode())
    assert (reading.kind, reading.remarks) == ("html", ())


@pytest.mark.parametrize(
    ("name", "data", "reason", "facts"),
    [
        ("nothing.txt", b"", "empty", {}),
        ("blank.txt", b" \r\n\t", "empty", {}),
        ("scan.pdf", pdf(["", ""], image=True), "scanned", {"pages": 2}),
        ("blank.pdf", pdf([""]), "no_text", {"pages": 1}),
        ("locked.pdf", encrypted_pdf("secret"), "encrypted", {}),
        ("cut.pdf", pdf(["Whole."])[:60], "broken", None),
        ("torn.pdf", b"%PDF-1.7\n" + bytes(range(256)) * 8, "broken", None),
        ("old.doc", OLE, "other_kind", {"kind": "DOC"}),
        ("locked.docx", OLE + "EncryptedPackage".encode("utf-16-le"), "encrypted", {}),
        ("sheet.xlsx", archive(xl__workbook_xml=b"<x/>"), "other_kind", {"kind": "XLSX"}),
        ("pack.docx", archive(readme_txt=b"hello"), "other_kind", {"kind": "ZIP"}),
        ("open.odt", archive(content_xml=b"<x/>"), "other_kind", {"kind": "OpenDocument"}),
        ("cut.docx", word("Whole.")[:400], "broken", {}),
        ("torn.docx", archive(word__document_xml=b"<w:doc"), "broken", None),
        ("blank.docx", word(""), "no_text", {"pages": 1}),
        ("bomb.docx", replaced(word("x"), "word/document.xml", BOMB), "entities", {}),
        ("photo.txt", b"\x89PNG\r\n\x1a\n" + bytes(50), "other_kind", {"kind": "PNG"}),
        ("letter.rtf", b"{\\rtf1 Dear}", "other_kind", {"kind": "RTF"}),
        (
            "page.mht",
            b"MIME-Version: 1.0\nContent-Type: multipart/related\n\n--x",
            "other_kind",
            {"kind": "MHTML"},
        ),
        (
            "pointer.txt",
            b"version https://git-lfs.github.com/spec/v1\noid sha256:a\n",
            "other_kind",
            {"kind": "Git LFS"},
        ),
        ("invisible.txt", "\u200b\u200b\ufeff".encode(), "empty", {}),
        (
            "book.epub",
            archive(**{"META-INF__container_xml": b"<x/>"}),
            "other_kind",
            {"kind": "EPUB"},
        ),
        ("slides.pptx", archive(ppt__presentation_xml=b"<x/>"), "other_kind", {"kind": "PPTX"}),
        ("strict.docx", replaced(word("x"), "word/document.xml", STRICT), "other_kind", None),
        ("feed.xml", b"<?xml version='1.0'?><rss/>", "other_kind", {"kind": "XML"}),
        (
            "letter.eml",
            b"Subject: Tides\nContent-Transfer-Encoding: quoted-printable\n\nCaf=C3=A9",
            "other_kind",
            {"kind": "MHTML"},
        ),
        ("bare.csv", b"title,text\na,\n", "no_rows", {}),
        ("bytes.txt", bytes(range(1, 32)) * 40, "binary", {}),
        ("zeros.bin", b"a\x00b\x01\x00\x00c" * 100, "binary", {}),
        ("empty.html", b"<html><body><script>go()</script></body></html>", "no_text", None),
        ("head.csv", b"title,text\n", "no_rows", {}),
        ("wide.csv", b"title,text\na,b,c\n", "bad_line", {"line": 2, "said": "3 > 2"}),
        ("open.csv", b'title,text\na,"b\n', "bad_line", None),
        ("bad.jsonl", b'{"text": "One."}\n{"text": \n', "bad_line", None),
        # JSON itself says nothing of a number of too many digits.
        ("long.jsonl", b'{"text": ' + b"1" * 5000 + b"}\n", "bad_line", None),
        ("list.jsonl", b"[1]\n", "bad_line", {"line": 1, "said": "not an object"}),
        ("deep.json", b"[" * 100_000, "bad_line", {"line": 1, "said": "too deep"}),
    ],
)
def test_what_cannot_be_used_says_why(
    tmp_path: Path, name: str, data: bytes, reason: str, facts: dict[str, object] | None
):
    refused = refusal(tmp_path, name, data)
    assert refused.reason == reason
    assert "" not in refused.facts.values()
    if facts is not None:
        assert refused.facts == facts


ENGLISH = "The moon pulls the water of the oceans towards itself, and the earth turns below it."
CHINESE = "大熊猫是中国特有的动物，主要生活在四川的竹林里，以竹子为食。"


@pytest.mark.parametrize(
    ("data", "reason", "percent"),
    [
        # Glyphs are numbered as TrueType fonts do: "T" is 55.
        (glyphs(ENGLISH, shift=-29), "no_map", 100),
        (glyphs(ENGLISH, shift=-29, ordering="GB1"), "no_map", 100),
        (glyphs("".join(chr(0x5000 + 37 * at) for at in range(60))), "no_map", 100),
        # A map that leads to private characters, or to nothing.
        (glyphs(ENGLISH, shift=0xE000, mapped=True), "unreadable", 100),
        (pdf(["".join("\\%03o" % (at % 8 + 1) for at in range(80))], raw=True), "unreadable", 100),
        # Some 70 of 110 visible characters.
        (
            glyphs(ENGLISH, shift=-29, before="Some forty characters can be read of it all."),
            "no_map",
            None,
        ),
    ],
)
def test_a_pdf_file_that_reads_as_noise_is_refused(
    tmp_path: Path, data: bytes, reason: str, percent: int | None
):
    refused = refusal(tmp_path, "noise.pdf", data)
    assert refused.reason == reason
    said = refused.facts["percent"]
    assert said == percent if percent is not None else 30 < int(said) < 100


@pytest.mark.parametrize("text", [ENGLISH, CHINESE])
def test_a_font_without_a_map_whose_glyphs_are_numbered_by_characters_is_read(
    tmp_path: Path, text: str
):
    reading, (part,) = read(tmp_path, "plain.pdf", glyphs(text))
    assert part.text == text
    assert "unreadable" not in reading.facts


def test_a_part_that_cannot_be_read_is_counted(tmp_path: Path):
    # 4 of 72 visible characters.
    reading, _ = read(tmp_path, "part.pdf", glyphs("Noon", shift=-29, before=ENGLISH))
    assert reading.facts["unreadable"] == 5


def test_a_bad_line_is_named(tmp_path: Path):
    refused = refusal(tmp_path, "a.jsonl", b'{"text": "One."}\n\n{"text": "Two."\n')
    assert refused.facts["line"] == 3


def test_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("pipelines.retrieval.reading.files.MAX_FILE", 3 * 2**20)
    assert refusal(tmp_path, "a.txt", b"a" * (3 * 2**20 + 1)).facts == {"most": 3}
    monkeypatch.setattr("pipelines.retrieval.reading.pdf.MAX_PAGES", 2)
    pages = refusal(tmp_path, "a.pdf", pdf(["One.", "Two.", "Three."]))
    assert (pages.reason, pages.facts) == ("too_many_pages", {"pages": 3, "most": 2})
    monkeypatch.setattr("pipelines.retrieval.reading.parsed.MAX_TEXT", 10)
    assert refusal(tmp_path, "a.txt", b"Twelve chars").reason == "too_long"
    monkeypatch.setattr("pipelines.retrieval.reading.pdf.MAX_TEXT", 5)
    assert refusal(tmp_path, "a.pdf", pdf(["Longer."])).reason == "too_long"
    monkeypatch.setattr("pipelines.retrieval.reading.word.MAX_TEXT", 5)
    assert refusal(tmp_path, "a.docx", word("Longer.")).reason == "too_long"


def test_rows_have_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("pipelines.retrieval.reading.parsed.MAX_ROWS", 2)
    assert refusal(tmp_path, "a.csv", b"text\na\nb\nc\n").reason == "too_long"


def test_an_archive_that_unpacks_to_too_much(tmp_path: Path):
    data = word("Small.")
    path = tmp_path / "bomb.docx"
    path.write_bytes(data)
    with (
        zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as packed,
        packed.open("word/media/zeros.bin", "w") as file,
    ):
        for _ in range(parsed.MAX_UNPACKED // 2**22 + 1):
            file.write(bytes(2**22))
    assert path.stat().st_size < 2**21
    with pytest.raises(RefusedError) as refused:
        read_file(path, "bomb.docx")
    assert (refused.value.reason, refused.value.facts) == ("unpacks", {"most": 300})


def test_every_reason_has_its_words():
    worded = {key for key in entries() if key.startswith("reading.")}
    assert worded == {f"reading.{reason}" for reason in get_args(parsed.Reason)}


def test_a_missing_library_is_no_fault_of_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "trafilatura", None)
    with pytest.raises(ImportError):
        read(tmp_path, "tides.html", PAGE.encode())
