import pytest

from components.messages import Catalogue
from components.numbers import comparison, duration, integer, nats, probability, two_digits


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (0.4234, "0.42"),
        (0.05, "0.050"),
        (0.00031, "0.00031"),
        (0.00000012, "0.00000012"),
        (1.26, "1.3"),
        (14.2, "14"),
        (99.6, "100"),
        (412.3, "412"),
        (-0.427, "-0.43"),
    ],
)
def test_two_significant_digits(value: float, text: str) -> None:
    assert two_digits(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "–"),
        (0.0, "0"),
        (0.0004, "<0.001"),
        (0.18, "0.18"),
        (0.994, "0.99"),
        (0.9996, ">0.99"),
        (1.0, "1.0"),
    ],
)
def test_probabilities_near_the_ends_say_so(value: float | None, text: str) -> None:
    assert probability(value) == text


@pytest.mark.parametrize(
    ("value", "text"), [(None, "–"), (0.0, "0"), (0.004, "<0.01"), (2.71, "2.7"), (0.31, "0.31")]
)
def test_entropies(value: float | None, text: str) -> None:
    assert nats(value) == text


@pytest.mark.parametrize(
    ("value", "threshold", "expected"),
    [
        (0.42, 0.6, ("0.42", "<", "0.60")),
        (2.71, 2.5, ("2.71", ">", "2.50")),
        (0.598, 0.6, ("0.598", "<", "0.600")),
        (0.60004, 0.6, ("0.60004", ">", "0.60000")),
        (0.6, 0.6, ("0.60", "=", "0.60")),
        (0.6 + 1e-12, 0.6, ("0.600000", ">", "0.600000")),
    ],
)
def test_a_comparison_is_seen_to_be_true(
    value: float, threshold: float, expected: tuple[str, str, str]
) -> None:
    assert comparison(value, threshold) == expected


@pytest.mark.parametrize(
    ("seconds", "english", "chinese"),
    [
        (0.0, "0.00 s", "0.00 秒"),
        (0.844, "0.84 s", "0.84 秒"),
        (4.13, "4.1 s", "4.1 秒"),
        (9.97, "10 s", "10 秒"),
        (42.4, "42 s", "42 秒"),
        (59.7, "1 min 0 s", "1 分 0 秒"),
        (187.2, "3 min 7 s", "3 分 7 秒"),
    ],
)
def test_durations(seconds: float, english: str, chinese: str) -> None:
    assert duration(seconds, Catalogue("en")) == english
    assert duration(seconds, Catalogue("zh")) == chinese


def test_counts_have_their_thousands_set_apart() -> None:
    assert integer(1234567) == "1,234,567"
