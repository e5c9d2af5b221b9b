// Marking what is wrong in a text: the text, the kinds of errors, and the list of what is marked.

import { button, el, filled, signOf } from "./dom.js";
import { MarkedText } from "./marks.js";

const MOST = 200;
const OWN = { colour: "--vs-contradicted" };
const OFFERED = { colour: "--vs-undecided", dash: 3, gap: 3 };

// The kind that was chosen last is the one that Enter gives.
let lastKind = 0;

/** Spans are `{start, end, kind}` in UTF-16 units here, and in code points outside. */
export class SpanEditor {
  /** `layers()` gives what is shown beneath the marks; `changed()` is told of every change. */
  constructor({ measured, data, changed, say, layers = () => [], room = 2 }) {
    Object.assign(this, { measured, data, changed, say, layers, room });
    this.words = data.words;
    this.spans = [];
    this.offered = [];
    this.active = null;
    this.past = [];
    this.future = [];
    this.text = new MarkedText(measured, {
      lang: data.text_lang,
      label: this.words.caret,
      selected: (range, said) => this.selected(range, said),
      wanted: () => this.mark(lastKind),
      picked: (over) => this.picked(over),
    });
    this.bar = el("div.vs-lab-bar", { role: "group", "aria-label": this.words.mark });
    this.list = el("ol.vs-lab-spans", { "aria-label": this.words.spans });
    this.offers = el("div.vs-lab-offers");
  }

  stop() {
    this.text.stop();
  }

  /** Begin with `spans`, in code points, and with what detectors offer. */
  load(spans, offered = []) {
    const units = ({ start, end, ...rest }) => ({
      ...rest,
      start: this.measured.toUnits(start),
      end: this.measured.toUnits(end),
    });
    this.spans = spans.map(units);
    this.offered = offered.map(units);
    this.draw();
  }

  /** The spans in code points, in the order of their starts. */
  value() {
    const { measured } = this;
    return this.sorted().map(({ start, end, kind }) => ({
      start: measured.toPoints(start),
      end: measured.toPoints(end),
      kind,
    }));
  }

  /** As a draft: what is marked, and which offers are left. */
  draft() {
    const points = ({ start, end }) => ({
      start: this.measured.toPoints(start),
      end: this.measured.toPoints(end),
    });
    return { spans: this.value(), offered: this.offered.map(points) };
  }

  sorted() {
    const order = (one, other) =>
      one.start - other.start || one.end - other.end || one.kind.localeCompare(other.kind);
    return [...this.spans].sort(order);
  }

  /** Replace everything that is marked, so that it can be undone. */
  set(spans, offered = this.offered) {
    this.past.push([this.spans, this.offered]);
    this.future = [];
    const known = new Set();
    // The same piece with the same kind says nothing more.
    this.spans = spans.filter(({ start, end, kind }) => {
      const name = `${start} ${end} ${kind}`;
      return !known.has(name) && known.add(name);
    });
    this.offered = offered;
    this.draw();
    this.changed();
  }

  /** Replace what is marked with `spans` in code points. */
  replace(spans) {
    const { measured } = this;
    this.active = null;
    this.set(
      spans.map(({ start, end, kind }) => ({
        start: measured.toUnits(start),
        end: measured.toUnits(end),
        kind,
      })),
    );
  }

  undo() {
    return this.turn(this.past, this.future);
  }

  redo() {
    return this.turn(this.future, this.past);
  }

  turn(from, to) {
    if (!from.length) return false;
    to.push([this.spans, this.offered]);
    [this.spans, this.offered] = from.pop();
    this.active = null;
    this.draw();
    this.changed();
    return true;
  }

  selected(range, said) {
    if (range) this.active = null;
    this.drawBar();
    this.say(range ? `${this.words.selected} ${said}` : said);
  }

  picked(over) {
    const own = over.find((span) => span.own);
    if (!own) return;
    this.active = own.own;
    this.draw();
  }

  /** Mark what is selected as an error of a kind, or give the chosen span that kind. */
  mark(index) {
    const kind = this.data.kinds[index]?.value;
    if (!kind) return false;
    const { range } = this.text;
    if (range) {
      if (this.spans.length >= MOST) return this.refuse(this.words.too_many);
      lastKind = index;
      const [start, end] = range;
      this.text.clear();
      this.set([...this.spans, { start, end, kind }]);
      const number = this.sorted().findIndex((one) => one.start === start && one.end === end) + 1;
      this.say(filled(this.words.marked, number));
      this.text.body.focus({ preventScroll: true });
      return true;
    }
    if (this.active) {
      lastKind = index;
      return this.change(this.active, { kind });
    }
    return this.refuse(this.words.none_selected);
  }

  refuse(words) {
    this.say(words);
    this.hint.textContent = words;
    return true;
  }

  change(span, fields) {
    const changed = { ...span, ...fields };
    this.active = changed;
    this.set(this.spans.map((one) => (one === span ? changed : one)));
    return true;
  }

  /** Move an edge of a span by one character, but not past the other edge. */
  adjust(span, edge, way) {
    const next = this.measured.step(span[edge], way);
    const { start, end } = { ...span, [edge]: next };
    if (start < end) this.change(span, { [edge]: next });
  }

  remove(span) {
    this.active = null;
    this.set(this.spans.filter((one) => one !== span));
  }

  /** A digit that was pressed; whether it was one of ours. */
  key(name) {
    return /^[1-6]$/.test(name) && this.mark(Number(name) - 1);
  }

