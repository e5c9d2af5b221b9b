// The tooltip of tokens and of bars in the timeline. All text is set as text, never as HTML.

const LONGEST = 600;
const GAP = 6;
let count = 0;

/** One tooltip, moved to whatever is pointed at or has the focus. */
export class Tip {
  constructor() {
    count += 1;
    this.element = make("div", "vs-tip");
    Object.assign(this.element, { id: `vs-tip-${count}`, hidden: true });
    this.element.setAttribute("role", "tooltip");
    this.element.setAttribute("data-added", "");
    // The top layer, where there is one: no parent can clip or displace it.
    if ("popover" in this.element) this.element.popover = "manual";
    this.target = null;
    this.pinned = false;
  }

  /** Show `content` (nodes) for `target`; a pinned tooltip can be reached with the pointer. */
  show(target, content, pinned) {
    if (!content.length) return this.hide();
    if (this.target !== target) this.hide();
    const home = target.closest(".vs-root") ?? target.getRootNode().body ?? target.getRootNode();
    if (this.element.parentNode !== home) home.append(this.element);
    this.element.replaceChildren(...content);
    this.element.hidden = false;
    this.element.classList.toggle("vs-tip-pinned", pinned);
    if (this.element.popover && !this.element.matches(":popover-open")) this.element.showPopover();
    this.target = target;
    this.pinned = pinned;
    target.setAttribute("aria-describedby", this.element.id);
    target.setAttribute("data-shown", "");
    this.place();
  }

  hide() {
    if (!this.target) return;
    this.target.removeAttribute("aria-describedby");
    this.target.removeAttribute("data-shown");
    this.target = null;
    if (this.element.popover && this.element.matches(":popover-open")) this.element.hidePopover();
    this.element.hidden = true;
  }

  /** Below the target where there is room, else above, and always inside the window. */
  place() {
    if (!this.target) return;
    const box = this.target.getClientRects()[0] ?? this.target.getBoundingClientRect();
    const { clientWidth: width, clientHeight: height } = document.documentElement;
    if (box.bottom < 0 || box.top > height) return this.hide();
    const tip = this.element.getBoundingClientRect();
    const below = box.bottom + GAP;
    const above = box.top - GAP - tip.height;
    const roomBelow = below + tip.height <= height - GAP;
    const top = roomBelow || above < GAP ? below : above;
    const inside = (value, size, room) => Math.max(GAP, Math.min(value, room - size - GAP));
    this.element.style.left = `${inside(box.left, tip.width, width)}px`;
    this.element.style.top = `${inside(top, tip.height, height)}px`;
  }
}

/** What to show for a token or a bar: a list of nodes, empty when there is nothing to say. */
export function describe(item) {
  return item.localName === "button" ? describeCall(item) : describeToken(item);
}

/** The details that a bar of the timeline stands for. */
export function controlled(item) {
  return item.getRootNode().getElementById(item.getAttribute("aria-controls"));
}

function describeToken(item) {
  const figure = item.closest("[data-tokens]");
  if (!figure) return [];
  const words = parsed(figure, "words");
  const [p, entropy, topK, tail, alternatives, parts] =
    parsed(figure, "tokens")[Number(item.dataset.i)] ?? [];
  const blank = item.textContent.includes("\n") ? words.newline : words.space;
  if (!item.textContent.trim()) item.setAttribute("aria-label", blank);
  const nodes = [make("div", "vs-tip-title", item.textContent.trim() || blank)];
  nodes.push(row(words.probability, known(p, words)));
  const value = known(entropy, words, ` ${words.nats}`);
  nodes.push(row(words.entropy, topK && value !== words.unknown ? `≥ ${value}` : value));
  if (topK) {
    const note = words.truncated.replace("{k}", topK).replace("{tail}", tail);
    nodes.push(make("div", "vs-tip-note", note));
  }
  if (parts?.length) {
    const listed = pairs(parts).map(([text, value]) => `${text} ${value}`).join(" · ");
    nodes.push(part(make("div", "vs-tip-note", words.parts), make("div", "", listed)));
  }
  if (alternatives?.length) {
    const [written, ...flat] = alternatives;
    const bars = pairs(flat).map((pair, index) => alternative(pair, index === written, words));
    nodes.push(part(make("div", "vs-tip-note", words.alternatives), ...bars));
  }
  for (const index of item.closest("[data-e]")?.dataset.e.split(" ") ?? []) {
    nodes.push(entity(parsed(figure, "entities")[Number(index)]));
  }
  return nodes;
}

function entity([name, label, verdict, verdictWords, scores, repeats]) {
  const judged = make("div", `vs-strong vs-tip-verdict vs-verdict-${verdict}`, verdictWords);
  const nodes = [make("div", "", `${name} · ${label}`), judged, make("div", "vs-num", scores)];
  if (repeats) nodes.push(make("div", "vs-tip-note", repeats));
  return part(...nodes);
}

function alternative([text, value], written, words) {
  const bar = make("span", "vs-tip-bar");
  const length = make("i", "");
  length.style.width = `${100 * (parseFloat(value.replace(/[<>]/, "")) || 0)}%`;
  bar.append(length);
  const line = make("div", `vs-tip-alternative${written ? " vs-tip-written" : ""}`);
  const note = written ? `${value} ◂ ${words.written}` : value;
  line.append(make("bdi", "vs-tip-word", text), bar, make("span", "", note));
  return line;
}

/** [a, b, c, d] as [[a, b], [c, d]]. */
const pairs = (flat) => flat.flatMap((one, i) => (i % 2 ? [] : [[one, flat[i + 1]]]));

function describeCall(item) {
  const turns = [...(controlled(item)?.querySelectorAll(".vs-turn") ?? [])];
  const prompts = turns.filter((turn) => !/vs-turn-/.test(turn.className));
  const replies = turns.filter((turn) => /vs-turn-/.test(turn.className));
  const nodes = [make("div", "vs-strong", item.getAttribute("aria-label"))];
  for (const turn of [...prompts.slice(-1), ...replies]) {
    const [name, ...content] = turn.children;
    nodes.push(part(make("div", "vs-tip-note", name.textContent), clamped(spaced(content))));
  }
  return nodes;
}

/** The text of elements, with a space where one of them ends and the next begins. */
const spaced = (elements) =>
  elements
    .flatMap((one) => [one, ...one.querySelectorAll("*")])
    .filter((one) => !one.children.length)
    .map((one) => one.textContent)
    .join(" ");

const clamped = (text) =>
  make("div", "vs-tip-clamp", text.length > LONGEST ? `${text.slice(0, LONGEST)}…` : text);

const known = (value, words, unit = "") => (value && value !== "–" ? value + unit : words.unknown);

function row(name, value) {
  const line = make("div", "vs-tip-row");
  line.append(make("span", "vs-tip-name", name), make("span", "vs-strong", value));
  return line;
}

function part(...nodes) {
  const section = make("div", "vs-tip-part");
  section.append(...nodes);
  return section;
}

function make(name, css, text = "") {
  const element = document.createElement(name);
  if (css) element.className = css;
  if (text) element.textContent = text;
  return element;
}

const cache = new WeakMap();

/** The JSON of a data attribute, read once for as long as it stays the same. */
function parsed(figure, name) {
  const known = cache.get(figure) ?? {};
  const raw = figure.dataset[name] || "[]";
  if (known[name]?.raw !== raw) known[name] = { raw, value: JSON.parse(raw) };
  cache.set(figure, known);
  return known[name].value;
}
