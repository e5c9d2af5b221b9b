"""Pictures of every page of both front ends: `python -m scripts.screenshots`.

Serves the workbench and the Space on a data folder filled with sample runs, an evaluation, an
annotation session and a collection, which is deleted afterwards. Every page is pictured whole, on a
desktop and on a phone, light and dark, in English and Chinese, into `screenshots/`, with a contact
sheet in its `index.html`. Exits 1 where a page can be scrolled sideways on a phone, and names it.

`--readme` makes the README's pictures anew instead.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Collection, Iterator, Sequence
from dataclasses import asdict, dataclass
from html import escape
from itertools import groupby, product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import get_args

from playwright.sync_api import Browser, Page, expect, sync_playwright

from components.base.words import LANGUAGES, Catalogue
from pipelines.base import Language, data_folder
from pipelines.models.catalogue import SHARED
from tests.app.public.looking import PAGE_FITS, each_tab, looking, open_space
from tests.app.public.starting import started
from tests.app.serving import (
    DESKTOP,
    FITS,
    PHONE,
    Workbench,
    browser_of,
    serve_workbench,
    visiting,
    wait_until_drawn,
)
from tests.app.sights import SIGHTS, Filled, Sight, fill, report_of, show_whole
from tests.browser import PATIENCE, require_chromium

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "screenshots"
README = ROOT / "assets" / "screenshots"
SCHEMES = ("light", "dark")
WIDTHS = (DESKTOP["width"], PHONE["width"])

OF_README: dict[str, tuple[Language, int]] = {
    "ask": ("en", 1140),
    "rowen-chinese": ("zh", 1500),
    "drad": ("en", 1300),
    "evaluate": ("en", 1200),
    "annotate-item": ("en", 900),
}
"""The README's pictures, their language, and how many pixels are shown from the top."""

