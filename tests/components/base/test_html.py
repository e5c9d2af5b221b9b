import pytest

from components.base.html import Html, Json, join, safe_url, shown, tag, visible, without_images


def test_children_and_attributes_are_escaped() -> None:
    html = tag("p", "<script>alert(1)</script> & 'so'", title='"><img src=x onerror=alert(1)>')
    assert html == (
        '<p title="&#34;&gt;&lt;img src=x onerror=alert(1)&gt;">'
        "&lt;script&gt;alert(1)&lt;/script&gt; &amp; &#39;so&#39;</p>"
    )


def test_html_is_not_escaped_again() -> None:
    assert tag("b", tag("i", "a & b")) == "<b><i>a &amp; b</i></b>"
    assert isinstance(tag("b"), Html)


def test_children_may_be_nested_numbers_or_missing() -> None:
    assert tag("p", 1, None, ["a", (tag("b", x) for x in "cd")], 0.5) == (
        "<p>1a<b>c</b><b>d</b>0.5</p>"
    )


def test_attribute_names_and_values() -> None:
    html = tag("input", class_="a", data_key="k", aria_label=None, hidden=True, disabled=False)
    assert html == '<input class="a" data-key="k" hidden>'


def test_classes_stand_behind_dots_and_the_key_has_a_name_of_its_own() -> None:
    assert tag("p.a.b", "x", key="k") == '<p class="a b" data-key="k">x</p>'
    assert tag("p.a", class_="b c") == tag("p", class_="a b c") == '<p class="a b c"></p>'
    assert tag("p.a", aria_busy=True, aria_hidden=False) == '<p class="a" aria-busy="true"></p>'


def test_children_that_are_false_or_empty_are_left_out() -> None:
    assert tag("p", False, "", None, 0) == "<p>0</p>"


def test_hidden_characters_of_a_child_are_shown_like_other_text() -> None:
    assert tag("p", "a\u202eb") == tag("p", shown("a\u202eb"))


def test_an_attribute_may_be_called_name() -> None:
    assert tag("meta", name="viewport") == '<meta name="viewport">'


@pytest.mark.parametrize("name", ["script", "style", "iframe", "p onclick", "P", ""])
def test_elements_that_are_not_written(name: str) -> None:
    with pytest.raises(ValueError, match="Not an element"):
        tag(name)


@pytest.mark.parametrize("name", ["onclick", "onerror", "src", "srcdoc", "formaction", "a b"])
def test_attributes_that_are_not_written(name: str) -> None:
    with pytest.raises(ValueError, match="Not an attribute"):
        tag("p", **{name: "x"})


@pytest.mark.parametrize(
    "url",
    [
        "javascript:alert(1)",
        " JaVaScRiPt:alert(1)",
        "java\nscript:alert(1)",
        "\u0001javascript:alert(1)",
        "data:text/html,<script>alert(1)</script>",
        "vbscript:x",
        "//example.org/x",
        "relative/path",
        "http://[broken",
        "",
        None,
    ],
)
def test_unsafe_addresses_are_left_out(url: str | None) -> None:
    assert safe_url(url) is None
    assert tag("a", "x", href=url) == "<a>x</a>"


@pytest.mark.parametrize(
    "url", ["https://example.org/a?b=c&d=%20", "http://example.org", "mailto:a@example.org", "#id"]
)
def test_safe_addresses_are_kept(url: str) -> None:
    assert safe_url(url) == url


def test_direction_overrides_are_shown_instead_of_obeyed() -> None:
    html = shown("safe\u202eexe.<b>")
    assert "\u202e" not in html
    assert html == (
        'safe<span class="vs-control" title="right-to-left override">U+202E</span>exe.&lt;b&gt;'
    )


def test_control_characters_are_spelled_out_and_white_space_is_kept() -> None:
    assert visible("a\x00b\x1bc\u2066d\n\te\u200d") == ("a⟨U+0000⟩b⟨U+001B⟩c⟨U+2066⟩d\n\te\u200d")


def test_attributes_hold_no_direction_override() -> None:
    assert tag("p", title="a\u202eb") == '<p title="a⟨U+202E⟩b"></p>'


def test_json_attributes_keep_double_quotes_and_escape_the_rest() -> None:
    html = tag("p", data_x=Json({"a": "'<&>\"", "b": ["汉", 1]}))
    assert html == ("""<p data-x='{"a":"&#39;&lt;&amp;&gt;\\"","b":["汉",1]}'></p>""")


def test_join_escapes_pieces_and_separator() -> None:
    assert join(["a<", tag("b", "x"), None], " & ") == "a&lt; &amp; <b>x</b>"


@pytest.mark.parametrize(
    ("markdown", "links"),
    [
        ("See ![a map](https://x.org/a.png)!", "See [a map](https://x.org/a.png)!"),
        ("![](  //x.org/a.png)", "[](  //x.org/a.png)"),
        ("![a][1]\n\n[1]: https://x.org/a.png", "[a][1]\n\n[1]: https://x.org/a.png"),
        ("![1]\n\n[1]: https://x.org/a.png", "[1]\n\n[1]: https://x.org/a.png"),
        ("![a \\] b](https://x.org/a.png)", "[a \\] b](https://x.org/a.png)"),
        # What stands in the text itself is asked of nobody.
        ("![a](data:image/png;base64,AAAA)", "![a](data:image/png;base64,AAAA)"),
        ("Read this! [Now](https://x.org)", "Read this! [Now](https://x.org)"),
    ],
)
def test_pictures_from_elsewhere_are_links(markdown: str, links: str) -> None:
    assert without_images(markdown) == links
