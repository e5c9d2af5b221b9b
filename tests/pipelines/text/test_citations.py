"""Which sources a text cites: marks of every form, and what each of them means."""

from __future__ import annotations

import pytest

from pipelines.text import split_sentences
from pipelines.text.citations import citations_in, claim_in, references_in

EIFFEL = "The Eiffel Tower\nhttps://www.example.org/eiffel/\nIt was built in 1889."
LEE = "Lee, S. and Kim, J. (2020). Towers of iron. It is made of wrought iron."
ZHANG = "张三、李四（2019）：铁塔研究。埃菲尔铁塔高330米。"
THREE = (EIFFEL, LEE, ZHANG)


def read(text: str, sources: tuple[str, ...] = THREE) -> list[tuple[str, int, int]]:
    """The mark of each citation, its sentence and its source."""
    return [(one.mark, one.sentence, one.source) for one in citations_in(text, sources)]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("It is tall [1].", [("[1]", 0, 1)]),
        ("It is tall.[1] It is old.[2]", [("[1]", 0, 1), ("[2]", 1, 2)]),
        ("It is tall. [1] It is old. [2]", [("[1]", 0, 1), ("[2]", 1, 2)]),
        ("It is tall [1][2].", [("[1]", 0, 1), ("[2]", 0, 2)]),
        ("It is tall [1, 3].", [("[1, 3]", 0, 1), ("[1, 3]", 0, 3)]),
        ("It is tall [1-3].", [("[1-3]", 0, 1), ("[1-3]", 0, 2), ("[1-3]", 0, 3)]),
        ("It is tall [1–2; 3].", [("[1–2; 3]", 0, n) for n in (1, 2, 3)]),
        ("It is tall [9].", [("[9]", 0, 0)]),
        ("It is tall【1】.", [("【1】", 0, 1)]),
        ("It is tall 【2†source】.", [("【2†source】", 0, 2)]),
        ("It is tall【4:1†a.pdf】.", [("【4:1†a.pdf】", 0, 2)]),
        ("它很高【1】。它很旧[2]。", [("【1】", 0, 1), ("[2]", 1, 2)]),
        ("它很高［3］。", [("［3］", 0, 3)]),
        ("它很高[来源2]。", [("[来源2]", 0, 2)]),
        ("它很高（来源：3）。", [("（来源：3）", 0, 3)]),
        ("It is tall [^2].", [("[^2]", 0, 2)]),
        ("It is tall.² It is old.", [("²", 0, 2)]),
        ("It is tall¹ and old².", [("¹", 0, 1), ("²", 0, 2)]),
        ("它很高¹。", [("¹", 0, 1)]),
        ("It is tall ^1^.", [("^1^", 0, 1)]),
        ("It is tall.^1", [("^1", 0, 1)]),
        ("It is tall <sup>1</sup>.", [("<sup>1</sup>", 0, 1)]),
        ("It is tall <cite>[1]</cite>.", [("<cite>[1]</cite>", 0, 1)]),
        (r"It is tall \cite{1,2}.", [(r"\cite{1,2}", 0, 1), (r"\cite{1,2}", 0, 2)]),
        ("It is tall [^1^].", [("[^1^]", 0, 1)]),
        ("It is tall [citation:2][citation:3].", [("[citation:2]", 0, 2), ("[citation:3]", 0, 3)]),
        ("It is tall [cite: 1, 2].", [("[cite: 1, 2]", 0, 1), ("[cite: 1, 2]", 0, 2)]),
        ("It is tall [#1].", [("[#1]", 0, 1)]),
        ("It is tall [S1][D2].", [("[S1]", 0, 1), ("[D2]", 0, 2)]),
        ("It is tall [web_1].", [("[web_1]", 0, 1)]),
        ("It is tall [1]–[3].", [("[1]–[3]", 0, n) for n in (1, 2, 3)]),
        ("It is tall [1 and 3].", [("[1 and 3]", 0, 1), ("[1 and 3]", 0, 3)]),
        ("It is tall [Doc 1, Doc 2].", [("[Doc 1, Doc 2]", 0, 1), ("[Doc 1, Doc 2]", 0, 2)]),
        ("It is tall (Source: document 2).", [("(Source: document 2)", 0, 2)]),
        ("According to source 2, it is iron.", [("According to source 2", 0, 2)]),
        ("According to source 9, it is iron.", []),
        ("As Document 2 says, it is iron.", [("As Document 2 says", 0, 2)]),
        ("根据资料2，铁塔很高。", [("根据资料2", 0, 2)]),
        ("铁塔很高[注1]。", [("[注1]", 0, 1)]),
        ("铁塔很高①②。", [("①②", 0, 1), ("①②", 0, 2)]),
        ("铁塔很高（参考资料1）。", [("（参考资料1）", 0, 1)]),
        ("铁塔很高〔1〕。", [("〔1〕", 0, 1)]),
        ("铁塔很高[資料2]。", [("[資料2]", 0, 2)]),
        ("It is iron (S. Lee, 2020).", [("(S. Lee, 2020)", 0, 2)]),
        ("It is iron (Lee, S., 2020).", [("(Lee, S., 2020)", 0, 2)]),
        ("It is tall, see www.example.org/eiffel.", [("www.example.org/eiffel", 0, 1)]),
        (
            "It is tall ([example.org](https://example.org/eiffel?utm_source=a)).",
            [("[example.org](https://example.org/eiffel?utm_source=a)", 0, 1)],
        ),
        (
            "It is tall [[1]](https://example.org/eiffel).",
            [("[[1]](https://example.org/eiffel)", 0, 1)],
        ),
        ("It is 5^2 or 10² metres, and e = mc^2.", []),
        ("①苹果②梨", []),
        ("It is tall [doc1].", [("[doc1]", 0, 1)]),
        ("It is tall [Source 3].", [("[Source 3]", 0, 3)]),
        ("It is tall [Document: 2].", [("[Document: 2]", 0, 2)]),
        ("It is tall (Source 2).", [("(Source 2)", 0, 2)]),
        ("It is tall [2, p. 14].", [("[2, p. 14]", 0, 2)]),
        ("It is iron (Lee and Kim, 2020).", [("(Lee and Kim, 2020)", 0, 2)]),
        ("It is iron (Lee, 2020).", [("(Lee, 2020)", 0, 2)]),
        ("It is iron (Lee 2020, p. 3).", [("(Lee 2020, p. 3)", 0, 2)]),
        ("It is iron (see Lee et al., 2020).", [("(see Lee et al., 2020)", 0, 2)]),
        ("It is iron [Lee et al., 2020].", [("[Lee et al., 2020]", 0, 2)]),
        ("Lee and Kim (2020) say iron.", [("Lee and Kim (2020)", 0, 2)]),
        ("Lee et al. (2020) say iron.", [("Lee et al. (2020)", 0, 2)]),
        (
            "It is iron (Lee, 2020; Smith, 2018).",
            [("(Lee, 2020; Smith, 2018)", 0, 2), ("(Lee, 2020; Smith, 2018)", 0, 0)],
        ),
        ("It is iron (Smith, 2018).", [("(Smith, 2018)", 0, 0)]),
        ("铁塔高330米（张三，2019）。", [("（张三，2019）", 0, 3)]),
        ("铁塔高330米（张三等，2019）。", [("（张三等，2019）", 0, 3)]),
        (
            "It is [tall](https://example.org/eiffel).",
            [("[tall](https://example.org/eiffel)", 0, 1)],
        ),
        ("It is tall (https://example.org/eiffel).", [("(https://example.org/eiffel)", 0, 1)]),
        ("It is tall: http://example.org/eiffel/#top", [("http://example.org/eiffel/#top", 0, 1)]),
        ("It is [tall](https://other.org).", [("[tall](https://other.org)", 0, 0)]),
        ("铁塔很高，见https://example.org/eiffel。", [("https://example.org/eiffel", 0, 1)]),
        ("It is tall.[1,2] It is old.[3]", [("[1,2]", 0, 1), ("[1,2]", 0, 2), ("[3]", 1, 3)]),
        ("It is tall.[Source 1] It is old.【2】", [("[Source 1]", 0, 1), ("【2】", 1, 2)]),
        ("It is tall.² It is old.[^1]", [("²", 0, 2), ("[^1]", 1, 1)]),
        ("It is iron (Lee, S. & Kim, J., 2020).", [("(Lee, S. & Kim, J., 2020)", 0, 2)]),
        ("It is tall [see 1].", [("[see 1]", 0, 1)]),
        ("It is tall [1, 2, and 3].", [("[1, 2, and 3]", 0, n) for n in (1, 2, 3)]),
        (
            "According to Document 1 and Document 2, it is tall.",
            [("According to Document 1 and Document 2", 0, n) for n in (1, 2)],
        ),
        ("It is tall¹ ².", [("¹", 0, 1), ("²", 0, 2)]),
        ("It is tall [1, Section 3].", [("[1, Section 3]", 0, 1)]),
        ("It is tall [1, §3] and [2: 14-16].", [("[1, §3]", 0, 1), ("[2: 14-16]", 0, 2)]),
        ('It is tall <source id="1">.', [('<source id="1">', 0, 1)]),
        ('It is tall <cite doc="2"/>.', [('<cite doc="2"/>', 0, 2)]),
        (
            "It is tall \ue200cite\ue202turn0search0\ue202turn0search1\ue201.",
            [("\ue200cite\ue202turn0search0\ue202turn0search1\ue201", 0, n) for n in (1, 2)],
        ),
        ("It is tall [turn0search1].", [("[turn0search1]", 0, 2)]),
        ("Source 2 states that it is iron.", [("Source 2 states that", 0, 2)]),
        ("Source 9 states that it is iron.", []),
        ("资料1显示铁塔建于1889年。", [("资料1显示", 0, 1)]),
        ("它很高。文献3指出，它高330米。", [("文献3指出", 1, 3)]),
        (
            "It is tall. According to source 2, it is iron.",
            [("According to source 2", 1, 2)],
        ),
        ("Es ist hoch [Quelle 1].", [("[Quelle 1]", 0, 1)]),
        ("Elle est haute [source n° 1].", [("[source n° 1]", 0, 1)]),
        ("Laut Quelle 2 ist es Eisen.", [("Laut Quelle 2", 0, 2)]),
        ("As Lee and Kim [2020] say, it is iron.", [("Lee and Kim [2020]", 0, 2)]),
        ("Lee and Kim's (2020) work says iron.", [("Lee and Kim's (2020)", 0, 2)]),
    ],
)
def test_marks_are_read_with_their_sentence_and_their_source(
    text: str, wanted: list[tuple[str, int, int]]
):
    assert read(text) == wanted


