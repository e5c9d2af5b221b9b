// A text in which pieces are marked and can be selected: by mouse, by touch, and by keyboard.

import { HIDDEN, codeOf } from "./text.js";
import { el } from "./dom.js";

const MOVES = ["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown", "Home", "End"];

/**
 * The text of an item. `selected(range, said)` is told what is selected, as [start, end) in UTF-16
 * units without blanks around it, or null; `said` is for those who do not see it. `wanted` is
 * called when Enter is pressed on a selection, `picked` with the marks under a click.
 */
export class MarkedText {
  constructor(measured, { lang, label, selected, wanted, picked } = {}) {
    this.measured = measured;
    this.selected = selected;
    this.wanted = wanted;
    this.picked = picked;
    this.range = null;
    this.anchor = this.focus = 0;
    this.body = el("div.vs-lab-text", { dir: "auto", lang: lang || null });
    this.caret = el("span.vs-lab-caret", { "aria-hidden": "true", hidden: true });
    this.element = el("div.vs-lab-paper", {}, this.body, this.caret);
    this.abort = new AbortController();
    if (selected) this.listen(label);
  }

  listen(label) {
    const { signal } = this.abort;
    const on = (target, kind, handler) =>
      target.addEventListener(kind, handler.bind(this), { signal });
    Object.entries({
      tabindex: "0",
      role: "textbox",
      "aria-readonly": "true",
      "aria-multiline": "true",
      "aria-label": label,
    }).forEach((one) => this.body.setAttribute(...one));
    on(document, "selectionchange", this.changed);
    on(this.body, "keydown", this.pressed);
    on(this.body, "pointerdown", this.touched);
    on(this.body, "click", this.clicked);
    on(this.body, "focus", () => this.body.matches(":focus-visible") && this.showCaret());
    on(this.body, "blur", this.hideCaret);
    // The text may be drawn, or its column become wider, while the caret stands in it.
    const sized = new ResizeObserver(() => this.caret.hidden || this.placeCaret());
    sized.observe(this.body);
    signal.addEventListener("abort", () => sized.disconnect());
  }

  stop() {
    this.abort.abort();
    this.highlight(null);
  }

  /**
   * Draw `layers`, from the text downwards: each is `{spans: [{start, end, badge}], css, lanes}`
   * and has as many lanes as its spans overlap, `lanes` at least. `piece` is [start, end) in
   * question.
   */
  draw(layers, { piece = null } = {}) {
    const { text } = this.measured;
    const [placed, depth] = lanes(layers);
    const edges = new Set([0, text.length]);
    for (const { start, end } of piece ? [...placed, { start: piece[0], end: piece[1] }] : placed) {
      edges.add(start);
      edges.add(end);
    }
    for (let at = 0; at < text.length; at++) {
      if (HIDDEN.test(text[at])) edges.add(at).add(at + 1);
    }
    const sorted = [...edges].sort((a, b) => a - b);
    const pieces = [];
    for (let index = 0; index + 1 < sorted.length; index++) {
      const [start, end] = [sorted[index], sorted[index + 1]];
      const over = placed.filter((span) => span.start <= start && span.end >= end);
      const inside = piece && piece[0] <= start && piece[1] >= end;
      pieces.push(this.segment(start, end, over, depth, inside));
    }
    this.body.style.setProperty("--vs-lab-lanes", depth);
    this.segments = pieces;
    this.body.replaceChildren(...pieces);
    this.highlight(this.range);
    if (!this.caret.hidden) this.placeCaret();
  }

  segment(start, end, over, depth, inside) {
    const text = this.measured.text.slice(start, end);
    const hidden = text.length === 1 && HIDDEN.test(text);
    const element = el("span.vs-lab-segment", {}, hidden ? codeOf(text) : text);
    Object.assign(element, { vsStart: start, vsEnd: end, vsHidden: hidden, vsOver: over });
    if (hidden) element.classList.add("vs-control");
    if (inside) element.classList.add("vs-lab-piece");
    if (over.length) {
      element.classList.add("vs-lab-marked");
      element.classList.toggle("vs-lab-active", over.some((span) => span.active));
      element.style.backgroundImage = over.map((span) => lineOf(span.css)).join(", ");
      element.style.backgroundPosition = over
        .map((span) => `0 calc(100% - ${depth - 1 - span.lane} * var(--vs-lab-lane))`)
        .join(", ");
      const begins = over.filter((span) => span.start === start && span.badge);
      if (begins.length) element.dataset.badge = begins.map((span) => span.badge).join(" ");
    }
    return element;
  }

  /** Select [start, end), as if it had been done by hand; null for nothing. */
  select(range) {
    this.range = range;
    this.highlight(range);
    const said = range ? this.measured.text.slice(...range) : "";
    this.selected?.(range, said);
  }

