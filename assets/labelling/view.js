// One item on the page: for an annotator, who labels it, or for an adjudicator, who decides it.

import { ActiveTime, Drafts, Outbox } from "./requests.js";
import { Measured } from "./text.js";
import { MarkedText } from "./marks.js";
import { SpanEditor, pieceOf } from "./spans.js";
import { button, clock, el, filled, isOurs, signOf } from "./dom.js";
import { DecisionForm, bodyOf, labelled, lastSaved, openField, revealedLabels } from "./parts.js";
import { PeoplePart, peopleLayers } from "./people.js";

/** Requests that lead to another item, or to another state of this one. */
const MOVING = ["label", "change", "skip", "undo", "redo", "next", "look", "reveal", "decide"];

class Labelling {
  constructor(root) {
    this.root = root;
    this.live = el("p.vs-sr", { role: "status", "aria-live": "polite" });
    this.notice = el("div.vs-lab-notice", { role: "alert" });
    this.page = el("div.vs-lab-page");
    root.replaceChildren(this.notice, this.page, this.live);
    this.hidden = new Set();
  }

  /** Show `data`; `post` sends a request to the server. */
  update(data, post) {
    this.start(data);
    const before = this.data;
    this.data = data;
    this.root.lang = data.lang;
    this.root.dataset.mode = data.mode;
    const refused = data.refused ?? {};
    // Where the page does not acknowledge requests by name, its next answer is to all of them.
    const news = data.asked !== before?.asked;
    const known = data.scope
      ? [...data.acknowledged, ...Object.keys(refused)]
      : this.outbox.waiting.map((one) => one.client).filter(() => news);
    const answered = this.outbox.connected(post, known);
    this.answered(answered, refused);
    const shown = JSON.stringify([
      data.mode,
      data.item,
      data.label,
      data.revealed,
      data.scope,
      data.lang,
      data.people ?? null,
    ]);
    if (shown !== this.shown) {
      const other = before?.item !== data.item || before?.scope !== data.scope;
      this.shown = shown;
      this.render(other);
    } else this.patch();
    if (data.mode === "decide") this.takeDraft(answered, refused);
  }

  start(data) {
    if (this.outbox && this.scope === data.scope) return;
    this.stop();
    this.scope = data.scope;
    this.outbox = new Outbox(data.scope, () => this.patch());
    this.drafts = new Drafts(data.scope);
    this.time = new ActiveTime();
    this.shown = null;
    this.had = false;
    this.abort = new AbortController();
    const { signal } = this.abort;
    document.addEventListener("keydown", (event) => this.pressed(event), { signal });
    addEventListener("pagehide", () => this.keep(), { signal });
    this.ticking = setInterval(() => this.tick(), 1_000);
  }

  stop() {
    if (!this.outbox) return;
    if (this.data) this.keep();
    this.outbox.stop();
    this.time.stop();
    this.editor?.stop();
    this.abort.abort();
    clearInterval(this.ticking);
    this.outbox = this.editor = null;
  }

  /** Whether an answer is awaited that changes what is shown. */
  get busy() {
    return this.outbox.waiting.some(({ action }) => MOVING.includes(action));
  }

  /** Whether labels that are to be merged are not on the screen yet. */
  get merging() {
    return this.outbox.waiting.some(({ action }) => action === "merge");
  }

  answered(requests, refused) {
    for (const { action, client, item } of requests) {
      // Nothing is called saved that was not stored.
      this.had = !(client in refused);
      if (!this.had) {
        this.choice = this.data.label?.verdict ?? null;
        continue;
      }
      if (["label", "change", "skip", "decide"].includes(action) && this.scope) {
        this.drafts.write(item, null);
        if (item === this.item) this.saved = true;
      }
      if (action === "change") this.say(this.data.words.saved);
      if (action === "comment") this.say(this.data.words.comment_saved);
    }
  }

  /** Ask the server for something about the item in hand, unless it is being saved. */
  send(action, more = {}) {
    if (MOVING.includes(action) && this.busy) return;
    this.renewed = performance.now();
    this.outbox.add({ action, item: this.data.item, ...more });
    this.patch();
    if (action === "label" || action === "change") this.say(this.data.words.saving);
  }

  say(words) {
    // The same words twice would not be heard the second time.
    this.live.textContent = this.live.textContent === words && words ? `${words}\u00a0` : words;
  }

