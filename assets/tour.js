// The guided tour: a card that explains, and a ring around what it is about, on the real page.
// What is pointed at may stand in the page or inside a view's shadow, and may still be to come.
const PADDING = 6;
const LOOKING = 200;
const PHONE = 640;

export default function (component) {
  const { data, parentElement, setTriggerValue } = component;
  const root = parentElement.querySelector(".vs-tour");
  root.lang = data.lang;
  root.vsLatest = component;
  if (data.cookie) {
    document.cookie = `${data.cookie}=offered; path=/; max-age=31536000; SameSite=Lax`;
  }
  root.vsTour ??= new Tour(root);
  root.vsTour.update(data, (move) => setTriggerValue("move", move));
  return () => {
    if (root.vsLatest === component) root.vsTour.close();
  };
}

class Tour {
  constructor(root) {
    this.root = root;
    this.turn = null;
    this.at = 0;
    this.open = false;
  }

  /** Show what the server says; where the tour is on a page, the script knows better. */
  update(data, send) {
    this.data = data;
    this.send = send;
    if (!data.stops.length) {
      this.turn = null;
      this.close();
      return;
    }
    const moved = data.turn !== this.turn;
    if (moved) Object.assign(this, { turn: data.turn, at: data.at, ended: false });
    if (this.ended) return;
    if (!this.open) this.begin();
    if (moved || this.shownOn !== data.page) this.show();
    else this.write();
  }

  begin() {
    this.open = true;
    this.build();
    this.listening = new AbortController();
    const always = { signal: this.listening.signal, capture: true, passive: true };
    window.addEventListener("scroll", () => this.place(), always);
    window.addEventListener("resize", () => this.place(), always);
    for (const kind of ["wheel", "touchmove"]) {
      window.addEventListener(kind, () => (this.scrolled = true), always);
    }
    const folds = (event) => event.composedPath().some((one) => one.tagName === "SUMMARY");
    window.addEventListener("click", (event) => (this.folded ||= folds(event)), always);
    this.timer = setInterval(() => this.look(), LOOKING);
    for (const part of [this.ring, this.card]) {
      this.root.append(part);
      part.showPopover?.();
    }
  }

  close() {
    if (!this.open) return;
    this.open = false;
    clearInterval(this.timer);
    this.listening.abort();
    this.ring.remove();
    this.card.remove();
  }

  build() {
    this.ring = make("div", "vs-tour-ring", { popover: "manual" });
    this.ring.setAttribute("aria-hidden", "true");
    this.card = make("section", "vs-tour-card", { popover: "manual" });
    for (const [name, value] of Object.entries({
      role: "dialog",
      "aria-labelledby": "vs-tour-title",
      "aria-describedby": "vs-tour-text",
    })) {
      this.card.setAttribute(name, value);
    }
    this.counted = make("p", "vs-tour-place");
    this.title = make("h2", "vs-tour-title", { id: "vs-tour-title", tabIndex: -1 });
    this.text = make("p", "vs-tour-text", { id: "vs-tour-text" });
    this.note = make("p", "vs-tour-note");
    this.note.setAttribute("role", "status");
    this.end = make("button", "vs-tour-end", { type: "button", onclick: () => this.finish() });
    this.back = make("button", "", { type: "button", onclick: () => this.move(-1) });
    this.next = make("button", "vs-tour-next", { type: "button", onclick: () => this.move(1) });
    const buttons = make("div", "vs-tour-buttons");
    buttons.append(this.end, this.back, this.next);
    this.card.append(this.counted, this.title, this.text, this.note, buttons);
    this.card.addEventListener("keydown", (event) => this.pressed(event));
  }

  get stop() {
    return this.data.stops[this.at];
  }

  get elsewhere() {
    return this.stop.page !== this.data.page;
  }

  /** A stop begins: its words, its place, and the focus on its title, which is then read out. */
  show() {
    this.shownOn = this.data.page;
    Object.assign(this, { target: null, brought: false, scrolled: false, folded: false });
    this.ring.hidden = true;
    this.card.removeAttribute("aria-busy");
    this.write();
    this.look();
    this.place();
    this.title.focus({ preventScroll: true });
  }

  write() {
    const { words, stops } = this.data;
    const { stop, elsewhere } = this;
    this.counted.textContent = stop.place;
    this.title.textContent = stop.title;
    this.text.textContent = elsewhere ? stop.elsewhere : stop.text;
    const last = this.at === stops.length - 1;
    this.end.textContent = words.end;
    this.back.textContent = words.back;
    this.next.textContent = elsewhere ? stop.go : last ? words.finish : words.next;
    this.back.disabled = this.at === 0;
    this.end.hidden = last && !elsewhere;
    this.say();
  }

  say() {
    const waits = !this.target && !this.elsewhere;
    const words = waits ? this.data.words.waiting : "";
    if (this.note.textContent !== words) this.note.textContent = words;
  }

  move(by) {
    if (this.card.ariaBusy === "true") return;
    const at = this.elsewhere ? this.at : this.at + by;
    if (at < 0) return;
    if (at >= this.data.stops.length) return this.finish();
    this.at = at;
    if (this.elsewhere) {
      this.card.ariaBusy = "true";
      this.send({ action: "go", at });
    } else this.show();
  }