  clear() {
    if (this.body.contains(getSelection().anchorNode)) getSelection().removeAllRanges();
    this.select(null);
  }

  /** Show what is selected, also once the browser has dropped its own selection. */
  highlight(range) {
    if (!globalThis.CSS?.highlights) return;
    if (!this.selected) return;
    if (range) CSS.highlights.set("vs-selected", new Highlight(this.domRange(range)));
    else CSS.highlights.delete("vs-selected");
  }

  domRange([start, end]) {
    const range = document.createRange();
    range.setStart(...this.pointOf(start));
    range.setEnd(...this.pointOf(end));
    return range;
  }

  /** The node and offset in the page at an offset of the text. */
  pointOf(at) {
    const found = this.segments.find((one) => at < one.vsEnd) ?? this.segments.at(-1);
    if (!found) return [this.body, 0];
    const index = this.segments.indexOf(found);
    if (found.vsHidden) return [this.body, index + (at > found.vsStart ? 1 : 0)];
    return [found.firstChild, Math.max(0, at - found.vsStart)];
  }

  /** The offset of the text at a node and offset in the page. */
  offsetOf(node, offset) {
    if (node === this.body) {
      return this.segments[offset]?.vsStart ?? this.measured.text.length;
    }
    const segment = node.nodeType === Node.TEXT_NODE ? node.parentNode : node;
    if (segment.vsStart === undefined) return 0;
    if (segment.vsHidden || node === segment) return offset ? segment.vsEnd : segment.vsStart;
    return segment.vsStart + offset;
  }

  /** The browser's selection has changed. */
  changed() {
    const chosen = getSelection();
    if (!chosen.rangeCount || !chosen.anchorNode) return;
    const range = chosen.getRangeAt(0);
    const [starts, ends] = [range.startContainer, range.endContainer].map((node) =>
      this.body.contains(node),
    );
    // What was selected elsewhere, or around all of this, is none of ours.
    if (!starts && !ends) return;
    const start = starts ? this.offsetOf(range.startContainer, range.startOffset) : 0;
    const end = ends
      ? this.offsetOf(range.endContainer, range.endOffset)
      : this.measured.text.length;
    if (starts && ends && !this.moving) {
      this.anchor = this.offsetOf(chosen.anchorNode, chosen.anchorOffset);
      this.focus = this.offsetOf(chosen.focusNode, chosen.focusOffset);
    }
    // A selection that collapses stays ours until something else is done: a tap on a button would
    // take it away.
    if (start === end) return;
    const snapped = this.measured.snap(start, end);
    if (String(snapped) !== String(this.range)) this.select(snapped);
  }

  touched(event) {
    this.touch = event.pointerType === "touch";
    this.hideCaret();
    // A finger that comes down may begin to scroll, or go on with the selection.
    if (!this.touch && event.button === 0 && !event.shiftKey) this.select(null);
  }

  /** A tap selects the word under it, and the next tap widens what is selected. */
  clicked(event) {
    if (!getSelection().isCollapsed) return;
    const over = event.target.vsOver ?? [];
    if (over.length && !this.range) {
      this.picked?.(over);
      return;
    }
    if (!this.touch) return;
    const at = this.under(event.clientX, event.clientY);
    if (at === null) return;
    const end = this.measured.stepWord(at, 1);
    const start = this.measured.stepWord(end, -1);
    // Between words there are signs, and pictures.
    const word = this.measured.snap(...(start <= at ? [start, end] : [at, at + 1]));
    if (!word) return this.select(null);
    if (!this.range) return this.select(word);
    const within = word[0] >= this.range[0] && word[1] <= this.range[1];
    const both = [Math.min(word[0], this.range[0]), Math.max(word[1], this.range[1])];
    this.select(within ? null : both);
  }

  /** The start of the grapheme at a point of the screen; null where there is none. */
  under(x, y) {
    const at = this.offsetAt(x, y);
    if (at === null) return null;
    // The place nearest to a point may be the one behind the grapheme under it.
    for (const start of [this.measured.step(at, -1), this.measured.floor(at)]) {
      const rects = this.domRange([start, this.measured.step(start, 1)]).getClientRects();
      const hit = ({ left, right, top, bottom }) =>
        left <= x && x <= right && top <= y && y <= bottom;
      if ([...rects].some(hit)) return start;
    }
    return this.measured.floor(at);
  }

  /** The place in the text nearest to a point of the screen. */
  offsetAt(x, y) {
    const found = document.caretPositionFromPoint?.(x, y);
    const range = found ? null : document.caretRangeFromPoint?.(x, y);
    const node = found?.offsetNode ?? range?.startContainer;
    if (!node || !this.body.contains(node)) return null;
    return this.offsetOf(node, found?.offset ?? range.startOffset);
  }