  /** Keep what was begun, for when the page is loaded again. */
  keep() {
    if (!this.scope || this.saved || this.item === undefined) return;
    // A look at what was labelled before leaves nothing behind.
    if (this.data.label && !this.touched) return;
    const seconds = this.time.seconds;
    this.drafts.write(this.item, { seconds, ...(this.touched ? this.editor?.draft() : {}) });
  }

  tick() {
    this.time.count();
    if (this.timer) this.timer.textContent = clock(this.time.seconds);
    const { data } = this;
    const open = data.mode === "label" && !data.label;
    // A renewal draws the page again, which closes what is open over it: that can wait a while.
    const share = document.querySelector("[role='dialog']") ? 0.8 : 1 / 3;
    const due = performance.now() - this.renewed > data.lease * 1000 * share;
    if (open && data.lease && due && this.time.active && !this.busy) {
      this.renewed = performance.now();
      this.outbox.whisper({ action: "renew", item: data.item });
    }
    if (this.outbox.waiting.length) this.patch();
  }

  /** Build everything anew; `other`: it is another item than before. */
  render(other) {
    const { data } = this;
    const active = document.activeElement;
    const ours = !active || active === document.body || this.root.contains(active);
    const first = this.item === undefined;
    this.item = data.item;
    this.touched = this.saved = false;
    this.choice = data.label?.verdict ?? null;
    this.renewed = performance.now();
    this.editor?.stop();
    this.editor = this.none = this.saving = this.decision = null;
    if (other) this.hidden = new Set();
    this.measured = new Measured(data.text, data.text_lang);
    const draft = this.scope ? this.drafts.read(data.item) : null;
    this.time.reset(data.label ? 0 : (draft?.seconds ?? 0));
    this.heading = el("h2.vs-lab-ask", { tabindex: "-1" }, data.ask);
    if (data.task === "span") this.edit(draft);
    this.strip = this.last();
    const body = bodyOf(data, () => this.text());
    const above = [this.head(), this.strip, this.heading, body];
    this.page.replaceChildren(...[...above, ...this.form(), this.tools()].filter(Boolean));
    this.patch();
    // Who opened an item from the list of their labels wants to see it.
    if (ours || (other && data.label)) {
      const target = data.task === "span" ? this.editor.text.body : this.heading;
      target.focus({ preventScroll: true });
      // What is above the fold on a small screen would be the middle of the item before.
      if (!first && this.root.getBoundingClientRect().top < 0) this.root.scrollIntoView();
    }
    if (!first && other) this.say(`${data.words.item_changed}. ${data.at}. ${data.ask}`);
  }

  edit(draft) {
    const { data } = this;
    this.editor = new SpanEditor({
      measured: this.measured,
      data,
      say: (words) => this.say(words),
      changed: () => {
        this.touched = true;
        this.saved = false;
        this.keep();
        this.patch();
      },
      layers: () =>
        data.people ? peopleLayers(data.people, this.hidden, this.measured) : [],
    });
    const begun = draft?.spans;
    const given = (data.label ?? data.undone)?.spans ?? [];
    this.editor.load(begun ?? given, (begun && draft.offered) ?? data.offered);
    this.touched = Boolean(begun);
    if (begun) this.say(data.words.restored);
  }

  head() {
    const { data } = this;
    this.timer = el("span.vs-num", { "aria-hidden": "true" }, clock(this.time.seconds));
    this.status = el("span.vs-lab-status", { role: "status" });
    const share = data.share ?? null;
    return el(
      "div.vs-lab-head",
      {},
      el("span.vs-lab-at.vs-num", {}, data.at),
      share !== null && el("progress", { max: "1", value: String(share), "aria-label": data.at }),
      data.mode === "label" && this.timer,
      this.status,
    );
  }

  /** What was saved last. Its place is always there for who labels. */
  last() {
    if (this.data.mode !== "label") return null;
    return lastSaved(this.data, (action, more) => this.send(action, more));
  }

  /** The text and the tools to mark it, or the text alone. */
  text() {
    const { data } = this;
    if (this.editor) return [this.editor.text.element, this.editor.bar];
    const text = new MarkedText(this.measured, { lang: data.text_lang });
    text.draw([], { piece: pieceOf(data, this.measured) });
    text.element.classList.add("vs-lab-plain");
    return [text.element];
  }

