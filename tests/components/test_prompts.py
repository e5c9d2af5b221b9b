"""Prompts and profiles in view: texts, differences, problems, and the mark on a run."""

from __future__ import annotations

import pytest

from components.base.words import Catalogue
from components.page import run_notices
from components.profiles import (
    contents_words,
    price_words,
    profile_details,
    profile_view,
    template_view,
)
from components.prompts import (
    difference_view,
    filled_view,
    own_prompts_words,
    problems_view,
    prompt_title,
    prompt_view,
    replies_view,
    shots_view,
)
from components.run.compare import CompareColumn, changes_view, differences
from components.run.report import report_html
from pipelines.base import Choice, FilledPrompt, Generation, Language, Message
from pipelines.engine.profiles import TEMPLATES, SentPrompt, lacks
from pipelines.models.base import GenerationRequest
from pipelines.models.providers import Price
from pipelines.prompts import load_prompts, prompt_files, prompt_problems
from pipelines.run.events import ModelCalled, ModelSpec, RunStarted
from pipelines.run.view import RunView, fold
from pipelines.store.profiles import Profile, ProfileOrigin
from tests.components.html_rules import faults
from tests.scripted.recorded import Record, full_method

OWN = {"direct": {"en": {"system": "Answer <b>in one</b> word."}}}
PLACE = ("direct", "en", "system")


@pytest.fixture
def t() -> Catalogue:
    return Catalogue("en", strict=True)


def run(
    own: dict[str, dict[str, dict[str, str]]], method: str = "drad", name: str = "r1"
) -> RunView:
    """A finished run that had these prompts."""
    record = Record(method, run=name)
    full_method(record, method, "doubtful")
    record.finish()
    started, *rest = record.events
    assert isinstance(started, RunStarted)
    spec = started.spec.model_copy(update={"prompts": own})
    return fold((started.model_copy(update={"spec": spec}), *rest))


@pytest.mark.parametrize("language", ["en", "zh"])
def test_every_prompt_says_what_it_is_for(language: Language):
    t = Catalogue(language, strict=True)
    for file in prompt_files():
        for key in load_prompts(file).keys("en"):
            assert prompt_title(file, key, t) != key


def test_a_run_is_marked_wherever_it_is_shown(t: Catalogue):
    html = str(run_notices(run(OWN), None, t))
    assert "A prompt of your own: direct/system (English)" in html
    # DRAD's threshold was calibrated on answers to the default.
    assert "do not apply to this wording as they are: DRAD" in html
    assert "calibrated" not in str(run_notices(run(OWN, "rag"), None, t))
    assert run_notices(run({}), None, t) is None


def test_the_report_shows_the_difference_to_the_default(t: Catalogue):
    html = report_html(run(OWN), t)
    assert "A prompt of your own: direct/system (English)" in html
    assert "Prompts of its own, against the default" in html
    assert "<b>in one</b>" not in html
    assert "against the default" not in report_html(run({}), t)


def test_a_prompt_that_there_is_no_more_is_shown_without_a_default(t: Catalogue):
    gone = run({"retired": {"en": {"old": "Say it."}}})
    assert "retired/old (English)" in report_html(gone, t)


def test_what_changed_between_two_runs_shows_both_wordings(t: Catalogue):
    html = changes_view(run({}, name="a"), run(OWN, name="b"), t)
    assert "direct/system (English)" in html
    assert "vs-ins" in html
    assert "vs-del" in html


def test_columns_of_other_wordings_are_told_apart(t: Catalogue):
    other = {"direct": {"en": {"system": "Answer in two words."}}}
    columns = [CompareColumn(run(own), "drad") for own in (OWN, other)]
    (found,) = [one for one in differences(columns, t) if one.name == "Prompts"]
    assert len(set(found.values)) == 2
    assert all("direct/system (English)" in one for one in found.values)
    assert "Prompts" not in [one.name for one in differences([columns[0], columns[0]], t)]


def test_placeholders_are_marked_and_listed(t: Catalogue):
    html = prompt_view("From ${passages}: <i>$question</i> for $$5", "en", "Default", t)
    assert not list(faults(html))
    assert '<code class="vs-placeholder">$question</code>' in html
    assert '<code class="vs-placeholder">${passages}</code>' in html
    assert "<i>" not in html
    assert "Placeholders, all needed: $passages $question" in html
    assert "no placeholders" in prompt_view("Be brief.", "en", "Default", t)