  pressed(event) {
    if (event.key === "Escape" && this.range) {
      event.preventDefault();
      this.clear();
    } else if (event.key === "Enter" && this.range && !event.repeat) {
      event.preventDefault();
      this.wanted?.();
    } else if (MOVES.includes(event.key) && !event.metaKey) {
      event.preventDefault();
      this.move(event.key, event.ctrlKey || event.altKey, event.shiftKey);
    } else if (event.key === "a" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      this.place(0, this.measured.text.length);
    }
  }

  move(key, byWord, extend) {
    const { measured } = this;
    const length = measured.text.length;
    const leftwards = getComputedStyle(this.body).direction === "rtl";
    const at = Math.min(this.focus, length);
    let next = at;
    if (key === "Home") next = 0;
    else if (key === "End") next = length;
    else if (key === "ArrowUp") next = this.line(at, -1);
    else if (key === "ArrowDown") next = this.line(at, 1);
    else {
      const way = (key === "ArrowRight") === leftwards ? -1 : 1;
      const open = this.anchor !== this.focus;
      if (open && !extend && !byWord) {
        const edges = [this.anchor, this.focus].sort((a, b) => a - b);
        next = edges[way > 0 ? 1 : 0];
      } else next = byWord ? measured.stepWord(at, way) : measured.step(at, way);
    }
    this.place(extend ? this.anchor : next, next);
  }

  /** Put the caret at `focus`, with what lies between it and `anchor` selected. */
  place(anchor, focus) {
    [this.anchor, this.focus] = [anchor, focus];
    this.moving = true;
    getSelection().setBaseAndExtent(...this.pointOf(anchor), ...this.pointOf(focus));
    const range = anchor === focus ? null : this.measured.snap(anchor, focus);
    this.range = range;
    this.highlight(range);
    const beside = this.measured.text.slice(focus, this.measured.step(focus, 1));
    this.selected(range, range ? this.measured.text.slice(...range) : beside);
    this.showCaret();
    setTimeout(() => (this.moving = false));
  }

  /** The offset above or below `at`. */
  line(at, way) {
    const box = this.boxOf(at);
    if (!box) return at;
    const height = parseFloat(getComputedStyle(this.body).lineHeight) || 28;
    const [x, y] = [box.x, box.y + box.height / 2 + way * height];
    let found = this.offsetAt(x, y);
    if (found === null) {
      this.caret.scrollIntoView({ block: "center" });
      const moved = this.boxOf(at);
      found = this.offsetAt(moved.x, moved.y + moved.height / 2 + way * height);
    }
    if (found === null) return way > 0 ? this.measured.text.length : 0;
    return this.measured.floor(found);
  }

  /** Where the caret before `at` stands. */
  boxOf(at) {
    const { measured } = this;
    const atEnd = at >= measured.text.length;
    const from = atEnd ? measured.step(at, -1) : at;
    const rects = this.domRange([from, measured.step(from, 1)]).getClientRects();
    const rect = atEnd ? rects[rects.length - 1] : rects[0];
    if (!rect) return null;
    const leftwards = getComputedStyle(this.body).direction === "rtl";
    return { x: atEnd === leftwards ? rect.left : rect.right, y: rect.top, height: rect.height };
  }

  showCaret() {
    this.placeCaret();
    this.caret.hidden = false;
    this.caret.scrollIntoView({ block: "nearest" });
  }

  placeCaret() {
    const box = this.boxOf(Math.min(this.focus, this.measured.text.length));
    if (!box) return;
    const paper = this.element.getBoundingClientRect();
    this.caret.style.left = `${box.x - paper.left}px`;
    this.caret.style.top = `${box.y - paper.top}px`;
    this.caret.style.height = `${box.height}px`;
  }

  hideCaret() {
    this.caret.hidden = true;
  }
}

/** Every span with its lane, and the number of lanes; spans of a layer that overlap share none. */
function lanes(layers) {
  const placed = [];
  let first = 0;
  for (const { spans, css, lanes: least = 0 } of layers) {
    const ends = [];
    for (const span of [...spans].sort((a, b) => a.start - b.start || b.end - a.end)) {
      let lane = ends.findIndex((end) => end <= span.start);
      if (lane < 0) lane = ends.length;
      ends[lane] = span.end;
      placed.push({ css, ...span, lane: first + lane });
    }
    first += Math.max(least, ends.length);
  }
  return [placed, first];
}

/** A line under the text: solid, dotted or dashed, in a colour of the tokens. */
function lineOf({ colour, dash = 0, gap = 0 }) {
  const tone = `var(${colour})`;
  if (!gap) return `linear-gradient(${tone}, ${tone})`;
  const end = `${dash + gap}px`;
  return `repeating-linear-gradient(90deg, ${tone} 0 ${dash}px, transparent ${dash}px ${end})`;
}