  /** What is said of the item, from the top down. */
  form() {
    const { data } = this;
    const { words } = data;
    const parts = [];
    if (data.people) {
      const { element } = new PeoplePart(data, this.measured, this.hidden, {
        take: (person) => this.take(person),
        merge: (rule) => this.merge(rule, -1),
        changed: () => this.editor?.draw(),
      });
      parts.push(element);
    }
    if (this.editor) {
      parts.push(this.editor.offers, labelled(words.spans, this.editor.list));
    }
    this.verdicts = data.verdicts.map(({ value, word, sign, css }, index) =>
      button(word, {
        key: String(index + 1),
        sign,
        css: `vs-lab-verdict ${css}`,
        "aria-pressed": String(this.choice === value),
        press: () => this.choose(value),
      }),
    );
    const bar = el(
      "div.vs-lab-answer",
      { role: "group", "aria-label": data.mode === "decide" ? words.decision : words.verdicts },
      this.verdicts,
    );
    if (data.revealed) parts.push(revealedLabels(data));
    if (data.mode === "label" && data.label) {
      parts.push(el("p.vs-note", {}, words.change_mind));
    }
    if (data.mode === "decide") {
      this.decision = new DecisionForm(data, () => this.decide());
      parts.push(bar, this.decision.element);
    } else if (this.editor) {
      this.saving = button(words.save, {
        key: "d",
        css: "vs-lab-primary",
        press: () => this.save(),
      });
      this.none = button(words.no_spans, {
        key: "0",
        sign: "✓",
        css: "vs-lab-verdict vs-verdict-supported",
        press: () => this.saveNone(),
      });
      bar.append(this.none, this.saving);
      parts.push(bar);
    } else {
      bar.classList.add("vs-lab-sticky");
      parts.push(bar);
    }
    return parts;
  }

  tools() {
    const { data } = this;
    const { words } = data;
    this.panel = el("div.vs-lab-panel");
    const tool = (name, key, press) => button(words[name], { key, css: "vs-lab-quiet", press });
    this.undoing = tool("undo", "u", () => this.undo());
    this.redoing = tool("redo", "⇧U", () => this.redo());
    if (data.mode === "decide") {
      if (!this.editor) return null;
      return el("div.vs-lab-tools", {}, this.undoing, this.redoing);
    }
    const row = el(
      "div.vs-lab-tools",
      { role: "group", "aria-label": words.keys },
      this.undoing,
      this.redoing,
      data.label ? null : tool("skip", "s", () => this.ask("skip")),
      tool("comment", "m", () => this.ask("comment")),
      tool("guidelines", "g", () => this.outbox.whisper({ action: "guidelines", item: data.item })),
    );
    return el("div.vs-lab-foot", {}, row, this.panel);
  }

  /** Ask for a reason or a comment. */
  ask(what) {
    openField(this.panel, what, this.data.words, {
      send: (text) => {
        if (what === "skip" && this.busy) return;
        this.close();
        this.send(what, what === "skip" ? { reason: text } : { text });
      },
      close: () => this.close(),
      say: (words) => this.say(words),
    });
  }

  close() {
    if (!this.panel?.hasChildNodes()) return;
    this.panel.replaceChildren();
    this.heading.focus({ preventScroll: true });
  }

  /** Bring to what is true now what may change while the item stays. */
  patch() {
    const { data, busy } = this;
    if (!this.status) return;
    const { words } = data;
    const late = this.outbox.late;
    const waiting = this.outbox.waiting.length > 0;
    const done = data.mode === "decide" ? data.label && words.decided : this.had && words.saved;
    const said = late ? words.offline : waiting ? words.saving : (done ?? "");
    const state = late ? "late" : waiting ? "waiting" : said ? "done" : "none";
    if (this.status.dataset.state !== state || this.status.vsSaid !== said) {
      this.status.dataset.state = state;
      this.status.vsSaid = said;
      this.status.replaceChildren(
        ...(said ? [signOf(late ? "!" : waiting ? "…" : "✓"), el("span", {}, said)] : []),
      );
    }
    this.root.toggleAttribute("data-busy", busy);
    const last = JSON.stringify([data.last, data.can]);
    if (this.strip && this.lastShown !== last) {
      const strip = this.last();
      this.strip.replaceWith(strip);
      Object.assign(this, { strip, lastShown: last });
    }
    // Of what was refused, the last request alone: after the next one it is past.
    const notice = data.notice ?? "";
    if (this.notice.textContent !== notice) this.notice.textContent = notice;
    if (this.undoing) {
      const given = (data.can?.undo ?? null) !== null;
      this.undoing.disabled = busy || !(this.editor?.past.length || given);
      this.redoing.disabled = busy || !(this.editor?.future.length || data.can?.redo);
      if (data.redo) this.redoing.title = data.redo;
    }
    for (const [index, one] of this.verdicts.entries()) {
      one.setAttribute("aria-pressed", String(data.verdicts[index].value === this.choice));
    }
    // What was asked for is not on the screen yet: nobody decides by what they cannot see.
    if (this.decision) this.decision.open = !this.merging;
    if (this.none) this.none.disabled = Boolean(this.editor.spans.length);
    if (this.saving) this.saving.disabled = !this.editor.spans.length;
  }