@pytest.mark.parametrize(
    "text",
    [
        "It opened in 1889 and is 330 m tall.",
        "It covers 20 km² of ground, 10² times as much.",
        "She was born there (Eiffel, 1889).",
        "A year in brackets (1889) is none, nor is [sic] or [...].",
        "Take `rows[0]` and x_1[2].",
        "A list: [a], [b].",
        "A range [1-900] is none.",
        "他出生于（1889年）。",
        "Read names['a'][0].",
        "Take a[1], the interval [0, 1] and the vector [1, 2, 3].",
        "It is arr[2], self.items[1] and list[0], and rows[1] = 3 sets it.",
        "As in equation [3], x = [1, 2].",
        "They made pyrido[1,2-a]indole and cyclopropa[1,2]benzene.",
        "It opened (May 2020), and closed in March (2021).",
        "He wrote it (since 2019).",
    ],
)
def test_what_looks_like_a_mark_is_none(text: str):
    assert read(text) == []


def test_a_place_and_a_year_are_no_citation_without_sources():
    assert read("He was born there (Paris, 1867).", ()) == []
    assert read("It was shown (Lee et al., 2020).", ()) == [("(Lee et al., 2020)", 0, 0)]


@pytest.mark.parametrize(
    ("references", "wanted"),
    [
        ("References\n[1] Towers of iron\n[2] https://example.org/eiffel", [2, 1]),
        (
            "**Sources:**\n1. Lee, S. and Kim, J. (2020). Towers of iron.\n2. The Eiffel Tower",
            [2, 1],
        ),
        ("[1]: Towers of iron\n[2]: https://www.example.org/eiffel/", [2, 1]),
        ("参考文献\n[1] 铁塔研究\n[2] The Eiffel Tower", [3, 1]),
        ("References\n[1] Something that is not here\n[2] Nothing", [1, 2]),
    ],
)
def test_a_list_of_references_says_what_a_number_means(references: str, wanted: list[int]):
    text = f"It is iron [1]. It is old [2].\n\n{references}"
    assert [source for _, _, source in read(text)] == wanted
    assert len(references_in(text)) == 2


