"""Prompts: their text with its placeholders, the user's text against the default, and a trial."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from itertools import groupby
from string import Template

from components.base.elements import TableRow, notice, part, sign, table
from components.base.html import Child, Content, Html, tag
from components.base.words import Catalogue, lang, method_names, named, probability
from components.run.text import diff_html
from pipelines.base import Choice, FilledPrompt, FilledText, Generation, Language
from pipelines.engine.profiles import SentPrompt, uncalibrated
from pipelines.error_words import phrase_in
from pipelines.prompts import PromptProblem, Wording, load_prompts, own_prompts, shipped_text
from pipelines.run.view import RunView

Place = tuple[str, str, str]
"""A prompt: its file, its language, its name in the file."""


def own_prompts_words(own: Collection[Place], t: Catalogue) -> str:
    """Return which prompts are not the default's, in a sentence."""
    listed = t("list.separator").join(place_words(place, t) for place in own)
    return t("prompts.own", count=len(own), list=listed)


def place_words(place: Place, t: Catalogue) -> str:
    """Return a prompt as people name it: "ever/verify (English)"."""
    file, language, key = place
    return t("prompts.place", name=f"{file}/{key}", language=named("language", language, t))


def prompt_title(file: str, key: str, t: Catalogue) -> str:
    """Return what a prompt is for, in a few words; its name where there are none."""
    return t.first(f"prompt.{file}.{key}", f"prompt.{key}") if _worded(file, key, t) else key


def _worded(file: str, key: str, t: Catalogue) -> bool:
    return t.has(f"prompt.{file}.{key}") or t.has(f"prompt.{key}")


def own_prompts_note(view: RunView, t: Catalogue) -> Html | None:
    """Return the note, wherever a run is shown, that it used other prompts than the default ones.

    None for a run with the default prompts.
    """
    wording = view.header.spec.prompts if view.header else {}
    own = own_prompts(wording)
    if not own:
        return None
    said = [own_prompts_words(own, t)]
    methods = [one.name for one in view.header.spec.methods] if view.header else []
    if loose := uncalibrated(methods, wording):
        names = method_names(loose, t)
        said.append(t("prompts.uncalibrated", list=names))
    return notice(" ".join(said), "own-prompts")


def wording_diffs(view: RunView, t: Catalogue) -> Html | None:
    """Return every prompt of the run's own against the default, for a report; None without any.

    Where the default is not there any more, the run's text stands alone.
    """
    wording = view.header.spec.prompts if view.header else {}
    parts = prompt_diffs(wording, t)
    return tag("div.vs-stack", parts, key="wording") if parts else None


def prompt_diffs(wording: Wording, t: Catalogue) -> list[Html]:
    """Return each prompt of `wording` against the default, under its name."""
    own = own_prompts(wording).items()
    return [part(place_words(place, t), prompt_diff(place, text, t)) for place, text in own]


def prompt_diff(place: Place, text: str, t: Catalogue) -> Html:
    """Return `text` against the shipped text of the prompt."""
    return tag("div.vs-prompt-diff", wording_diff(place, shipped_text(*place), text, t))


def wording_diff(place: Place, before: str, after: str, t: Catalogue) -> str:
    """Return two texts of a prompt as a difference, word by word in its language."""
    code: Language = "zh" if place[1] == "zh" else "en"
    return diff_html(before, after, code, t)


def prompt_view(text: str, language: str, title: str, t: Catalogue) -> str:
    """Return a prompt as it is, its placeholders marked, under `title`."""
    names = list(dict.fromkeys(Template(text).get_identifiers()))
    listed = " ".join(f"${name}" for name in names)
    said = t("prompts.placeholders", list=listed) if names else t("prompts.no_placeholders")
    return tag(
        "section.vs-run.vs-prompt",
        tag("h3.vs-label", title),
        tag("div.vs-prompt-text.vs-card.vs-padded", _marked(text), lang=lang(language), dir="auto"),
        tag("p.vs-note", said),
        aria_label=title,
    )


def _marked(text: str) -> list[Child]:
    """Return the text with every placeholder as a mark of its own."""
    parts: list[Child] = []
    at = 0
    for match in Template.pattern.finditer(text):
        if match["named"] or match["braced"]:
            parts += [text[at : match.start()], tag("code.vs-placeholder", match[0])]
            at = match.end()
    return [*parts, text[at:]]


def problems_view(problems: Iterable[PromptProblem], t: Catalogue) -> str:
    """Return what is wrong with a text, one line each, with its place."""
    lines = (tag("li", sign("✗"), phrase_in(one.phrase, t.language)) for one in problems)
    return tag("ul.vs-error.vs-prompt-problems", lines, role="alert", key="problems")


def difference_view(place: Place, text: str, t: Catalogue) -> str:
    """Return what the user's text changes, under its name."""
    title = t("prompts.diff")
    return tag(
        "section.vs-run.vs-prompt",
        tag("h3.vs-label", title),
        prompt_diff(place, text, t),
        aria_label=title,
    )


