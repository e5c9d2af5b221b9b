"""Rules for English entities, on cases that once went wrong or easily could."""

from __future__ import annotations

import pytest

from pipelines.text import EntityRecognizer

RULES = EntityRecognizer(trained=False)


def found(text: str) -> list[tuple[str, str]]:
    return [(entity.text, entity.label) for entity in RULES.recognize(text, "en")]


@pytest.mark.parametrize(
    ("text", "entity", "label"),
    [
        ("It began on 3 May 1999.", "3 May 1999", "DATE"),
        ("It began on Friday, May 3rd, 1999.", "Friday, May 3rd, 1999", "DATE"),
        ("It began in late August 2005.", "late August 2005", "DATE"),
        ("He may go in May.", "May", "DATE"),
        ("It fell in 476.", "476", "DATE"),
        ("He died on 15 March 44 BC.", "15 March 44 BC", "DATE"),
        ("Pompeii fell in AD 79.", "AD 79", "DATE"),
        ("He reigned 1939–45.", "1939–45", "DATE"),
        ("It lasted from 1914 to 1918.", "1914 to 1918", "DATE"),
        ("He wrote it between 1599 and 1601.", "between 1599 and 1601", "DATE"),
        ("It was made in the late 1990s.", "the late 1990s", "DATE"),
        ("Built in the 18th and 19th centuries.", "the 18th and 19th centuries", "DATE"),
        ("A vase of the Ming dynasty.", "the Ming dynasty", "DATE"),
        ("She is 42 years old.", "42 years old", "DATE"),
        ("She won it at the age of 18.", "18", "DATE"),
        ("He left three weeks ago.", "three weeks ago", "DATE"),
        ("It opens on 2024-05-06.", "2024-05-06", "DATE"),
        ("Be there at 7:45 a.m. sharp.", "7:45 a.m.", "TIME"),
        ("It took two and a half hours, then 9.58 seconds.", "9.58 seconds", "TIME"),
        ("It grew by 20-30%.", "20-30%", "PERCENT"),
        ("Nearly 40 percent stayed.", "Nearly 40 percent", "PERCENT"),
        ("It cost about US$3.5 billion.", "about US$3.5 billion", "MONEY"),
        ("He paid 12 pounds for it.", "12 pounds", "MONEY"),
        ("It weighs 12 pounds.", "12 pounds", "QUANTITY"),
        ("It is 9.2 million square kilometres.", "9.2 million square kilometres", "QUANTITY"),
        ("It was -5 °C outside.", "-5 °C", "QUANTITY"),
        ("He is 6 feet 2 inches tall.", "6 feet 2 inches", "QUANTITY"),
        ("She came twenty-first.", "twenty-first", "ORDINAL"),
        ("Two hundred and fifty thousand came.", "Two hundred and fifty thousand", "CARDINAL"),
        ("They won 3-2 at home.", "3-2", "CARDINAL"),
        ("Two thirds of them left.", "Two thirds", "CARDINAL"),
        ("2000 soldiers died.", "2000", "CARDINAL"),
        ("He met Vincent van Gogh.", "Vincent van Gogh", "PERSON"),
        ("He met J. K. Rowling.", "J. K. Rowling", "PERSON"),
        ("He met Dr. Martin Luther King Jr. there.", "Martin Luther King Jr.", "PERSON"),
        ("She was the wife of King Henry VIII.", "Henry VIII", "PERSON"),
        ("Joan of Arc was tried.", "Joan of Arc", "PERSON"),
        ("He joined the University of Oxford.", "the University of Oxford", "ORG"),
        ("He joined the Museum of Modern Art.", "the Museum of Modern Art", "ORG"),
        ("He founded Procter & Gamble.", "Procter & Gamble", "ORG"),
        ("Shares of Apple Inc. fell.", "Apple Inc.", "ORG"),
        ("They crossed the Sea of Japan.", "the Sea of Japan", "LOC"),
        ("They climbed Mount Kilimanjaro.", "Mount Kilimanjaro", "LOC"),
        ("The Great Wall of China is long.", "The Great Wall of China", "FAC"),
        ("He fought at the Battle of Hastings.", "the Battle of Hastings", "EVENT"),
        ("They signed the Treaty of Versailles.", "the Treaty of Versailles", "LAW"),
        (
            'He wrote "One Hundred Years of Solitude."',
            "One Hundred Years of Solitude",
            "WORK_OF_ART",
        ),
        ("He wrote *Pride and Prejudice* there.", "Pride and Prejudice", "WORK_OF_ART"),
        ("She speaks Portuguese.", "Portuguese", "LANGUAGE"),
        ("A Portuguese sailor came.", "Portuguese", "NORP"),
        ("He lives in Saint-Rémy-de-Provence.", "Saint-Rémy-de-Provence", None),
        ("He bought an iPhone.", "iPhone", "PRODUCT"),
        ("He read it in The Hague.", "The Hague", "GPE"),
    ],
)
def test_one_entity(text: str, entity: str, label: str | None) -> None:
    entities = dict(found(text))
    assert entity in entities
    assert label in (None, entities[entity])


@pytest.mark.parametrize(
    ("text", "entities"),
    [
        ("He was born in Hope, Arkansas.", ["Hope", "Arkansas"]),
        ("Charles Babbage's machine", ["Charles Babbage"]),
        ("French President Emmanuel Macron spoke.", ["French", "Emmanuel Macron"]),
        ("Rome and Athens, then Rome again.", ["Rome", "Athens", "Rome"]),
        ("Prince Albert I of Monaco", ["Albert I", "Monaco"]),
        ("The Prime Minister and the King met Congress.", ["Congress"]),
        ("Paris", ["Paris"]),
        ("He said: Paris", ["Paris"]),
        ("It is a Tokyo-based firm.", ["Tokyo"]),
        ("The Latvian-born artist", ["Latvian"]),
        ("See https://example.com/2017/09 or write to Bob@Example.com.", []),
    ],
)
def test_all_entities(text: str, entities: list[str]) -> None:
    assert [entity for entity, _ in found(text)] == entities


@pytest.mark.parametrize(
    "text",
    [
        "However, nobody knew why.",
        "Photosynthesis turns light into sugar.",
        "Quantum mechanics does not say.",
        "Bats sleep upside down.",
        "Apples are red. Ice melts. Dogs bark.",
        "Sure! Let me explain. I think so, but I'm not certain.",
        "As an AI language model, I use DNA and a CPU.",
        "No one can say; this one is right.",
        "The third-party tool failed.",
        "1. Mix the flour.\n2. Add the eggs.",
        "",
        "   \n ",
    ],
)
def test_no_entities(text: str) -> None:
    assert found(text) == []


def test_surname_alone_is_told_by_the_full_name_before_it() -> None:
    text = "Nnedi Okorafor was born in Cincinnati. Critics like Okorafor."
    assert found(text)[-1] == ("Okorafor", "PERSON")


def test_offsets_point_into_the_original_text() -> None:
    text = "  Caf\u00e9 owner José met \u201cBob\u201d\tin Zürich \U0001f389 on 3 May 1999."
    for entity in RULES.recognize(text):
        assert text[entity.start : entity.end] == entity.text
    assert ("Zürich", "GPE") in found(text)