_SHEET = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>Screenshots</title>
<style>
body {{ font: 14px system-ui, sans-serif; margin: 1rem; background: #eee }}
h2 {{ font-size: 1rem; margin: 1.5rem 0 .5rem }}
section {{ display: flex; gap: .75rem; overflow-x: auto; align-items: flex-start }}
figure {{ margin: 0; flex: none }}
img {{ display: block; height: 22rem; width: auto; object-fit: cover; object-position: top;
  max-width: 26rem; border: 1px solid #bbb; background: #fff }}
figcaption {{ padding: .2rem 0; color: #444 }}
.wide figcaption {{ color: #b42318; font-weight: bold }}
</style>
<h1>{count} pictures</h1>
{rows}
</html>
"""


@dataclass(frozen=True)
class Picture:
    """One picture. `fits`: nothing has to be scrolled sideways."""

    sight: str
    language: Language
    scheme: str
    width: int
    fits: bool = True

    @property
    def file(self) -> str:
        """The name of its file."""
        return f"{self.sight}.{self.language}.{self.scheme}.{self.width}.png"

    @property
    def caption(self) -> str:
        """What is different from the other pictures of the same page."""
        wide = "" if self.fits else ", scrolls sideways"
        return f"{self.language}, {self.scheme}, {self.width} px{wide}"


def contact_sheet(pictures: Sequence[Picture]) -> str:
    """Return a page with all pictures, those of one page in a row."""
    rows: list[str] = []
    for name, group in groupby(pictures, key=lambda one: one.sight):
        figures = "\n".join(
            f'<figure{"" if one.fits else " class=wide"}><a href="{escape(one.file)}">'
            f'<img loading="lazy" src="{escape(one.file)}" alt="{escape(name)}, {one.caption}"></a>'
            f"<figcaption>{one.caption}</figcaption></figure>"
            for one in group
        )
        rows.append(f"<h2>{escape(name)}</h2>\n<section>\n{figures}\n</section>")
    return _SHEET.format(count=len(pictures), rows="\n".join(rows))


@dataclass(frozen=True)
class Studio:
    """Makes pictures into `folder` with one browser, of what `wanted` names; "" for everything."""

    browser: Browser
    folder: Path
    wanted: Collection[str]
    languages: Sequence[Language]
    schemes: Sequence[str]
    widths: Sequence[int]

    def wants(self, name: str) -> bool:
        """Return whether a picture of that name, or of its page, was asked for."""
        return not self.wanted or name in self.wanted or name.partition("-")[0] in self.wanted

    def of_workbench(self, workbench: Workbench, filled: Filled) -> Iterator[Picture]:
        """Yield every page of the workbench."""
        for sight in SIGHTS:
            if not self.wants(sight.name):
                continue
            for language, scheme in product(self.languages, self.schemes):
                known = None if sight.guest else browser_of(workbench, filled.owner)
                with visiting(self.browser, workbench, scheme=scheme, known=known) as visitor:
                    page = visitor.open(sight.at(filled, language))
                    prepared(page, sight, language)
                    for width in self.widths:
                        yield self._taken(page, sight.name, language, scheme, width, FITS)

    def of_report(self, data: Path, filled: Filled) -> Iterator[Picture]:
        """Yield the report of a run, which is also printed into a PDF beside the pictures."""
        for language, scheme in product(self.languages, self.schemes):
            file = data / f"report.{language}.html"
            file.write_text(report_of(data, filled, language), encoding="utf-8")
            with looking(self.browser, scheme) as context:
                page = context.new_page()
                page.goto(file.as_uri())
                for width in self.widths:
                    yield self._taken(page, "report", language, scheme, width, PAGE_FITS)
                if scheme == self.schemes[0]:
                    path = self.folder / f"report.{language}.pdf"
                    page.pdf(path=path, format="A4", print_background=True)

    def of_space(self, url: str) -> Iterator[Picture]:
        """Yield every tab of the Space."""
        for language, scheme in product(self.languages, self.schemes):
            with looking(self.browser, scheme) as context:
                page = open_space(context, url, language)
                for tab in each_tab(page):
                    name = f"space-{tab.partition('-')[0]}"
                    for width in self.widths:
                        yield self._taken(page, name, language, scheme, width, PAGE_FITS)

    def _taken(
        self, page: Page, name: str, language: Language, scheme: str, width: int, fits: str
    ) -> Picture:
        show_whole(page, width)
        picture = Picture(name, language, scheme, width, fits=bool(page.evaluate(fits)))
        page.screenshot(path=self.folder / picture.file)
        print(f"  {picture.file}", flush=True)
        return picture


def prepared(page: Page, sight: Sight, language: Language) -> None:
    """Wait until a page is whole, and bring it into the state that is to be seen."""
    wait_until_drawn(page)
    sight.prepare(page, Catalogue(language))
    wait_until_drawn(page)


def filled_folder(data: Path) -> Filled:
    """Return what is in the folder `data`, which is filled unless it was before."""
    note = data / "filled.json"
    if note.exists():
        return Filled(**json.loads(note.read_text(encoding="utf-8")))
    print("Filling a data folder; this takes some minutes.", flush=True)
    filled = fill(data)
    note.write_text(json.dumps(asdict(filled)), encoding="utf-8")
    return filled


def make_all(studio: Studio, data: Path) -> list[Picture]:
    """Picture everything that is wanted, with what is in the folder `data`."""
    filled = filled_folder(data)
    pictures: list[Picture] = []
    if any(studio.wants(one.name) for one in SIGHTS):
        with serve_workbench(data) as workbench:
            pictures += studio.of_workbench(workbench, filled)
    if studio.wants("report"):
        pictures += studio.of_report(data, filled)
    if studio.wants("space"):
        with started(data) as space:
            pictures += studio.of_space(space.url)
    pictures.sort(key=lambda one: one.sight)
    (studio.folder / "index.html").write_text(contact_sheet(pictures), encoding="utf-8")
    return pictures


def make_readme(browser: Browser, data: Path, folder: Path, wanted: Collection[str]) -> None:
    """Make the pictures of the README, in the light theme, from the top of each page.

    Those that `wanted` names, all where it names none.
    """
    filled = filled_folder(data)
    known = {one.name: one for one in SIGHTS}
    with serve_workbench(data) as workbench:
        for name, (language, height) in OF_README.items():
            sight = known[name]
            if wanted and not {sight.name, sight.page} & {*wanted}:
                continue
            owner = None if sight.guest else browser_of(workbench, filled.owner)
            with visiting(browser, workbench, known=owner) as visitor:
                page = visitor.open(sight.at(filled, language))
                prepared(page, sight, language)
                page.set_viewport_size({"width": DESKTOP["width"], "height": height})
                wait_until_drawn(page)
                page.screenshot(path=folder / f"{sight.page}.png")


def _chosen(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m scripts.screenshots", description=__doc__)
    parser.add_argument(
        "--pages", default="", help="Only these, with commas: pages, their states, report, space."
    )
    parser.add_argument("--to", type=Path, default=FOLDER, help="The folder for the pictures.")
    parser.add_argument("--languages", default=",".join(LANGUAGES))
    parser.add_argument("--schemes", default=",".join(SCHEMES))
    parser.add_argument("--widths", default=",".join(map(str, WIDTHS)))
    parser.add_argument(
        "--data", type=Path, help="A data folder that is filled once and kept for the next time."
    )
    parser.add_argument("--readme", action="store_true", help="The README's pictures instead.")
    return parser.parse_args(arguments)


def _parts(text: str, allowed: Collection[str], what: str) -> list[str]:
    parts = [one.strip() for one in text.split(",") if one.strip()]
    strange = [one for one in parts if one not in allowed]
    if strange:
        sys.exit(
            f"There is no {what} {', '.join(strange)}. There are {', '.join(sorted(allowed))}."
        )
    return parts


def main(arguments: Sequence[str]) -> int:
    """Make the pictures that were asked for; 1 where a page does not fit on a phone."""
    chosen = _chosen(arguments)
    names = {"space", "report", *(one.name for one in SIGHTS), *(one.page for one in SIGHTS)}
    wanted = _parts(chosen.pages, names, "page")
    languages: list[Language] = [
        one for one in get_args(Language) if one in _parts(chosen.languages, LANGUAGES, "language")
    ]
    schemes = _parts(chosen.schemes, SCHEMES, "scheme")
    widths = [int(one) for one in _parts(chosen.widths, [str(one) for one in WIDTHS], "width")]
    # The folder that is filled for the pictures has no models of its own.
    os.environ.setdefault(SHARED, str(data_folder() / "models"))
    expect.set_options(timeout=PATIENCE)
    with sync_playwright() as playwright, TemporaryDirectory() as temporary:
        data = chosen.data or Path(temporary)
        data.mkdir(parents=True, exist_ok=True)
        browser = playwright.chromium.launch(
            executable_path=require_chromium(), args=["--no-sandbox", "--disable-gpu"]
        )
        if chosen.readme:
            make_readme(browser, data, README, wanted)
            return 0
        chosen.to.mkdir(parents=True, exist_ok=True)
        studio = Studio(browser, chosen.to, wanted, languages, schemes, widths)
        pictures = make_all(studio, data)
    wide = [one.file for one in pictures if not one.fits]
    print(f"{len(pictures)} pictures: {chosen.to / 'index.html'}")
    for file in wide:
        print(f"It can be scrolled sideways: {file}", file=sys.stderr)
    return 1 if wide else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
