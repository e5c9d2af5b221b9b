// Plays the walkthrough of the Space's page, from a file that is the same for everybody. What the
// server shows comes first: as soon as it shows anything, the walkthrough is over.

const AGAIN = 3000;

class Player {
  constructor() {
    this.views = new Map();
    this.turn = 0;
    this.playing = false;
    this.given = false;
    this.cued = 0;
    this.noted = false;
    this.language = "";
    this.lang = "en";
    this.mounted = Promise.withResolvers();
    this.pieces = [];
    this.frames = [];
    this.made = new Map();
  }

  /** Take in the view called `name`: with `draw(html, lang)`, `restore()`, `tell(event)`, `host`. */
  join(name, view) {
    this.views.set(name, view);
    // A tab that is opened gets its width then, and is drawn as of then.
    new ResizeObserver(() => this.draw(name)).observe(view.host);
    this.draw(name);
    if (name === "bar") this.mounted.resolve();
  }

  /** The server shows something in the view called `name`. */
  serverShows(name) {
    this.given = true;
    const drawn = this.made.size > 0;
    this.clear();
    if (!drawn) return;
    for (const [other, view] of this.views) if (other !== name) view.restore();
  }

  /** Play at once what the server will say is to be played, so that nobody waits for it. */
  begin() {
    const asked = new URLSearchParams(location.search);
    if (asked.has("run")) return;
    const spoken = (asked.get("lang") || navigator.language).toLowerCase();
    this.load(spoken.startsWith("zh") ? "zh" : "en");
  }

  /** Play the walkthrough that `cue` (JSON) names from its beginning; none where that is empty. */
  play(cue) {
    if (!cue || this.given) return;
    const { number, language, lang, wait } = JSON.parse(cue);
    // What was said earlier can come later.
    if (number < this.cued) return;
    this.cued = number;
    const begun = language === this.language;
    if (!begun) this.clear();
    if (wait && !this.frames.length && !this.made.size) this.note(wait, lang);
    if (!begun) this.load(language);
  }

  /** Say in the bar that it is being prepared. */
  note(html, lang) {
    this.noted = this.views.has("bar");
    this.views.get("bar")?.draw(html, lang);
  }

  async load(language) {
    this.language = language;
    const turn = this.turn;
    const file = await this.fetched(language, turn);
    await this.mounted.promise;
    if (turn !== this.turn) return;
    // Nothing is being prepared any more; when it is asked for once more, so is the server.
    if (!file) return this.clear();
    this.noted = false;
    Object.assign(this, { lang: file.lang, pieces: file.pieces, frames: [...file.frames] });
    this.began = performance.now();
    if (matchMedia("(prefers-reduced-motion: reduce)").matches) return this.finish();
    this.tell("play");
    this.step();
  }

  /** Show at once how it ends. */
  finish() {
    if (!this.frames.length) return;
    this.show(Infinity);
    this.tell("end");
  }

  /** Whether the button that stops it can be used, as Gradio is told. */
  get stoppable() {
    return { __type__: "update", interactive: this.playing };
  }

  clear() {
    this.turn += 1;
    clearTimeout(this.timer);
    this.playing = false;
    this.language = "";
    this.frames = [];
    this.made.clear();
    if (this.noted) this.views.get("bar").restore();
    this.noted = false;
  }

  async fetched(language, turn) {
    const address = new URL(`walkthrough/${language}`, location.href);
    for (let tries = 0; tries < 5 && turn === this.turn; tries += 1) {
      try {
        const reply = await fetch(address);
        if (reply.ok) return await reply.json();
        if (reply.status === 404) return null;
      } catch {
        // The connection was lost; it may come back.
      }
      await new Promise((resolve) => setTimeout(resolve, AGAIN));
    }
    return null;
  }

  tell(event) {
    this.playing = event === "play";
    this.views.get("bar")?.tell(event);
  }

  step() {
    this.show((performance.now() - this.began) / 1000);
    if (!this.frames.length) return this.tell("end");
    const left = this.began + this.frames[0][0] * 1000 - performance.now();
    this.timer = setTimeout(() => this.step(), Math.max(left, 0));
  }

  /** Bring every view to what it is `seconds` after the beginning. */
  show(seconds) {
    const changed = new Set();
    while (this.frames.length && this.frames[0][0] <= seconds) {
      for (const [name, [first, last, between]] of Object.entries(this.frames.shift()[1])) {
        const before = this.made.get(name) ?? [];
        const end = before.slice(before.length - last);
        this.made.set(name, [...before.slice(0, first), ...between, ...end]);
        changed.add(name);
      }
    }
    clearTimeout(this.timer);
    for (const name of changed) this.draw(name);
  }

  draw(name) {
    const view = this.views.get(name);
    const made = this.made.get(name);
    // What cannot be seen is drawn when it can.
    if (!made || !view?.host.offsetWidth || view.drawn === made) return;
    view.drawn = made;
    view.draw(made.map((number) => this.pieces[number]).join(""), this.lang);
  }
}

globalThis.veriscopePlayer = new Player();
globalThis.veriscopePlayer.begin();
