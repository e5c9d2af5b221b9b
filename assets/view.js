// Brings the HTML of `components/` to life: `patch` changes a page in place, so that nothing
// flickers and focus, scroll positions and opened details stay; `mount` adds tooltips and arrow
// keys. Works in a document, in a shadow root and in a file opened from disk. Takes only HTML that
// `components/` has escaped; everything shown from data attributes is set as text.

import { morphInto } from "./patch.js";
import { Tip, controlled, describe } from "./tooltip.js";

const views = new WeakMap();

/** Listen on `root` (an Element or ShadowRoot) once; returns a function that stops listening. */
export function mount(root) {
  const known = views.get(root);
  if (known) return known.stop;
  const view = new View(root);
  views.set(root, view);
  return view.stop;
}

/** Make the content of `root` equal to `html`, keeping the elements that stay the same. */
export function patch(root, html) {
  mount(root);
  const template = document.createElement("template");
  template.innerHTML = html;
  morphInto(root, template.content);
  views.get(root).patched();
}

class View {
  constructor(root) {
    this.root = root;
    this.tip = new Tip();
    const abort = new AbortController();
    const on = (target, type, handler, options) =>
      target.addEventListener(type, handler.bind(this), { signal: abort.signal, ...options });
    on(root, "pointerover", this.hovered);
    on(root, "pointerout", this.left);
    on(root, "focusin", this.focused);
    on(root, "focusout", () => this.tip.hide());
    on(root, "keydown", this.pressed);
    on(root, "click", this.clicked);
    on(document, "pointerdown", (event) => {
      if (!event.composedPath().includes(this.tip.element)) this.tip.hide();
    });
    on(window, "scroll", () => this.tip.place(), { capture: true, passive: true });
    on(window, "resize", () => this.tip.place());
    on(window, "hashchange", () => this.arrive());
    this.stop = () => {
      abort.abort();
      clearInterval(this.timer);
      this.tip.element.remove();
      views.delete(root);
    };
    this.patched();
  }

  /** After new content: one tab stop in each group, clocks run, the tooltip shows what is true. */
  patched() {
    for (const group of this.root.querySelectorAll("[data-roving]")) {
      const [current, ...others] = group.querySelectorAll('[data-i][tabindex="0"]');
      for (const other of others) other.tabIndex = -1;
      if (!current) group.querySelector("[data-i]")?.setAttribute("tabindex", "0");
    }
    if (!this.timer && this.root.querySelector("[data-clock]")) {
      this.timer = setInterval(() => this.tick(), 100);
    }
    this.arrive();
    const target = this.tip.target;
    if (target?.isConnected) this.tip.show(target, describe(target), this.tip.pinned);
    else if (target) this.tip.hide();
  }

  /** Bring into view, once, what the address or the content asks for; a shadow root has no #. */
  arrive() {
    const asked = location.hash.slice(1);
    const named = asked && this.root.querySelector(`#${CSS.escape(decoded(asked))}`);
    const goal = named || this.root.querySelector("[data-arrive]");
    const wanted = named ? asked : goal && `arrive ${goal.id}`;
    if (!goal || wanted === this.arrived) return;
    this.arrived = wanted;
    for (let fold = goal.closest("details"); fold; fold = fold.parentElement.closest("details")) {
      fold.open = true;
    }
    show(goal);
  }

  tick() {
    const clocks = this.root.querySelectorAll("[data-clock]");
    if (!clocks.length) {
      clearInterval(this.timer);
      this.timer = 0;
    }
    for (const clock of clocks) {
      const told = Number(clock.dataset.clock);
      if (clock.vsTold !== told) Object.assign(clock, { vsTold: told, vsAt: performance.now() });
      const value = told + (performance.now() - clock.vsAt) / 1000;
      // An update that arrives a moment late does not turn the clock back.
      const shown = Number(clock.textContent);
      if (value > shown || shown - value > 1) clock.textContent = value.toFixed(1);
    }
  }

  hovered(event) {
    const item = itemOf(event);
    if (item && event.pointerType === "mouse") this.tip.show(item, describe(item), false);
  }

