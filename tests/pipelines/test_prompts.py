"""Prompts: complete in both languages, filled safely, known by their hash."""

from __future__ import annotations

import tomllib
from pathlib import Path
from string import Template
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

import pipelines.methods
from pipelines.base import ASSETS, FilledText, Language, Message, Passage
from pipelines.prompts import Prompts, load_prompts

LANGUAGES: tuple[Language, ...] = get_args(Language)
FILES = sorted((ASSETS / "prompts").glob("*.toml"))

# Which prompt each set of demonstrations fills.
DEMONSTRATED = {
    ("chain_of_thought", "reasoned"): "question",
    ("ever", "validate"): "validate_sentence",
    ("ever", "verify"): "verify",
    ("nearest", "answer"): "answer_question",
    ("rowen", "paraphrase"): "paraphrase",
    ("rowen", "paraphrase_yes_no"): "paraphrase",
    ("rowen", "translate_en"): "translate",
    ("rowen", "translate_zh"): "translate",
}
PLAIN = {("rowen", "single")}
"""Sets whose questions and replies are turns as they are, and fill no prompt."""


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_prompt_exists_in_both_languages(path: Path):
    texts = tomllib.loads(path.read_text(encoding="utf-8"))
    assert texts["en"].keys() == texts["zh"].keys()
    assert len(load_prompts(path.stem).hash) == 16


def test_filling_leaves_dollar_signs_of_values_alone_and_misses_nothing():
    prompts = Prompts("x", '[en]\na = "Q: $question"\n[zh]\na = "问：$question"\n')
    assert prompts.fill("en", "a", question="$5 $x") == "Q: $5 $x"
    assert prompts.fill("zh", "a", question="?") == "问：?"
    with pytest.raises(KeyError):
        prompts.fill("en", "a")


PIECES = Prompts(
    "x",
    """
[en]
ask = "  $a, $b and $a: $$5\\n"
list = "Of $things"
passage = "[$rank] $title: $text"
untitled = "[$rank] $text"
""",
)


def known(text: FilledText) -> list[tuple[str, dict[str, list[str]]]]:
    """The prompts in a text, each with the pieces of the text that fill it."""
    return [
        (
            one.key,
            {name: [text[a:b] for a, b in found] for name, found in one.values.items()},
        )
        for one in text.filled
    ]


def test_a_filled_text_knows_its_prompt_and_where_its_values_stand():
    text = PIECES.fill("en", "ask", a="x y", b="", c="no")
    assert text == "x y,  and x y: $5"
    assert known(text) == [("ask", {"a": ["x y", "x y"], "b": [""]})]
    (prompt,) = text.filled
    assert (prompt.file, prompt.language, prompt.start, prompt.end) == ("x", "en", 0, len(text))
    assert prompt.values["a"] == ((0, 3), (10, 13))
    assert prompt.texts(text) == {"a": "x y", "b": ""}


def test_white_space_that_is_cut_off_moves_the_places():
    text = PIECES.fill("en", "ask", a=" \n x ", b="y")
    assert text == "x , y and  \n x : $5"
    assert known(text) == [("ask", {"a": ["x ", " \n x "], "b": ["y"]})]
    assert PIECES.fill("en", "list", things="all \n").filled[0].values == {"things": ((3, 6),)}


def test_a_prompt_inside_another_keeps_its_places():
    one = Passage(id="1", title="T", text="Rain.", source="s")
    other = Passage(id="2", title="", text="Sun.", source="s")
    (message,) = PIECES.turns("en", "list", things=PIECES.listed("en", [one, other]))
    assert message.content == "Of [1] T: Rain.\n[2] Sun."
    # What is stored and read back says the same.
    read = Message.model_validate_json(message.model_dump_json())
    for text in (message.text, read.text):
        assert known(text) == [
            ("list", {"things": ["[1] T: Rain.\n[2] Sun."]}),
            ("passage", {"rank": ["1"], "title": ["T"], "text": ["Rain."]}),
            ("untitled", {"rank": ["2"], "text": ["Sun."]}),
        ]


VALUES = st.text(alphabet="a $\n字", max_size=6)


@given(VALUES, VALUES)
def test_the_values_fill_the_prompt_to_the_same_text(a: str, b: str):
    text = FilledText.joined("--", ("before", PIECES.fill("en", "ask", a=a, b=b)))
    (prompt,) = text.filled
    template = Template(PIECES.text("en", "ask"))
    sent = text[prompt.start : prompt.end]
    assert sent == template.substitute(a=a, b=b).strip()
    assert [sent.count(one) for one in prompt.texts(text).values()] >= [1, 1]


