"""HTML of views made fit for one file."""

from __future__ import annotations

from components.base.html import Json, Styles, below, join, tag, with_prefix, without_buttons
from tests.components.html_tree import read


def test_styles_of_elements_become_a_sheet():
    styles = Styles()
    html = styles.collect(
        join([tag("i", style="width:31%;--row:2"), tag("b", "x", style="width:31%;--row:2")])
    )
    again = styles.collect(tag("i", style="left:0"))
    assert html == '<i data-style="1"></i><b data-style="1">x</b>'
    assert again == '<i data-style="2"></i>'
    assert styles.sheet() == (
        '[data-style="1"]{width:31% !important;--row:2 !important}\n'
        '[data-style="2"]{left:0 !important}'
    )


def test_a_style_that_could_leave_its_rule_is_left_out():
    styles = Styles()
    assert styles.collect(tag("i", style="left:0}</style>")) == "<i></i>"
    assert styles.sheet() == ""


def test_texts_that_look_like_attributes_stay_as_they_are():
    text = ' style="left:0" id="x" <i style="left:0">'
    data = Json([text, "a id=", "</button>"])
    html = tag("p", text, title=text, data_words=data, data_action="no")
    styles = Styles()
    assert styles.collect(html) == html
    assert with_prefix(html, "a-") == html
    (node,) = read(with_prefix(html, "a-")).all("p")
    assert node.text() == text


def test_ids_and_what_refers_to_them_get_a_prefix():
    html = join(
        [
            tag("h2", "T", id="t"),
            tag("section", aria_labelledby="t other", id="s"),
            tag("a", "to", href="#t"),
            tag("a", "away", href="#other"),
            tag("a", "out", href="https://example.org/#t"),
            tag("input", name="group", id="i"),
            tag("label", "L", for_="i"),
            tag("meta", name="t"),
        ]
    )
    assert with_prefix(html, "p-") == (
        '<h2 id="p-t">T</h2><section aria-labelledby="p-t other" id="p-s"></section>'
        '<a href="#p-t">to</a><a href="#other">away</a><a href="https://example.org/#t">out</a>'
        '<input name="p-group" id="p-i"><label for="p-i">L</label><meta name="t">'
    )


def test_headings_follow_each_other_without_a_gap():
    html = join([tag("h2", "a"), tag("h4.x", "b"), tag("h4", "c"), tag("h3", "d"), tag("h2", "e")])
    assert below(html, 2) == ('<h3>a</h3><h4 class="x">b</h4><h4>c</h4><h4>d</h4><h3>e</h3>')
    other = join([tag("header", "f"), "<h2>", tag("h6", "g"), tag("hr")])
    assert below(other, 1) == "<header>f</header>&lt;h2&gt;<h2>g</h2><hr>"


def test_buttons_that_only_a_server_answers_are_gone():
    html = join(
        [
            tag("button", "again", data_action="retry", title=">"),
            tag("button", "bar", data_i=1),
            tag("p", '<button data-action="x">'),
        ]
    )
    assert without_buttons(html) == (
        '<button data-i="1">bar</button><p>&lt;button data-action=&#34;x&#34;&gt;</p>'
    )