def shots_view(place: Place, t: Catalogue) -> str:
    """Return the demonstrations of a file that fill this prompt, to be read; "" where there
    are none.
    """
    file, language, key = place
    prompts, wanted = load_prompts(file), set(load_prompts(file).placeholders(language, key))
    rows = [
        TableRow(f"shot-{number}", [tag("bdi", shot[name]) for name in (*sorted(wanted), "reply")])
        for number, shot in enumerate(prompts.every_shot(language))
        if wanted and set(shot) - {"of", "reply"} == wanted
    ]
    if not rows:
        return ""
    title = t("prompts.shots", count=len(rows))
    columns = [*(f"${name}" for name in sorted(wanted)), t("prompts.reply")]
    note = tag("p.vs-note", t("prompts.shots.note"))
    return tag("section.vs-run", tag("h3.vs-label", title), note, table(title, columns, rows))


def filled_view(found: SentPrompt, filled: str, language: str, t: Catalogue) -> str:
    """Return the values of a recorded run, and the text that they fill."""
    code: Language = "zh" if language == "zh" else "en"
    pairs = (
        tag(
            "div",
            tag("dt", tag("code.vs-placeholder", f"${name}")),
            tag("dd", _long(value, f"${name}", "vs-prompt-value")),
        )
        for name, value in found.values.items()
    )
    title = t("prompts.values")
    values = tag("dl.vs-prompt-values", pairs) if found.values else None
    same = filled == found.text
    sent = t("prompts.filled.same" if same else "prompts.filled")
    sent_text = marked_text(found.message.text, found.part.start, found.part.end)
    changed = sent_text if same else diff_html(found.text, filled, code, t)
    css = f"vs-prompt-long {'vs-prompt-text vs-card vs-padded' if same else 'vs-prompt-diff'}"
    body = _long(changed, sent, css, lang=lang(language))
    return tag(
        "section.vs-run.vs-stack",
        tag("div", tag("h3.vs-label", title), values) if values is not None else None,
        tag("div", tag("h3.vs-label", sent), body),
    )


def marked_text(text: str, start: int = 0, end: int | None = None) -> list[Child]:
    """Return `text`[`start`:`end`] with every value that fills a prompt as a mark of its own.

    Of a prompt inside another one, the values are marked, and its own words are not. A text that
    does not say what it was made of has no marks.
    """
    filled = text.filled if isinstance(text, FilledText) else ()
    if not filled:
        return [text[start:end]]
    # What each character belongs to; what stands inside comes later and counts.
    names = [""] * len(text)
    for one in filled:
        names[one.start : one.end] = [""] * (one.end - one.start)
        for name, pieces in one.values.items():
            for first, last in pieces:
                names[first:last] = [f"${name}"] * (last - first)
    parts: list[Child] = []
    at = start
    for name, run in groupby(names[start:end]):
        piece = text[at : at + sum(1 for _ in run)]
        at += len(piece)
        parts.append(tag("span.vs-value", piece, title=name) if name else piece)
    return parts


def prompts_note(text: FilledText, t: Catalogue) -> Html | None:
    """Return the note under a text that was sent: of which prompts it was made; None for no such.

    Prompts inside others are not named.
    """
    outermost: list[FilledPrompt] = []
    for one in text.filled:
        if not outermost or one.start >= outermost[-1].end:
            outermost.append(one)
    if not outermost:
        return None
    places = dict.fromkeys((one.file, one.language, one.key) for one in outermost)
    listed = t("list.separator").join(place_words(place, t) for place in places)
    filled = any(one.values for one in text.filled)
    key = "calls.filled_prompt" if filled else "calls.prompt"
    return tag("p.vs-note", t(key, list=listed, count=len(places)))


def _long(text: Content, label: str, css: str, **attributes: str) -> Html:
    """Return a text that may be long: it scrolls in its own place, for a keyboard too."""
    about = {"role": "group", "aria_label": label, "tabindex": "0", **attributes}
    return tag("div", text, class_=css, dir="auto", **about)


def replies_view(
    before: Generation | Choice | None,
    after: Generation | Choice | None,
    models: tuple[str, str],
    t: Catalogue,
) -> str:
    """Return the recorded reply, and a model's reply to the user's wording, side by side."""
    sides = (
        ("prompts.reply.run", models[0], before),
        ("prompts.reply.now", models[1], after),
    )
    return tag(
        "div.vs-run.vs-prompt-replies",
        (
            tag(
                "section.vs-card.vs-padded",
                tag("h3.vs-label", t(title, model=model)),
                _reply(reply, t),
                aria_label=t(title, model=model),
                key=title,
            )
            for title, model, reply in sides
        ),
    )


def _reply(reply: Generation | Choice | None, t: Catalogue) -> list[Child]:
    if reply is None:
        return [tag("p.vs-note", t("prompts.reply.none"))]
    if isinstance(reply, Generation):
        text = reply.text.strip()
        return [tag("p.vs-answer.vs-prompt-text", text or t("prompts.reply.empty"), dir="auto")]
    options = (
        tag(
            "li",
            tag("bdi.vs-strong", label),
            " ",
            tag("span.vs-num", f"P = {probability(value)}"),
        )
        for label, value in sorted(reply.probabilities.items(), key=lambda one: -one[1])
    )
    said = tag("p.vs-note", t("prompts.reply.choice"))
    return [tag("ul.vs-plain-list", options), said]
