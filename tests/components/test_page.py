import base64
import hashlib
import re

from components.base.html import tag
from components.base.theme import stylesheet
from components.page import standalone
from tests.components.html_tree import read


def test_a_page_is_whole_in_itself() -> None:
    html = standalone(tag("p", "body"), "Title & more", "dark", "zh")
    assert html.startswith('<!doctype html>\n<html lang="zh-CN" data-theme="dark">')
    assert "<title>Title &amp; more</title>" in html
    assert '<main class="vs-root"><p>body</p></main>' in html
    assert stylesheet() in html
    assert not re.search(r"<link|src=|https?://(?!www\.w3\.org)", html)


def test_the_readers_preference_decides_where_no_theme_is_given() -> None:
    assert "data-theme" not in standalone("", "x").split("<style>")[0]


def test_only_this_packages_script_may_run() -> None:
    html = standalone("", "x")
    (code,) = re.findall(r'<script type="module">(.*?)</script>', html, flags=re.S)
    digest = base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()
    policy = next(
        node.attributes["content"]
        for node in read(re.sub(r"<(style|script).*?</\1>", "", html, flags=re.S)).all("meta")
        if node.attributes.get("http-equiv") == "Content-Security-Policy"
    )
    assert f"script-src 'sha256-{digest}'" in policy
    assert "default-src 'none'" in policy
    assert "unsafe-eval" not in policy