  draw() {
    const focus = keyOf(document.activeElement, this.list, this.offers);
    const sorted = this.sorted();
    const own = sorted.map((span, index) => ({
      start: span.start,
      end: span.end,
      badge: String(index + 1),
      own: span,
      active: span === this.active,
    }));
    const offers = this.offered.map((span) => ({ ...span, badge: "" }));
    const layers = [
      { spans: own, css: OWN, lanes: this.room },
      ...(offers.length ? [{ spans: offers, css: OFFERED, lanes: 1 }] : []),
      ...this.layers(),
    ];
    this.text.draw(layers, { piece: pieceOf(this.data, this.measured) });
    this.drawBar();
    this.drawList(sorted);
    this.drawOffers();
    if (focus) this.refocus(focus);
  }

  drawBar() {
    const { words } = this;
    const { range } = this.text;
    const said = range ? this.measured.text.slice(...range) : "";
    this.hint ??= el("p.vs-lab-hint", { dir: "auto" });
    this.hint.textContent = range ? `${words.selected} “${shorten(said)}”` : words.not_selected;
    if (!this.kinds) {
      this.kinds = this.data.kinds.map(({ word, help }, index) =>
        button(word, { key: String(index + 1), title: help, press: () => this.mark(index) }),
      );
      this.bar.replaceChildren(this.hint, el("div.vs-lab-keys", {}, this.kinds));
    }
    for (const [index, kind] of this.kinds.entries()) {
      kind.disabled = !range && !this.active;
      // Enter gives the kind that was chosen last.
      const keys = index === lastKind ? [`${index + 1}`, "Enter"] : [`${index + 1}`];
      kind.setAttribute("aria-keyshortcuts", keys.join(" "));
      kind.querySelector("kbd").textContent = keys.join(" ").replace("Enter", "⏎");
    }
    this.bar.classList.toggle("vs-lab-ready", Boolean(range));
  }

  drawList(sorted) {
    const { words } = this;
    if (!sorted.length) {
      this.list.replaceChildren(el("li.vs-lab-none", {}, words.spans_none));
      return;
    }
    this.list.replaceChildren(...sorted.map((span, index) => this.row(span, index + 1)));
  }

  row(span, number) {
    const { words } = this;
    const quoted = this.measured.text.slice(span.start, span.end);
    const options = this.data.kinds.map(({ value, word }) =>
      el("option", { value, selected: value === span.kind }, word),
    );
    const kind = el(
      "select.vs-lab-kind",
      {
        "aria-label": filled(words.kind, number),
        "data-key": `kind-${number}`,
        onchange: (event) => this.change(span, { kind: event.target.value }),
      },
      options,
    );
    const nudge = (sign, name, edge, way) =>
      el(
        "button.vs-lab-small",
        {
          type: "button",
          "aria-label": filled(words[name], number),
          title: filled(words[name], number),
          "data-key": `${name}-${number}`,
          onclick: () => this.adjust(span, edge, way),
        },
        sign,
      );
    return el(
      "li.vs-lab-span",
      {
        class: span === this.active ? "vs-lab-active" : "",
        onkeydown: (event) => {
          if (event.key !== "Delete" || event.repeat) return;
          event.preventDefault();
          this.remove(span);
        },
      },
      el("span.vs-lab-badge", { "aria-hidden": "true" }, String(number)),
      el("span.vs-sr", {}, filled(words.span, number)),
      el("q.vs-lab-quoted", { dir: "auto", lang: this.data.text_lang || null }, quoted),
      kind,
      el(
        "span.vs-lab-nudges",
        {},
        nudge("⇤[", "start_left", "start", -1),
        nudge("[⇥", "start_right", "start", 1),
        nudge("⇤]", "end_left", "end", -1),
        nudge("]⇥", "end_right", "end", 1),
        el(
          "button.vs-lab-small",
          {
            type: "button",
            "aria-label": filled(words.delete, number),
            title: filled(words.delete, number),
            "data-key": `delete-${number}`,
            onclick: () => this.remove(span),
          },
          "×",
        ),
      ),
    );
  }

  drawOffers() {
    const { words, offered } = this;
    if (!offered.length) return this.offers.replaceChildren();
    const left = (span) => offered.filter((one) => one !== span);
    const kind = this.data.kinds.at(-1).value;
    const take = (spans, rest) => {
      const taken = spans.map(({ start, end }) => ({ start, end, kind }));
      this.active = taken.length === 1 ? taken[0] : null;
      this.set([...this.spans, ...taken], rest);
    };
    const rows = offered.map((span, index) =>
      el(
        "li.vs-lab-offer",
        {},
        el("q.vs-lab-quoted", { dir: "auto" }, this.measured.text.slice(span.start, span.end)),
        button(words.take, {
          "data-key": `take-${index}`,
          press: () => take([span], left(span)),
        }),
        button(words.drop, {
          "data-key": `drop-${index}`,
          press: () => this.set(this.spans, left(span)),
        }),
      ),
    );
    this.offers.replaceChildren(
      el(
        "div.vs-lab-offers-head",
        {},
        el("h3.vs-label", {}, signOf("⋯"), ` ${words.offered}`),
        button(words.offered_all, { "data-key": "take-all", press: () => take(offered, []) }),
      ),
      el("ul", {}, rows),
    );
  }

  /** After a row was drawn anew, its control has the focus again; of one that is gone, the text. */
  refocus(key) {
    const find = (parent) => parent.querySelector(`[data-key="${key}"]`);
    (find(this.list) ?? find(this.offers) ?? this.text.body).focus({ preventScroll: true });
  }
}

/** The piece in question in UTF-16 units, if there is one. */
export function pieceOf({ start, end }, measured) {
  return start === null || start === undefined
    ? null
    : [measured.toUnits(start), measured.toUnits(end)];
}

function keyOf(element, ...parents) {
  return parents.some((parent) => parent.contains(element)) ? element.dataset.key : "";
}

function shorten(text) {
  const points = Array.from(text);
  return points.length > 80 ? `${points.slice(0, 79).join("")}…` : text;
}
