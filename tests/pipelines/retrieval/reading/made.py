"""Files as people bring them, made by hand: whole, scanned, encrypted, damaged, hostile."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Sequence

import docx
from pypdf import PdfReader, PdfWriter


def pdf(pages: Sequence[str], *, title: str = "", image: bool = False, raw: bool = False) -> bytes:
    """A PDF file with a line of text for each line of a page; `image` draws a grey square too.

    What is `raw` is escaped already.
    """
    objects: list[bytes] = [b"<< /Type /Catalog /Pages 2 0 R >>", b""]
    font = 3
    objects.append(b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>")
    picture = 0
    if image:
        data = b"\x80" * 16
        head = b"<< /Type /XObject /Subtype /Image /Width 4 /Height 4 /BitsPerComponent 8"
        head += b" /ColorSpace /DeviceGray /Length 16 >>"
        objects.append(head + b"\nstream\n" + data + b"\nendstream")
        picture = len(objects)
    kids: list[int] = []
    for page in pages:
        said = page if raw else _escaped(page)
        lines = [f"({line}) Tj 0 -14 Td" for line in said.split("\n")]
        content = f"BT /F1 11 Tf 72 720 Td {' '.join(lines)} ET" if page else ""
        content += " q 400 0 0 400 72 72 cm /Im1 Do Q" if image else ""
        stream = content.encode("latin-1")
        objects.append(b"<< /Length %d >>\nstream\n" % len(stream) + stream + b"\nendstream")
        drawn = f" /XObject << /Im1 {picture} 0 R >>" if image else ""
        objects.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {len(objects)} 0 R"
            f" /Resources << /Font << /F1 {font} 0 R >>{drawn} >> >>".encode()
        )
        kids.append(len(objects))
    listed = " ".join(f"{kid} 0 R" for kid in kids)
    objects[1] = f"<< /Type /Pages /Kids [{listed}] /Count {len(kids)} >>".encode()
    info = ""
    if title:
        objects.append(f"<< /Title ({_escaped(title)}) >>".encode())
        info = f" /Info {len(objects)} 0 R"
    return _assembled(objects, info)


def _assembled(objects: Sequence[bytes], info: str = "") -> bytes:
    out, offsets = bytearray(b"%PDF-1.4\n"), list[int]()
    for number, body in enumerate(objects, start=1):
        offsets.append(len(out))
        out += b"%d 0 obj\n" % number + body + b"\nendobj\n"
    start = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    out += b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    out += f"trailer\n<< /Size {len(objects) + 1} /Root 1 0 R{info} >>\n".encode()
    return bytes(out + b"startxref\n%d\n%%%%EOF\n" % start)


def _escaped(text: str) -> str:
    for character in "\\()":
        text = text.replace(character, f"\\{character}")
    return text


def glyphs(
    text: str, *, shift: int = 0, ordering: str = "Identity", mapped: bool = False, before: str = ""
) -> bytes:
    """A PDF file whose font numbers its glyphs: that of a character is its code plus `shift`.

    Without a map to Unicode, or `mapped` to just these numbers. `before` stands there in Helvetica.
    """
    codes = "".join(f"{ord(one) + shift:04X}" for one in text)
    drawn = f"/F2 11 Tf ({_escaped(before)}) Tj 0 -14 Td " if before else ""
    stream = f"BT 72 720 Td {drawn}/F1 11 Tf <{codes}> Tj ET".encode()
    table = b"begincmap 1 begincodespacerange <0000> <FFFF> endcodespacerange"
    table += b" 1 beginbfrange <0000> <FFFF> <0000> endbfrange endcmap"
    link = " /ToUnicode 8 0 R" if mapped else ""
    kind = f"<< /Registry (Adobe) /Ordering ({ordering}) /Supplement 0 >>"
    return _assembled(
        [
            b"<< /Type /Catalog /Pages 2 0 R >>",
            b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R"
            b" /Resources << /Font << /F1 5 0 R /F2 7 0 R >> >> >>",
            b"<< /Length %d >>\nstream\n" % len(stream) + stream + b"\nendstream",
            f"<< /Type /Font /Subtype /Type0 /BaseFont /ABCDEF+Sans /Encoding /Identity-H"
            f" /DescendantFonts [6 0 R]{link} >>".encode(),
            f"<< /Type /Font /Subtype /CIDFontType2 /BaseFont /ABCDEF+Sans /CIDSystemInfo {kind}"
            " >>".encode(),
            b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
            b"<< /Length %d >>\nstream\n" % len(table) + table + b"\nendstream",
        ]
    )


def encrypted_pdf(user: str, owner: str = "owner") -> bytes:
    """A PDF file that needs the password `user`; "" opens without one, but may not be changed."""
    writer = PdfWriter(PdfReader(io.BytesIO(pdf(["A secret of the archive is kept here."]))))
    writer.encrypt(user_password=user, owner_password=owner, algorithm="AES-256")
    out = io.BytesIO()
    writer.write(out)
    return out.getvalue()


def word(*paragraphs: str, title: str = "", table: Sequence[Sequence[str]] = ()) -> bytes:
    """A DOCX file."""
    document = docx.Document()
    document.core_properties.title = title
    for paragraph in paragraphs:
        document.add_paragraph(paragraph)
    if table:
        grid = document.add_table(len(table), len(table[0]))
        for cells, row in zip(grid.rows, table, strict=True):
            for cell, text in zip(cells.cells, row, strict=True):
                cell.text = text
    out = io.BytesIO()
    document.save(out)
    return out.getvalue()


def word_of(body: str) -> bytes:
    """A DOCX file with this XML in its body."""
    spaces = (
        "xmlns:w='http://schemas.openxmlformats.org/wordprocessingml/2006/main' "
        "xmlns:m='http://schemas.openxmlformats.org/officeDocument/2006/math' "
        "xmlns:mc='http://schemas.openxmlformats.org/markup-compatibility/2006'"
    )
    xml = f"<w:document {spaces}><w:body>{body}</w:body></w:document>"
    return replaced(word("x"), "word/document.xml", xml.encode())


def archive(**files: bytes) -> bytes:
    """A ZIP file; "/" in names is written as two underscores, "." as one."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, data in files.items():
            packed.writestr(name.replace("__", "/").replace("_", "."), data)
    return out.getvalue()


def replaced(packed: bytes, name: str, data: bytes) -> bytes:
    """A ZIP file with other content in one of its files."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(packed)) as old, zipfile.ZipFile(out, "w") as new:
        for one in old.infolist():
            new.writestr(one.filename, data if one.filename == name else old.read(one))
    return out.getvalue()


PAGE = """<!DOCTYPE html><html><head><title>Tides - The Sea Journal</title>
<script>var hidden = "never shown";</script></head><body>
<nav><a href="/">Home</a> <a href="/shop">Shop</a></nav>
<article><h1>Tides</h1><p>The moon pulls the water of the oceans towards itself, and the earth turns
below it. So most coasts see high water twice a day, a little later every time.</p>
<p>Where a bay is shaped like a funnel, the water rises much higher. In the Bay of Fundy the
difference between high and low water is sixteen metres, more than anywhere else on earth.</p>
<table><tr><th>Place</th><th>Metres</th></tr><tr><td>Fundy</td><td>16</td></tr></table></article>
<footer>All rights reserved. Accept cookies?</footer></body></html>"""
