"""Nothing that a model, a document or a visitor writes becomes part of the page."""

from math import log

import pytest

from components.base.elements import EvidenceItem, counters, evidence, score_line
from components.base.html import Html, join
from components.base.words import Catalogue
from components.run.ask import MethodRow, method_cards
from components.run.calls import CallBar, timeline
from components.run.text import EntityMark, diff_html, entity_table, heatmap
from pipelines.base import Alternative, Generation, Message, Passage, Token
from pipelines.errors import ErrorInfo
from pipelines.models.base import GenerationRequest
from pipelines.run.events import ModelCalled, Score
from tests.components.html_tree import read

HOSTILE = [
    "<script>window.hacked = 1</script>",
    '"><img src=x onerror="window.hacked = 1">',
    "' onmouseover='window.hacked = 1' x='",
    "</pre></details></figure><svg onload=alert(1)>",
    "&lt;b&gt; &amp;amp; {count} {0} %(x)s",
    "javascript:alert(1)",
    "\u202egnp.exe\u2066\u0000\u2028",
    "<!-- ]]> <style>*{display:none}</style>",
]


def everything(text: str, t: Catalogue) -> Html:
    """Every component with `text` in every place that takes foreign text."""
    token = Token(
        text=text, start=0, end=len(text), logprob=log(0.3), entropy=1.0, top_k=2, tail_mass=0.1,
        alternatives=(Alternative(text=text[::-1], logprob=log(0.6)),),
    )  # fmt: skip
    mark = EntityMark(0, len(text), text, "doubtful", 0.3, 1.0, repeats=True)
    error = ErrorInfo(code=text, message=text, remedy=text, provider=text)
    passage = Passage(
        id=text, title=text, text=text, source=text, url=text, scores={text: 1.0}, rank=1
    )
    row = MethodRow(text, "failed", error=error, original="x", answer=text, step=text)
    asked = GenerationRequest(messages=(Message(role="user", content=text),))
    call = ModelCalled(
        run="r", span=text, parent=None, seq=0, time=1.0, started=0.0, role=text, model=text,
        request=asked, attempt=1, generations=(Generation(text=text),), error=error,
    )  # fmt: skip
    return join([
        heatmap(text, [token], [mark], t=t, id="heat"),
        entity_table(text, [token], [mark], t),
        diff_html(f"a {text} b", text, "en", t),
        evidence([EvidenceItem(passage, text, (text,), ((0, 3),))], t),
        timeline([CallBar(text, text, call)], t),
        method_cards([row], row.original, t),
        score_line(Score(name=text, value=0.5, threshold=0.6), t, follows=text),
        counters(t, status="done", seconds=1, calls=1, retrievals=0, tokens=0),
    ])  # fmt: skip


@pytest.mark.parametrize("text", HOSTILE)
def test_foreign_text_stays_text(text: str, t: Catalogue) -> None:
    page = read(everything(text, t))
    names = {node.name for node in page.walk()}
    assert names & {"script", "img", "svg", "style", "iframe", "object", "link", "b"} == set()
    for node in page.walk():
        assert not [name for name in node.attributes if name.startswith("on")]
        assert node.attributes.get("href", "https:").startswith(("https:", "http:"))
    html = everything(text, t)
    assert not set(html) & set("\u202e\u2066\u0000\u2028")