def test_problems_are_said_with_their_places(t: Catalogue):
    html = problems_view(prompt_problems("$a\n $", ["b"]), t)
    assert not list(faults(html))
    assert "Line 1, column 1: there is no value for $a" in html
    assert "Line 2, column 2: a single dollar sign" in html
    assert "The placeholder $b is missing." in html
    for text in ("", "x" * 9000):
        assert 'role="alert"' in problems_view(prompt_problems(text, []), t)


def test_a_text_of_ones_own_is_shown_against_the_default(t: Catalogue):
    html = difference_view(PLACE, "Answer in one word.", t)
    assert not list(faults(html))
    assert "vs-del" in html


def test_examples_are_those_that_fill_the_prompt(t: Catalogue):
    html = shots_view(("nearest", "en", "answer_question"), t)
    assert not list(faults(html))
    assert "2 examples with their replies" in html
    assert "Brandt tunnel" in html
    assert shots_view(("nearest", "en", "answer"), t) == ""
    assert shots_view(PLACE, t) == ""


def sent(text: str = "Q: Why? \u202e") -> SentPrompt:
    part = FilledPrompt(
        file="x", language="en", key="ask", start=0, end=len(text), values={"question": ((3, 9),)}
    )
    message = Message(role="user", content=text, filled=(part,))
    call = ModelCalled(
        run="r",
        span="s",
        parent=None,
        seq=1,
        time=0.0,
        role="main",
        model="tiny",
        request=GenerationRequest(messages=(message,)),
        attempt=1,
        started=0.0,
        generations=(Generation(text="Because."),),
    )
    return SentPrompt(call, 0, part)


def test_the_filled_text_is_shown_with_its_values(t: Catalogue):
    same = filled_view(sent(), "Q: Why? \u202e", "en", t)
    assert not list(faults(same))
    assert "What the run sent" in same
    assert "$question" in same
    assert '<span class="vs-value" title="$question">' in same
    assert "\u202e" not in same
    other = filled_view(sent(), "Please: Why? \u202e", "en", t)
    assert not list(faults(other))
    assert "What would be sent" in other
    assert "vs-ins" in other


def test_replies_stand_side_by_side(t: Catalogue):
    choice = Choice(probabilities={"yes": 0.81, "no": 0.19}, other_mass=0.0, source="logprobs")
    html = replies_view(Generation(text="Be<b>cause."), choice, ("tiny", "large"), t)
    assert not list(faults(html))
    assert "Reply in the run: tiny" in html
    assert "P = 0.81" in html
    assert html.index("yes") < html.index(">no<")
    assert "The call failed" in replies_view(None, Generation(text=" "), ("a", "b"), t)


def test_a_profile_says_what_is_in_it_and_what_it_needs(t: Catalogue):
    profile = Profile(
        name="Mine <i>",
        description="For the paper.",
        settings={"drad": {"theta_1": 0.7, "max_tokens": 64}},
        models={
            "main": ModelSpec(
                kind="openai", name="GPT", model="gpt", price=Price(read=0.15, written=0.6)
            ),
            "verifier": ModelSpec(kind="openai", name="Local", model="q", base_url=""),
        },
        prompts=OWN,
        origin=ProfileOrigin(study="theta_1", data_set="Nine", date="2026-01-02"),
    )
    lacking = lacks(profile.models, {})
    html = profile_view(profile, lacking, True, t)
    assert not list(faults(html))
    assert "2 roles with a model · 2 settings that differ · 1 prompt that differs · 1 price" in html
    assert "GPT (main model) needs a key" in html
    assert "needs the address of its server" in html
    assert "in use" in html
    assert "<i>" not in html
    details = profile_details(profile, t)
    assert not list(faults(details))
    for words in ("0.15 read, 0.6 written USD", "0.7", "direct/system (English)", "vs-ins"):
        assert words in details
    assert contents_words(Profile(name="x"), t) == "nothing"
    assert price_words(ModelSpec(), t) == "–"
    assert profile_details(Profile(name="x"), t)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_templates_are_drawn(language: Language):
    t = Catalogue(language, strict=True)
    for one in TEMPLATES.values():
        html = template_view(one, lacks(one.models, {}), t)
        assert not list(faults(html))
        assert ("vs-profile-lack" in html) == (one.name != "embedded")


def test_several_are_counted(t: Catalogue):
    words = own_prompts_words([PLACE, ("ever", "zh", "verify")], t)
    assert words == "2 prompts of your own: direct/system (English), ever/verify (Chinese)"