WORKS = ("Towers of iron. doi:10.1000/xyz123", "Attention. arXiv:1706.03762. It attends.")


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("It is iron (doi:10.1000/xyz123).", [("(doi:10.1000/xyz123)", 0, 1)]),
        (
            "It is iron (https://doi.org/10.1000/XYZ123).",
            [("(https://doi.org/10.1000/XYZ123)", 0, 1)],
        ),
        ("It attends [arXiv:1706.03762v5].", [("[arXiv:1706.03762v5]", 0, 2)]),
        (
            "It attends, see https://arxiv.org/abs/1706.03762v2.",
            [("https://arxiv.org/abs/1706.03762v2", 0, 2)],
        ),
        ("It is iron (doi:10.1000/other).", [("(doi:10.1000/other)", 0, 0)]),
    ],
)
def test_a_work_is_known_by_its_identifier(text: str, wanted: list[tuple[str, int, int]]):
    assert read(text, WORKS) == wanted


@pytest.mark.parametrize(
    ("text", "mark"),
    [
        ("It is [tall][1].\n\n[1]: https://example.org/eiffel", "[tall][1]"),
        ("It is [tall][e].\n\n[E]: <https://example.org/eiffel> 'Tower'", "[tall][e]"),
        ("It is [tall][].\n\n[tall]: https://example.org/eiffel", "[tall][]"),
        ("It is tall.[^e]\n\n[^e]: The Eiffel Tower, https://example.org/eiffel", "[^e]"),
    ],
)
def test_a_link_whose_address_stands_below(text: str, mark: str):
    assert read(text) == [(mark, 0, 1)]
    assert claim_in(split_sentences(text)[0], citations_in(text, THREE)) == "It is tall."