  choose(value) {
    const { data } = this;
    if (this.busy) return;
    this.choice = value;
    if (data.mode === "decide") return this.patch();
    if (data.label?.verdict === value) return this.patch();
    this.send(data.label ? "change" : "label", {
      value: { verdict: value },
      seconds: this.time.seconds,
    });
  }

  save() {
    if (!this.editor || this.busy) return;
    if (!this.editor.spans.length) return this.editor.refuse(this.data.words.spans_none);
    this.saveSpans();
  }

  saveNone() {
    if (!this.editor || this.busy) return;
    if (this.editor.spans.length) return this.editor.refuse(this.data.words.no_spans_first);
    this.saveSpans();
  }

  saveSpans() {
    this.keep();
    this.send(this.data.label ? "change" : "label", {
      value: { spans: this.editor.value() },
      seconds: this.time.seconds,
    });
  }

  undo() {
    const target = this.data.can?.undo ?? null;
    if (this.editor?.undo() || target === null) return;
    this.send("undo", { item: target });
  }

  redo() {
    if (this.editor?.redo() || !this.data.can?.redo) return;
    this.send("redo");
  }

  /** Take the label of one person as the decision to begin with. */
  take(person) {
    if (this.editor) return this.merge("person", person.number);
    this.choice = person.label.verdict;
    this.patch();
  }

  merge(rule, person) {
    this.say(this.data.words.merging);
    this.outbox.add({ action: "merge", item: this.data.item, rule, person });
    this.patch();
  }

  /** Begin with the label that the page hands over: at first, and when it was asked to merge. */
  takeDraft(answered, refused) {
    const { data } = this;
    if (!this.editor || !data.draft?.spans) return;
    const asked = answered.some(({ action, client, item }) => {
      return action === "merge" && item === data.item && !(client in refused);
    });
    const name = JSON.stringify([data.item, data.draft]);
    if (asked || (this.drafted !== name && !this.touched)) {
      this.editor.replace(data.draft.spans);
      this.say(filled(data.words.marked_all, data.draft.spans.length));
    }
    this.drafted = name;
  }

  decide() {
    const { data } = this;
    if (this.busy) return;
    if (this.merging) return this.say(data.words.merging);
    if (!this.editor && !this.choice) return this.say(data.words.decision);
    const label = this.editor ? { spans: this.editor.value() } : { verdict: this.choice };
    this.send("decide", {
      value: { task: data.task, ...label },
      ...this.decision.value,
    });
  }

  pressed(event) {
    if (!this.root.isConnected || !isOurs(event, this.root)) return;
    const { data } = this;
    const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
    if (key === "Escape") return this.close();
    if (this.handled(key, event.shiftKey, data)) event.preventDefault();
  }

  /** Do what a key stands for; whether it stands for anything. */
  handled(key, shift, data) {
    const labels = data.mode === "label";
    if (this.editor?.key(key)) return true;
    const last = data.last?.reveal ? data.last.item : null;
    const revealable = data.label ? (data.can?.reveal ? data.item : null) : last;
    const verdict = /^[1-9]$/.test(key) && data.verdicts[Number(key) - 1];
    const actions = {
      0: this.editor && labels && (() => this.saveNone()),
      d: labels ? this.editor && (() => this.save()) : () => this.decide(),
      u: shift ? () => this.redo() : () => this.undo(),
      s: labels && !data.label && (() => this.ask("skip")),
      m: labels && (() => this.ask("comment")),
      g: labels && (() => this.outbox.whisper({ action: "guidelines", item: data.item })),
      v: labels && revealable !== null && (() => this.send("reveal", { item: revealable })),
      n: labels && data.label && (() => this.send("next")),
    };
    const action = verdict ? () => this.choose(verdict.value) : actions[key];
    // Some keyboards have their digits on Shift.
    if (!action || (shift && !/^[u0-9]$/.test(key))) return false;
    action();
    return true;
  }
}
