"""What only a browser can tell: keys, tooltips, updates in place, layout, real colours."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Locator, Page, ViewportSize, expect

from components.counters import counters
from components.heatmap import heatmap
from components.markup import tag
from components.messages import Catalogue
from components.page import standalone
from components.theme import ASSETS, Theme, script, stylesheet
from components.timeline import timeline
from components.verdict import Status
from tests.components import samples as s
from tests.components.gallery import gallery
from tests.components.test_hostile import HOSTILE, everything
from tests.components.test_theme import contrast

PHONE: ViewportSize = {"width": 390, "height": 844}


def open_gallery(page: Page, theme: Theme = "light") -> None:
    page.set_content(standalone(gallery(), "Gallery", theme))


def open_view(page: Page, html: str = "") -> None:
    """An empty page whose `view` holds the functions of the module."""
    page.set_content(f'<style>{stylesheet()}</style><main class="vs-root"></main>')
    page.add_script_tag(content=f"{script()}\nwindow.view = {{ mount, patch }};", type="module")
    page.wait_for_function("window.view")
    patch(page, html)


def patch(page: Page, html: str) -> None:
    page.evaluate("html => view.patch(document.querySelector('.vs-root'), html)", str(html))


def focused(page: Page) -> str:
    return page.evaluate("document.activeElement.textContent")


def token(page: Page, text: str) -> Locator:
    return page.locator("#heat [data-i]").filter(has_text=re.compile(f"^{text}$")).first


def heat(t: Catalogue, count: int | None = None) -> str:
    tokens = s.TOKENS[:count]
    text = "".join(token.text for token in tokens)
    marks = [mark for mark in s.ENTITIES if mark.end <= len(text)]
    return heatmap(text, tokens, marks, t=t, id="heat")


def tip(page: Page) -> Locator:
    return page.get_by_role("tooltip")


def rgb(value: str) -> str:
    red, green, blue = (round(float(part)) for part in re.findall(r"[\d.]+", value)[:3])
    return f"#{red:02x}{green:02x}{blue:02x}"


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1400])
def test_nothing_is_wider_than_the_screen(browser_page: Page, theme: Theme, width: int) -> None:
    browser_page.set_viewport_size({"width": width, "height": 844})
    open_gallery(browser_page, theme)
    for details in browser_page.locator("details").all():
        details.evaluate("details => { details.open = true }")
    assert browser_page.evaluate("document.documentElement.scrollWidth") == width


def test_text_of_models_is_never_smaller_than_the_interface(browser_page: Page) -> None:
    open_gallery(browser_page)
    sizes = browser_page.evaluate(
        """() => ['.vs-answer', '.vs-heat-text [data-i]', '.vs-turn-text', '.vs-score-name']
          .map(name => parseFloat(getComputedStyle(document.querySelector(name)).fontSize))"""
    )
    assert sizes == [16, 16, 14, 14]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_rendered_text_has_enough_contrast(browser_page: Page, theme: Theme) -> None:
    open_gallery(browser_page, theme)
    for details in browser_page.locator("details").all():
        details.evaluate("details => { details.open = true }")
    pairs = browser_page.evaluate(
        """() => {
          const ground = node => {
            for (; node; node = node.parentElement) {
              const colour = getComputedStyle(node).backgroundColor;
              if (!/, 0\\)$/.test(colour)) return colour;
            }
          };
          const seen = {};
          for (const node of document.querySelectorAll('.vs-root *')) {
            const own = [...node.childNodes].some(n => n.nodeType === 3 && n.data.trim());
            if (!own || node.closest('.vs-sr') || !node.checkVisibility()) continue;
            const style = getComputedStyle(node);
            seen[[style.color, ground(node)]] = node.className || node.localName;
          }
          return Object.entries(seen);
        }"""
    )
    assert len(pairs) > 12
    poor = [
        (name, colours)
        for colours, name in pairs
        if contrast(*(rgb(part) for part in re.findall(r"rgba?\([^)]*\)", colours))) < 4.5
    ]
    assert poor == []


@pytest.mark.parametrize(("scheme", "ink"), [("light", "#17212b"), ("dark", "#e6ebf0")])
def test_without_a_choice_the_readers_preference_counts(
    browser_page: Page, scheme: Theme, ink: str
) -> None:
    browser_page.emulate_media(color_scheme=scheme)
    browser_page.set_content(standalone(tag("p", "x"), "x"))
    colour = "getComputedStyle(document.querySelector('p')).color"
    assert rgb(browser_page.evaluate(colour)) == ink
    browser_page.evaluate("document.documentElement.dataset.theme = 'dark'")
    assert rgb(browser_page.evaluate(colour)) == "#e6ebf0"


def test_motion_stops_on_request(browser_page: Page) -> None:
    open_gallery(browser_page)
    moving = (
        "getComputedStyle(document.querySelector('.vs-status-running > .vs-sign'), '::before')"
        ".animationName"
    )
    assert browser_page.evaluate(moving) == "vs-pulse"
    browser_page.emulate_media(reduced_motion="reduce")
    assert browser_page.evaluate(moving) == "none"


def test_hovering_shows_a_token(browser_page: Page) -> None:
    open_gallery(browser_page)
    expect(tip(browser_page)).to_have_count(0)
    token(browser_page, "Chicago").hover()
    expect(tip(browser_page)).to_contain_text("Probability0.18")
    expect(tip(browser_page)).to_contain_text("Entropy≥ 2.7 nats")
    expect(tip(browser_page)).to_contain_text("only the 5 most probable tokens were reported, 0.26")
    expect(tip(browser_page)).to_contain_text("Chicago · place! DoubtfulP(E) 0.18 · H(E) 2.7")
    expect(tip(browser_page).locator(".vs-tip-written")).to_have_text("Chicago0.18 ◂ written")
    bars = tip(browser_page).locator(".vs-tip-bar > i")
    assert [bar.evaluate("bar => bar.style.width") for bar in bars.all()][:2] == ["31%", "18%"]
    browser_page.mouse.move(0, 0)
    expect(tip(browser_page)).to_have_count(0)


def test_merged_tokens_are_explained(browser_page: Page) -> None:
    open_gallery(browser_page)
    browser_page.locator("#heat-zh [data-i='7']").hover()
    expect(tip(browser_page)).to_contain_text("\\xe6 0.50 · \\x9d 0.40 · \\xad 0.90")


def test_arrow_keys_move_from_token_to_token(browser_page: Page, t: Catalogue) -> None:
    open_view(browser_page, heat(t))
    browser_page.keyboard.press("Tab")
    assert focused(browser_page) == "Bill"
    expect(tip(browser_page)).to_contain_text("Probability0.97")
    current = browser_page.locator("#heat [data-i='0']")
    expect(current).to_have_attribute("aria-describedby", re.compile("vs-tip-"))
    for key, text in [
        ("ArrowRight", "Clinton"),
        ("ArrowRight", "was"),
        ("ArrowLeft", "Clinton"),
        ("End", "."),
        ("ArrowRight", "."),
        ("Home", "Bill"),
        ("ArrowLeft", "Bill"),
    ]:
        browser_page.keyboard.press(key)
        assert focused(browser_page) == text
    assert browser_page.locator("#heat [data-i][tabindex='0']").count() == 1
    assert browser_page.locator("#heat [data-i][role]").count() == 1


def test_up_and_down_follow_the_lines(browser_page: Page, t: Catalogue) -> None:
    browser_page.set_viewport_size(PHONE)
    open_view(browser_page, heat(t))
    browser_page.keyboard.press("Tab")
    top = "document.activeElement.getBoundingClientRect().top"
    first = browser_page.evaluate(top)
    browser_page.keyboard.press("ArrowDown")
    second = browser_page.evaluate(top)
    assert second > first
    browser_page.keyboard.press("ArrowDown")
    assert browser_page.evaluate(top) > second
    browser_page.keyboard.press("ArrowUp")
    assert browser_page.evaluate(top) == second


def test_escape_closes_the_tooltip_and_keeps_the_place(browser_page: Page, t: Catalogue) -> None:
    open_view(browser_page, heat(t))
    browser_page.keyboard.press("Tab")
    expect(tip(browser_page)).to_be_visible()
    browser_page.keyboard.press("Escape")
    expect(tip(browser_page)).to_have_count(0)
    assert focused(browser_page) == "Bill"
    browser_page.keyboard.press("Enter")
    expect(tip(browser_page)).to_be_visible()
    browser_page.keyboard.press("Tab")
    expect(tip(browser_page)).to_have_count(0)


@pytest.mark.parametrize("name", ["Bill", "January", "1993"])
def test_the_tooltip_stays_on_a_small_screen(browser_page: Page, t: Catalogue, name: str) -> None:
    browser_page.set_viewport_size({"width": 390, "height": 420})
    open_view(browser_page, heat(t))
    token(browser_page, name).click()
    box = tip(browser_page).bounding_box()
    assert box is not None
    assert box["x"] >= 0
    assert box["y"] >= 0
    assert box["x"] + box["width"] <= 390
    assert box["y"] + box["height"] <= 420


def test_a_tap_shows_and_a_tap_elsewhere_hides(browser_page: Page, t: Catalogue) -> None:
    context = browser_page.context.browser.new_context(viewport=PHONE, has_touch=True)  # type: ignore[union-attr]
    page = context.new_page()
    open_view(page, heat(t) + '<p style="margin-top: 30rem">elsewhere</p>')
    token(page, "Chicago").tap()
    expect(tip(page)).to_contain_text("0.18")
    page.get_by_text("elsewhere").tap()
    expect(tip(page)).to_have_count(0)
    context.close()


def test_streaming_keeps_focus_and_tooltip(browser_page: Page, t: Catalogue) -> None:
    open_view(browser_page, heat(t, 6))
    token(browser_page, "born").click()
    browser_page.evaluate("window.before = document.activeElement")
    for count in (7, 8, 15, None):
        patch(browser_page, heat(t, count))
        assert browser_page.evaluate("document.activeElement === before")
        expect(tip(browser_page)).to_contain_text("Probability0.91")
    assert browser_page.locator("#heat [data-i][tabindex='0']").count() == 1
    browser_page.keyboard.press("ArrowRight")
    assert focused(browser_page) == "in"


def test_a_token_that_is_boxed_later_keeps_the_focus(browser_page: Page, t: Catalogue) -> None:
    open_view(browser_page, heatmap(s.TEXT, s.TOKENS, [], t=t, id="heat"))
    token(browser_page, "Chicago").click()
    patch(browser_page, heat(t))
    assert focused(browser_page) == "Chicago"
    assert browser_page.evaluate("!!document.activeElement.closest('.vs-entity')")
    expect(tip(browser_page)).to_contain_text("Doubtful")


def test_a_token_that_is_gone_takes_its_tooltip_along(browser_page: Page, t: Catalogue) -> None:
    open_view(browser_page, heat(t))
    token(browser_page, "January").click()
    patch(browser_page, heat(t, 6))
    expect(tip(browser_page)).to_have_count(0)
    assert browser_page.locator("#heat [data-i][tabindex='0']").count() == 1


def test_updates_keep_details_open_and_scrolled(browser_page: Page, t: Catalogue) -> None:
    calls = s.calls()
    open_view(browser_page, timeline(calls[:4], t))
    browser_page.get_by_text("All 4 calls in words").click()
    browser_page.locator("#timeline-call-1 > summary").click()
    open_now = "[...document.querySelectorAll('details[open]')].map(d => d.dataset.key)"
    assert browser_page.evaluate(open_now) == ["timeline-calls", "timeline-call-1"]
    browser_page.locator("#timeline-call-1 > summary").focus()
    patch(browser_page, timeline(calls, t, now=2.4))
    assert browser_page.evaluate(open_now) == ["timeline-calls", "timeline-call-1"]
    assert browser_page.evaluate("document.activeElement.parentElement.id") == "timeline-call-1"
    expect(browser_page.get_by_text("All 9 calls in words")).to_be_visible()


def test_only_what_changed_is_touched(browser_page: Page) -> None:
    def items(*keys: str) -> str:
        return tag("ul", (tag("li", key, data_key=key) for key in keys))

    open_view(browser_page, items("a", "b", "c", "d"))
    browser_page.evaluate("for (const li of document.querySelectorAll('li')) li.old = true")
    patch(browser_page, items("d", "b", "x", "c"))
    assert browser_page.evaluate(
        "[...document.querySelectorAll('li')].map(li => [li.textContent, !!li.old])"
    ) == [["d", True], ["b", True], ["x", False], ["c", True]]
    browser_page.evaluate(
        """() => { window.changes = 0;
          new MutationObserver(list => { changes += list.length })
            .observe(document.body, { subtree: true, childList: true, attributes: true,
                                      characterData: true }) }"""
    )
    patch(browser_page, items("d", "b", "x", "c"))
    assert browser_page.evaluate("new Promise(done => setTimeout(() => done(changes)))") == 0


def test_attributes_and_text_follow(browser_page: Page) -> None:
    open_view(browser_page, '<p class="a" title="t">one <b>two</b></p>')
    patch(browser_page, '<p class="b">one <i>three</i> four</p>')
    html = browser_page.locator(".vs-root").inner_html()
    assert html == '<p class="b">one <i>three</i> four</p>'
    patch(browser_page, "")
    assert browser_page.locator(".vs-root").inner_html() == ""


def test_bars_show_and_open_their_call(browser_page: Page, t: Catalogue) -> None:
    open_view(browser_page, timeline(s.calls(), t, now=2.4))
    browser_page.keyboard.press("Tab")
    expect(tip(browser_page)).to_contain_text(s.QUESTION)
    expect(tip(browser_page)).to_contain_text(s.TEXT)
    browser_page.keyboard.press("ArrowRight")
    expect(tip(browser_page)).to_contain_text("from the cache")
    browser_page.keyboard.press("Enter")
    expect(browser_page.locator("#timeline-call-1")).to_have_attribute("open", "")
    expect(browser_page.locator("#timeline-call-1 pre").first).to_be_visible()


def test_buttons_report_what_is_asked_for(browser_page: Page) -> None:
    button = tag("button", "Try again", data_action="retry", data_value="drad")
    open_view(browser_page, button)
    browser_page.evaluate(
        "window.asked = []; document.addEventListener('vs-action', e => asked.push(e.detail))"
    )
    browser_page.get_by_role("button").click()
    assert browser_page.evaluate("asked") == [{"action": "retry", "value": "drad"}]


def test_the_clock_runs_on_between_updates_and_stops_with_the_run(
    browser_page: Page, t: Catalogue
) -> None:
    def line(status: Status, seconds: float) -> str:
        return counters(t, status=status, seconds=seconds, calls=1, retrievals=0, tokens=5)

    open_view(browser_page, line("running", 4.1))
    figure = browser_page.locator(".vs-counter-seconds")
    expect(figure).not_to_have_text("4.1 s")
    expect(figure).to_have_text(re.compile(r"^4\.\d s$|^[5-9]\.\d s$"))
    patch(browser_page, line("done", 4.9))
    expect(figure).to_have_text("4.9 s")


def test_it_works_inside_a_shadow_root(browser_page: Page, t: Catalogue) -> None:
    open_view(browser_page)
    browser_page.evaluate(
        """([css, html]) => {
          const host = document.body.appendChild(document.createElement('div'));
          host.style.colorScheme = 'dark';
          window.shadow = host.attachShadow({ mode: 'open' });
          shadow.innerHTML = `<style>${css}</style><div class="vs-root"></div>`;
          view.patch(shadow.querySelector('.vs-root'), html);
        }""",
        [stylesheet(), str(heat(t))],
    )
    token(browser_page, "Chicago").click()
    expect(tip(browser_page)).to_contain_text("0.18")
    browser_page.keyboard.press("ArrowRight")
    expect(tip(browser_page)).to_contain_text("0.88")
    colour = browser_page.evaluate("getComputedStyle(shadow.querySelector('.vs-root')).color")
    assert rgb(colour) == "#e6ebf0"


def test_the_modules_also_work_as_files(browser_page: Page, t: Catalogue) -> None:
    browser_page.route(
        "http://veriscope.test/**",
        lambda route: (
            route.fulfill(path=ASSETS / route.request.url.rsplit("/", 1)[1])
            if route.request.url.endswith(".js")
            else route.fulfill(body='<main class="vs-root"></main>', content_type="text/html")
        ),
    )
    browser_page.goto("http://veriscope.test/")
    browser_page.evaluate(
        """async html => {
          const { patch } = await import('http://veriscope.test/view.js');
          patch(document.querySelector('.vs-root'), html);
        }""",
        str(heat(t)),
    )
    token(browser_page, "Chicago").click()
    expect(tip(browser_page)).to_contain_text("0.18")


def test_nothing_listens_after_it_was_stopped(browser_page: Page, t: Catalogue) -> None:
    open_view(browser_page, heat(t))
    browser_page.evaluate("view.mount(document.querySelector('.vs-root'))()")
    token(browser_page, "Chicago").click()
    expect(browser_page.locator(".vs-tip")).to_have_count(0)


@pytest.mark.parametrize("text", HOSTILE)
def test_foreign_text_runs_nothing(browser_page: Page, t: Catalogue, text: str) -> None:
    open_view(browser_page, everything(text, t))
    for target in browser_page.locator("[data-roving] [data-i]").all():
        target.focus()
    assert tip(browser_page).count() == 1
    assert browser_page.evaluate("window.hacked === undefined")
    assert browser_page.locator("img, svg, main style, main script").count() == 0


def test_a_page_of_its_own_breaks_no_rule_of_its_own(browser_page: Page) -> None:
    complaints: list[str] = []
    browser_page.on("console", lambda message: complaints.append(message.text))
    open_gallery(browser_page)
    token(browser_page, "Chicago").hover()
    expect(tip(browser_page)).to_be_visible()
    assert complaints == []
