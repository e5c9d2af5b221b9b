"""Words without the marks around them: Markdown, and what stands raised above a line."""

from __future__ import annotations

import re
from html import unescape

_RAISED = str.maketrans("0123456789+-−=()n", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻⁼⁽⁾ⁿ")
_POWER = re.compile(r"[\d+\-−=()n]*\d[\d+\-−=()n]*|n")

_LONGEST = 20


def raised(text: str) -> str:
    """Return what stands raised as it can be written on one line: the 6 of 10⁶ is not that of 106.

    Numbers become raised numbers, one letter a power; other texts ("th", "[1]") stay.
    """
    bare = text.strip()
    if len(bare) < _LONGEST and _POWER.fullmatch(bare):
        return bare.translate(_RAISED)
    return f"^{bare}" if len(bare) == 1 and bare.isalpha() and bare.isascii() else text


# What is kept as it is: code, formulas, and what stands behind a backslash.
_KEPT = re.compile(
    r"^[ ]{0,3}(?P<fence>`{3,}|~{3,})[^\n]*\n(?P<block>.*?)(?:^[ ]{0,3}(?P=fence)[`~]*[ \t]*$|\Z)"
    r"|(?P<ticks>`+)(?!`)(?P<code>[^\n]+?)(?<!`)(?P=ticks)(?!`)"
    r"|(?P<math>\$\$.{1,2000}?\$\$|(?<![\\$\w])\$(?=[^\s$])[^$\n]*[^\s$\\]\$(?![\w$])"
    r"|\\\((?=[^)\n]{0,400}(?:[=^_{]|\\[a-z]))[^\n]{1,400}?\\\)"
    r"|\\\[(?=[^\]]{0,2000}(?:[=^_{]|\\[a-z])).{1,2000}?\\\])"
    r"|\\(?P<sign>[!-/:-@\[-`{-~])",
    re.MULTILINE | re.DOTALL,
)
_PLACE = re.compile("\ue000(\\d+)\ue001")

_LABEL = re.compile(r"(?m)^[ ]{0,3}\[(?!\^)([^\]\n]+)\]:[ \t]*<?\S+>?(?:[ \t]+[\"'(].*)?$\n?")
_ADDRESS = r"\((?:[^()]|\([^()]*\))*\)"
_ELEMENTS = (
    "a|abbr|b|big|blockquote|caption|center|cite|code|dd|details|div|dl|dt|em|figcaption|figure|font"
    "|h[1-6]|hr|i|img|ins|kbd|li|mark|ol|p|pre|q|section|small|span|strong|sub|summary|table|tbody"
    "|td|tfoot|th|thead|tr|tt|u|ul|var"
)
# Between these a star or a line is no mark: a*b*c, snake_case_name. Chinese has no spaces.
_ALPHABET = "0-9A-Za-zÀ-ɏͰ-ӿ_"
_MARKS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"<!--.*?-->", re.DOTALL), ""),
    (
        re.compile(
            r"<(script|style|del|s|strike)\b[^>]*>.{0,2000}?</\1>", re.DOTALL | re.IGNORECASE
        ),
        "",
    ),
    (re.compile(r"(?<![~\w])~~(?=\S)(.+?)(?<=\S)~~"), ""),
    # Of wikis: [[page|words]], pictures, and remarks between %%.
    (re.compile(r"!\[\[[^\]\n]*\]\]|(?s:(?<!\S)%%(?=\S).{0,2000}?%%)"), ""),
    (re.compile(r"\[\[(?:[^\]|\n]*\|)?([^\]|\n]+)\]\]"), r"\1"),
    (re.compile(rf"!\[([^\]]*)\](?:{_ADDRESS}|\[[^\]]*\])"), r"\1"),
    (re.compile(rf"\[([^\]]+)\]{_ADDRESS}"), r"\1"),
    (re.compile(r"\[([^\]\n]+)\]\[[^\]\n]*\]"), r"\1"),
    (re.compile(r"<((?:https?://|mailto:)[^<>\s]+)>"), r"\1"),
    (re.compile(r"(?m)^#{1,6}[ \t]+(.*?)[ \t]*#*$"), r"\1"),
    (re.compile(r"(?m)^(\S.*)\n(?:={2,}|-{2,})[ \t]*$"), r"\1"),
    (re.compile(r"(?m)^[ ]{0,3}(?:(?:\*[ \t]*){3,}|(?:-[ \t]*){3,}|(?:_[ \t]*){3,})$"), ""),
    # What programs that make sites of it put in.
    (re.compile(r"\{\{[<%][^{}\n]*[%>]\}\}|\{%-? ?\w[^{}\n]*%\}"), ""),
    # Attributes, and the boxes of several dialects, of which the title stays.
    (re.compile(r"\[([^\[\]\n]+)\](?=\{[.#])"), r"\1"),
    (
        re.compile(r"(?<=[\w`\"*_)])[ \t]?\{:?[ \t]*[.#][A-Za-z_-][^{}\n]*\}|(?m:^\{:[^{}\n]*\}$)"),
        "",
    ),
    (re.compile(r"(?m)^([ ]{0,3}>[ \t]?)\[!\w+\][+-]?[ \t]*"), r"\1"),
    (
        re.compile(
            r'(?m)^(?:!!!|\?\?\?\+?) [\w-]+(?: [\w -]*)?(?:"([^"\n]*)")?[ \t]*$'
            r"(?=\n(?:[ \t]*\n)?(?:[ ]{4}|\t))"
        ),
        r"\1",
    ),
    (re.compile(r"(?m)^:{3,}[ \t]*(?:\{[^}\n]*\}|\w+(?:\[(.*)\])?)?[ \t]*(.*)$"), r"\1\2"),
    (re.compile(r"(?m)^(?:[ ]{0,3}>[ \t]?)+"), ""),
    (re.compile(r"(\*\*|__)(?=\S)(.+?)(?<=\S)\1"), r"\2"),
    (re.compile(rf"(?<![{_ALPHABET}*])([*_])(?=\S)([^*_\n]+?)(?<=\S)\1(?![{_ALPHABET}*])"), r"\2"),
    (re.compile(r"(?<![=\w])==(?=[^\s=])([^=\n]+?)(?<=[^\s=])==(?![=\w])"), r"\1"),
    (re.compile(r"(?<![+\w])\+\+(?=[^\s+])([^+\n]+?)(?<=[^\s+])\+\+(?![+\w])"), r"\1"),
    (re.compile(r"(?<=\w)~([^\s~]{1,12})~(?!~)"), r"\1"),
    (re.compile(r"(?<=[\w)])\^([^\s^\[\]]{1,12})\^"), r"<sup>\1</sup>"),
    (re.compile(r"<br\s*/?>", re.IGNORECASE), "\n"),
    # A row of a table is a line, its cells apart.
    (re.compile(r"</t[dh]>\s*(?=<t[dh]\b)", re.IGNORECASE), " | "),
    (re.compile(r"</tr>\s*(?=<tr\b)|</(?:li|dt|dd)>\s*(?=<(?:li|dt|dd)\b)", re.IGNORECASE), "\n"),
    # Components of MDX.
    (re.compile(r"(?:</|(?<!\w)<)[A-Z][\w.]*(?:\s[^<>\n]*)?/?>"), ""),
    (re.compile(rf"</?(?:{_ELEMENTS})(?:\s[^<>]*)?/?>", re.IGNORECASE), ""),
    (re.compile(r"(?m)(?<=\S)(?:[ ]{2,}|\\)$"), ""),
)
_SUP = re.compile(r"<sup>([^<>]*)</sup>", re.IGNORECASE)
_ENTITY = re.compile(r"&(?:#\d{1,7}|#x[0-9a-f]{1,6}|[a-z][a-z0-9]{1,30});", re.IGNORECASE)


def plain_markdown(markdown: str) -> str:
    """Return the words of a Markdown text without its marks, and without what is crossed out; list
    signs, tables and formulas stay, and so does what stands in code.
    """
    kept: list[str] = []

    def keep(found: re.Match[str]) -> str:
        held = next((found[name] for name in ("block", "code", "math", "sign") if found[name]), "")
        kept.append(held)
        return f"\ue000{len(kept) - 1}\ue001"

    text = _KEPT.sub(keep, markdown.replace("\ue000", ""))
    labels = {found[1].casefold() for found in _LABEL.finditer(text) if not found[1].isdigit()}
    text = _LABEL.sub("", text)
    for pattern, replacement in _MARKS:
        text = pattern.sub(replacement, text)
    for label in labels:
        text = re.sub(rf"\[({re.escape(label)})\](?!\()", r"\1", text, flags=re.IGNORECASE)
    text = _SUP.sub(lambda found: raised(found[1]), text)
    text = _ENTITY.sub(lambda found: unescape(found[0]), text)
    return _PLACE.sub(lambda found: kept[int(found[1])], text)
