"""What is trained on and what is kept back."""

from __future__ import annotations

from pipelines.training.examples import Example
from pipelines.training.recipe import Files, _texts, held_out
from pipelines.training.texts import statements


def pair(make: str, number: int = 0, group: str = "g") -> Example:
    return Example(
        evidence="e", statement=f"s{number}", label="supported", make=make, group=f"{group}{number}"
    )


def test_articles_that_statements_are_about_are_not_trained_on():
    measured_on = {row["article"] for row in statements("en")}
    trained_on = {text.name for text in _texts(Files())}
    assert measured_on
    assert len(trained_on) > 20
    assert not measured_on & trained_on


def test_groups_are_kept_back_whole_and_more_of_those_people_judged():
    groups = [f"g-{n}" for n in range(3000)]
    judged = [f"wikibio-{n}" for n in range(3000)]

    def share(names: list[str]) -> float:
        return sum(held_out(pair("m", group=name)) for name in names) / len(names)

    assert 0.06 < share(groups) < 0.11
    assert 0.14 < share(judged) < 0.20
    assert held_out(pair("wikibio", 3, "x")) == held_out(pair("statement", 3, "x"))
