"""The tables the sentence splitter goes by."""

from __future__ import annotations

import re

from pipelines.text.languages import HAN

__all__ = [
    "ABBREVIATIONS",
    "CLOSERS",
    "CONTINUES_TIME",
    "ENUMERATOR",
    "FIRST_ENUMERATOR",
    "LATIN_STOPS",
    "LINE_BREAKS",
    "LIST_MARKER",
    "MAY_END_ABBREVIATIONS",
    "NAMES_WITH_STOP",
    "NUMBERED_ABBREVIATIONS",
    "SPEECH_FOLLOWS",
    "STARTERS",
    "STOPS",
    "TIME_ABBREVIATIONS",
    "TRAILING_EMOJI",
]


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


LINE_BREAKS = r"\n\r\u2028\u2029\v\f"

LATIN_STOPS = ".!?\u203c\u2047\u2048\u2049"
_HAN_STOPS = "。！？｡"
STOPS = re.compile(rf"[{re.escape(LATIN_STOPS)}…{_HAN_STOPS}]+")

_EMOJI = (
    "\u200d\u20e3\u2600-\u27bf\u2b00-\u2bff\ufe0f\U0001f000-\U0001faff"
    # Keycap digits and tag characters only ever follow one of the above.
    "\U000e0020-\U000e007f"
)
# Quotes, brackets, Markdown emphasis, emoji and reference marks such as [3] that stick to the stop.
CLOSERS = re.compile(rf"(?:[\"'”’»›)\]}}」』）】》〉*_~`{_EMOJI}]|\[\d{{1,3}}\])*")
# An emoji that stands alone after the stop belongs to what was said before it.
TRAILING_EMOJI = re.compile(rf"[ \t]+[{_EMOJI}]+(?=\s|$)")

# Never the end of a sentence: something always follows.
ABBREVIATIONS = _words(
    "dr mr mrs ms messrs prof rev fr hon gov sen rep pres gen col lt capt cmdr maj sgt cpl pvt adm "
    "st ste mt ft e.g i.e cf vs viz approx ca incl esp resp v dept univ assn bros mme mlle sra "
    "srta herr dipl"
)
# Only an abbreviation in front of a number: "No. 5", "b. 1950", "Sept. 3".
NUMBERED_ABBREVIATIONS = _words(
    "no nos nr fig figs vol vols p pp ch chap sec sect art eq eqs para pt op ed b c d r fl ver "
    "jan feb mar apr jun jul aug sep sept oct nov dec ext tel lat long"
)
# May close a sentence too; then a word that usually opens one follows.
MAY_END_ABBREVIATIONS = _words(
    "al inc ltd co corp plc llc bros jr sr esq etc phd ph.d m.d b.a m.a b.sc m.sc ll.b u.s u.k u.n "
    "e.u u.s.a u.s.s.r d.c l.a n.y a.d b.c b.c.e c.e ave blvd rd hwy est min max ea"
)
TIME_ABBREVIATIONS = _words("a.m p.m")
# What can follow "3 p.m." inside one sentence though it has a capital.
CONTINUES_TIME = _words(
    "Monday Tuesday Wednesday Thursday Friday Saturday Sunday January February March April May "
    "June July August September October November December Mon Tue Wed Thu Fri Sat Sun EST EDT CST "
    "CDT MST MDT PST PDT GMT UTC CET CEST BST ET PT CT MT Eastern Central Mountain Pacific"
)
# Words that seldom come second in a name, so after a doubtful stop they open a sentence.
STARTERS = _words(
    "The A An This That These Those It Its He His She Her They Their We Our You Your I My In On At "
    "For From With After Before When While If But And Or So Yet However Although Though Since "
    "Because As There Here What Who Where Why How Which Both Some Many Most All Each Every No Not "
    "Today Later Then Also During Despite Nevertheless Moreover Furthermore Meanwhile Once Until "
    "Unlike Under Is Are Was Were Do Does Did Can Could Will Would Should Has Have Had Let Please "
    "Yes By To"
)
NAMES_WITH_STOP = _words("Yahoo! Jeopardy! Yum! Guess? Who? Oklahoma! Mamma! Panic! Wham!")

_BULLET = r"[-*+•‣◦▪●○–—·]|#{1,6}|>"
# A capital letter with a full stop is left out: it is more often an initial, "J. K. Rowling".
_NUMBERING = r"\(?(?:\d{1,3}|[a-z]|[A-Z](?=\))|[ivx]{1,5}|[IVX]{2,5})[.)](?!\d)"
_HAN_NUMBERING = r"(?:[一二三四五六七八九十]{1,3}|\d{1,3})[、．]|（[一二三四五六七八九十\d]{1,3}）"
# At the start of a line; it needs something after it on the same line.
LIST_MARKER = re.compile(
    rf"[ \t\u3000]*(?:(?:(?:{_BULLET}|{_NUMBERING})[ \t]+|(?:{_HAN_NUMBERING})[ \t]*)"
    rf"(?=[^\s{LINE_BREAKS}]))+"
)
# "2." or "b." alone in front of what it numbers, and the first of a list after a colon.
ENUMERATOR = re.compile(r"\(?(?:\d{1,3}|[A-Za-z]|[ivxIVX]{1,5})$")
FIRST_ENUMERATOR = re.compile(r"\(?[1aAi]$")

# Chinese speech: 「“你好！”他说」 goes on after the closing quote.
SPEECH_FOLLOWS = re.compile(rf"[，、；：,;:的地]|[{HAN}]{{0,4}}?(?:说|道|问|答|喊|叫|嚷|回应|表示)")