  finish() {
    this.ended = true;
    this.close();
    this.send({ action: "end" });
    // The focus goes back to where the tour was begun, else to the beginning of the page.
    const title = document.querySelector("[data-testid='stMain'] h1");
    if (title) title.tabIndex = -1;
    const back = document.querySelector(".st-key-tour-start button") ?? title;
    back?.focus({ preventScroll: true });
  }

  pressed(event) {
    const does = {
      Escape: () => this.finish(),
      ArrowRight: () => this.move(1),
      ArrowLeft: () => this.move(-1),
    }[event.key];
    if (!does || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    event.stopPropagation();
    does();
  }

  /** What the stop is about may appear, go, or be drawn anew at any moment. */
  look() {
    const found = this.elsewhere ? null : find(this.stop.targets);
    // What is drawn anew is folded again; what a visitor folds stays so.
    if (found && !this.folded) unfold(found);
    if (found && !found.getBoundingClientRect().height) return this.lose();
    this.target = found;
    // What is drawn above it may push it away; a visitor who scrolls is not pulled back.
    if (found && !(this.brought && (this.scrolled || this.inView(found)))) this.bring(found);
    this.say();
    this.place();
  }

  /** It is not there, or still empty. */
  lose() {
    this.target = null;
    this.say();
    this.place();
  }

  inView(target) {
    const box = target.getBoundingClientRect();
    const floor = innerWidth < PHONE ? this.card.getBoundingClientRect().top : innerHeight;
    return box.top >= ceiling() && box.top < floor - 2 * PADDING;
  }

  /** Scroll it where card and ring both have room; the header lies over the top of the page. */
  bring(target) {
    this.brought = true;
    const box = target.getBoundingClientRect();
    const middle = (innerHeight - box.height) / 2;
    const top = ceiling() + 3 * PADDING;
    const wanted = innerWidth < PHONE ? top : Math.max(top, middle);
    const main = document.querySelector("[data-testid='stMain']");
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    const behavior = still ? "auto" : "smooth";
    main?.scrollBy({ top: box.top - wanted, behavior });
  }

  place() {
    if (!this.open) return;
    const phone = innerWidth < PHONE;
    this.card.classList.toggle("vs-tour-sheet", phone);
    const box = this.target?.getBoundingClientRect();
    const seen = box && box.width > 0 && box.bottom > 0 && box.top < innerHeight;
    this.ring.hidden = !seen;
    if (seen) {
      const left = Math.max(2, box.left - PADDING);
      const top = Math.max(2, box.top - PADDING);
      Object.assign(this.ring.style, {
        left: `${left}px`,
        top: `${top}px`,
        width: `${Math.min(innerWidth - 2, box.right + PADDING) - left}px`,
        height: `${Math.min(innerHeight - 2, box.bottom + PADDING) - top}px`,
      });
    }
    if (phone) {
      this.card.style.left = this.card.style.top = "";
      return;
    }
    const { width, height } = this.card.getBoundingClientRect();
    const [left, top] = seen ? beside(box, width, height) : [innerWidth - width - 24, innerHeight];
    this.card.style.left = `${clamp(left, 12, innerWidth - width - 12)}px`;
    this.card.style.top = `${clamp(top, 12, innerHeight - height - 12)}px`;
  }
}

/** Open what the element is folded into: what is told of is seen. */
function unfold(element) {
  for (let fold = element.closest("details"); fold; fold = fold.parentElement.closest("details")) {
    fold.open = true;
  }
}

/** Where the page can be seen from: below the header, and below the bar of a run that stays. */
function ceiling() {
  const bars = document.querySelectorAll("[data-testid='stHeader'], .st-key-run-bar");
  const ends = [...bars].map((bar) => bar.getBoundingClientRect()).filter((box) => box.top < 90);
  return Math.max(0, ...ends.map((box) => box.bottom));
}

/** Left and top of the card: below what it is about, above, right or left of it, or over its end. */
function beside(box, width, height) {
  const gap = 16;
  if (box.bottom + gap + height < innerHeight) return [box.left, box.bottom + gap];
  if (box.top - gap - height > 60) return [box.left, box.top - gap - height];
  if (box.right + gap + width < innerWidth) return [box.right + gap, box.top];
  if (box.left - gap - width > 0) return [box.left - gap - width, box.top];
  return [box.right - width - gap, innerHeight];
}

/** The first element that one of the selectors finds, in the page or in the shadow of a view. */
function find(selectors) {
  const main = document.querySelector("[data-testid='stMain']") ?? document.body;
  const places = [main];
  for (const element of main.querySelectorAll("*")) {
    if (element.shadowRoot) places.push(element.shadowRoot);
  }
  for (const selector of selectors) {
    for (const place of places) {
      const found = place.querySelector(selector);
      if (found) return found;
    }
  }
  return null;
}

const clamp = (value, low, high) => Math.max(low, Math.min(value, Math.max(low, high)));

function make(name, css, properties = {}) {
  const element = Object.assign(document.createElement(name), properties);
  if (css) element.className = css;
  return element;
}