def test_a_source_may_be_called_zero():
    sources = ("[0] It was built in 1889.", "[1] It is made of iron.")
    assert read("It is iron [0, 1].", sources) == [("[0, 1]", 0, 1), ("[0, 1]", 0, 2)]


def test_sources_with_numbers_of_their_own_are_called_by_these():
    sources = ("[7] It was built in 1889.", "[3] It is made of iron.")
    assert read("Iron [3], 1889 [7], what [1].", sources) == [
        ("[3]", 0, 2),
        ("[7]", 0, 1),
        ("[1]", 0, 0),
    ]


@pytest.mark.parametrize(
    ("text", "claim"),
    [
        ("It is tall [1].", "It is tall."),
        ("It is tall.[1]", "It is tall."),
        ("它很高【1】。", "它很高。"),
        ("Lee et al. (2020) say iron.", "Lee et al. say iron."),
        ("Source 2 states that it is iron.", "it is iron."),
        ("资料1显示铁塔建于1889年。", "铁塔建于1889年。"),
        ("It is iron (Lee, 2020).", "It is iron."),
        ("It is [tall](https://example.org/eiffel).", "It is tall."),
        ("It is tall [1] and old [2, 3].", "It is tall and old."),
    ],
)
def test_a_claim_is_the_sentence_without_its_marks(text: str, claim: str):
    (span,) = split_sentences(text)
    assert claim_in(span, citations_in(text, THREE)) == claim


@pytest.mark.parametrize(
    "text",
    [
        "It is tall [1](https://example.org/eiffel).",
        "It is tall [[1]](https://example.org/eiffel).",
        "It is tall ([example.org](https://example.org/eiffel)).",
        "According to source 1, It is tall.",
        "It is tall <sup>1</sup>.",
        "It is tall ([1], [2]).",
        "It is tall [[1], [2]].",
    ],
)
def test_a_mark_leaves_no_number_in_the_sentence(text: str):
    (span,) = split_sentences(text)
    assert claim_in(span, citations_in(text, THREE)) == "It is tall."