  left(event) {
    const item = itemOf(event);
    if (!item || event.pointerType !== "mouse" || item.contains(event.relatedTarget)) return;
    const focused = this.root.getRootNode().activeElement;
    if (focused !== item && focused?.matches?.("[data-roving] [data-i][aria-describedby]")) {
      this.tip.show(focused, describe(focused), true);
    } else if (focused !== item) this.tip.hide();
  }

  focused(event) {
    const item = itemOf(event);
    if (item) this.tip.show(item, describe(item), true);
  }

  clicked(event) {
    const button = event.target.closest?.("[data-action]");
    if (button) {
      const detail = { action: button.dataset.action, value: button.dataset.value ?? null };
      button.dispatchEvent(
        new CustomEvent("vs-action", { bubbles: true, composed: true, detail }),
      );
      return;
    }
    const link = event.target.closest?.("[data-goto]");
    if (link) {
      // An address with # would look in the document, not in the view.
      show(this.root.querySelector(`#${CSS.escape(link.dataset.goto)}`));
      return;
    }
    const item = itemOf(event);
    if (!item) return;
    makeCurrent(item);
    if (item.localName === "button") openDetails(item);
    else item.focus({ preventScroll: true });
  }

  pressed(event) {
    if (event.key === "Escape" && this.tip.target) {
      this.tip.hide();
      event.stopPropagation();
      return;
    }
    const item = itemOf(event);
    if (!item || event.altKey || event.ctrlKey || event.metaKey) return;
    const items = [...item.closest("[data-roving]").querySelectorAll("[data-i]")];
    const at = items.indexOf(item);
    const moves = {
      ArrowRight: () => items[at + 1],
      ArrowLeft: () => items[at - 1],
      ArrowDown: () => beside(items, item, 1),
      ArrowUp: () => beside(items, item, -1),
      Home: () => items[0],
      End: () => items.at(-1),
    };
    if (moves[event.key]) {
      event.preventDefault();
      const next = moves[event.key]();
      if (!next) return;
      makeCurrent(next);
      next.focus();
    } else if (item.localName === "span" && (event.key === "Enter" || event.key === " ")) {
      event.preventDefault();
      this.tip.show(item, describe(item), true);
    }
  }
}

const itemOf = (event) => event.target.closest?.("[data-roving] [data-i]") ?? null;

/** Bring `goal` into view, with what it is folded in opened, and give it the focus. */
function show(goal) {
  for (let node = goal; node; node = node.parentElement?.closest("details")) {
    if (node.localName === "details") node.open = true;
  }
  goal?.scrollIntoView({ block: "center" });
  goal?.focus({ preventScroll: true });
}

/** The name in an address; one that is not written properly is taken as it stands. */
function decoded(name) {
  try {
    return decodeURIComponent(name);
  } catch {
    return name;
  }
}

/** Open the details a bar of the timeline stands for, and those around them. */
function openDetails(item) {
  const details = controlled(item);
  for (let node = details; node; node = node.parentElement?.closest("details")) node.open = true;
  details?.scrollIntoView({ block: "nearest" });
  details?.querySelector("summary")?.focus({ preventScroll: true });
}

/** Make `item` the one that the Tab key reaches in its group. */
function makeCurrent(item) {
  for (const other of item.closest("[data-roving]").querySelectorAll('[data-i][tabindex="0"]')) {
    other.tabIndex = -1;
    if (other.localName === "span") {
      other.removeAttribute("role");
      other.removeAttribute("aria-label");
    }
  }
  item.tabIndex = 0;
  // Only the current token is a control; the others stay plain text, read as a text is read.
  if (item.localName === "span") item.setAttribute("role", "button");
}

/** The nearest item on the next line (`way` 1) or the one before (-1). */
function beside(items, item, way) {
  const middle = (box) => [(box.left + box.right) / 2, (box.top + box.bottom) / 2];
  const [x, y] = middle(item.getBoundingClientRect());
  const height = item.getBoundingClientRect().height / 2;
  const ahead = items
    .map((other) => [other, ...middle(other.getBoundingClientRect())])
    .filter(([, , top]) => (top - y) * way > height);
  const nearest = Math.min(...ahead.map(([, , top]) => (top - y) * way));
  const line = ahead.filter(([, , top]) => (top - y) * way < nearest + height);
  return line.sort((a, b) => Math.abs(a[1] - x) - Math.abs(b[1] - x))[0]?.[0];
}