def test_what_a_message_was_made_of_makes_it_no_other_message():
    filled = PIECES.fill("en", "list", things="all")
    made = Message(role="user", content=filled)
    plain = Message(role="user", content=str(filled))
    assert made.filled
    assert made == plain
    assert len({made, plain}) == 1
    assert made != Message(role="system", content=filled)
    assert "filled" not in plain.model_dump_json()
    assert type(made.content) is str


def test_a_place_outside_the_text_is_refused():
    far = PIECES.fill("en", "list", things="all things").filled
    with pytest.raises(ValueError, match="outside"):
        Message(role="user", content="Of all", filled=far)


def test_another_wording_has_another_hash():
    one, other = (Prompts("x", f'[en]\na = "{text}"\n') for text in ("a", "b"))
    assert one.hash != other.hash


SHOTS = """
[en]
rules = "Reply to $name briefly."
ask = "Q: $question"
[[en.shots]]
of = "short"
question = "One?"
reply = " 1 "
[[en.shots]]
of = "long"
question = "Which one?"
reply = "The first."
[[en.shots]]
of = "short"
question = "Two, $name?"
reply = "2"
[zh]
rules = "请简短。"
ask = "问：$question"
"""


def test_a_set_of_demonstrations_is_found_by_its_name():
    prompts = Prompts("x", SHOTS)
    assert [shot["reply"].strip() for shot in prompts.shots("en", "short")] == ["1", "2"]
    assert [shot["question"] for shot in prompts.shots("en", "long")] == ["Which one?"]
    assert prompts.shots("en", "other") == prompts.shots("zh", "short") == []


def test_demonstrations_stand_between_instructions_and_request():
    prompts = Prompts("x", SHOTS)
    turns = prompts.turns("en", "rules", "ask", shots="short", name="Ada", question="Three?")
    assert [(turn.role, turn.content) for turn in turns] == [
        ("system", "Reply to Ada briefly."),
        ("user", "Q: One?"),
        ("assistant", "1"),
        # What stands in a demonstration is no placeholder.
        ("user", "Q: Two, $name?"),
        ("assistant", "2"),
        ("user", "Q: Three?"),
    ]
    alone = prompts.turns("en", "ask", shots="long", question="Three?")
    assert [turn.role for turn in alone] == ["user", "assistant", "user"]
    assert [turn.role for turn in prompts.turns("en", "ask", question="Three?")] == ["user"]


def shots_of(path: Path, language: Language) -> list[dict[str, Any]]:
    return tomllib.loads(path.read_text(encoding="utf-8"))[language].get("shots", [])


def sets() -> set[tuple[str, str]]:
    """The sets of all shipped files, each with the name of its file."""
    return {
        (path.stem, shot["of"])
        for path in FILES
        for language in LANGUAGES
        for shot in shots_of(path, language)
    }


def test_every_set_is_known_by_the_prompt_that_it_fills():
    assert sets() == {*DEMONSTRATED, *PLAIN}


@pytest.mark.parametrize(("file", "name"), sorted(DEMONSTRATED))
def test_every_demonstration_fills_its_prompt_in_both_languages(file: str, name: str):
    prompts, key = load_prompts(file), DEMONSTRATED[file, name]
    path = ASSETS / "prompts" / f"{file}.toml"
    for language in LANGUAGES:
        source = tomllib.loads(path.read_text(encoding="utf-8"))[language][key]
        wanted = set(Template(source).get_identifiers())
        found = prompts.shots(language, name)
        for shot in found:
            assert shot.keys() - {"of", "reply"} == wanted
            assert all(value.strip() for value in shot.values())
        values = dict.fromkeys(wanted, "?")
        turns = prompts.turns(language, key, shots=name, **values)
        assert [turn.role for turn in turns] == [*["user", "assistant"] * len(found), "user"]
    counts = {len(prompts.shots(language, name)) for language in LANGUAGES}
    # What is translated is in the other language alone.
    assert counts == {0, 4} if name.startswith("translate") else len(counts) == 1


@pytest.mark.parametrize(("file", "name"), sorted(sets()))
def test_every_set_is_asked_for(file: str, name: str):
    methods = Path(pipelines.methods.__path__[0])
    modules = [*methods.rglob(f"{file}.py"), *methods.glob(f"{file}/*.py")]
    lines = [line for one in modules for line in one.read_text(encoding="utf-8").splitlines()]
    begun = name.removesuffix("_en").removesuffix("_zh")
    said = (f'"{name}"', f'"{begun}_' + "{target}")
    assert any("shots" in line and any(one in line for one in said) for line in lines)
