// What is asked of the server, until it has answered; the drafts of what is not saved; active time.

const AGAIN = 5_000;
const IDLE = 60_000;

/** A store of the tab that may be missing, full or forbidden; then nothing outlives a reload. */
const memory = {
  read(key) {
    try {
      return JSON.parse(sessionStorage.getItem(key));
    } catch {
      return null;
    }
  },
  write(key, value) {
    try {
      if (value === null) sessionStorage.removeItem(key);
      else sessionStorage.setItem(key, JSON.stringify(value));
    } catch {
      // The label itself is still sent.
    }
  },
};

/**
 * Requests in their order. The first is sent, and sent again until it is acknowledged: the server
 * stores a request of the same name once. They outlive a reload, a lost connection and a restart of
 * the server.
 */
export class Outbox {
  constructor(scope, told) {
    // Without a scope nobody could tell later what a request was about.
    this.key = scope ? `veriscope.requests.${scope}` : null;
    this.told = told;
    this.waiting = (this.key && memory.read(this.key)) ?? [];
    this.sent = null;
    this.since = 0;
    this.timer = setInterval(() => this.again(), 1_000);
  }

  /** Ask for something; its name. */
  add(request) {
    const named = { ...request, client: newName() };
    this.waiting.push(named);
    this.keep();
    this.send();
    return named.client;
  }

  /** Ask for something whose answer nobody waits for. */
  whisper(request) {
    if (!this.waiting.length) this.post?.({ ...request, client: newName() });
  }

  /** The page can be reached by `post`, and has done or refused the requests of these names. */
  connected(post, done) {
    this.post = post;
    const answered = this.waiting.filter((one) => done.includes(one.client));
    if (answered.length) {
      this.waiting = this.waiting.filter((one) => !done.includes(one.client));
      this.keep();
    }
    if (this.waiting[0]?.client !== this.sent) this.send();
    return answered;
  }

  keep() {
    if (this.key) memory.write(this.key, this.waiting.length ? this.waiting : null);
  }

  send() {
    const [first] = this.waiting;
    if (!first || !this.post) return;
    this.sent = first.client;
    this.since = Date.now();
    this.post(first);
  }

  again() {
    if (this.waiting.length && Date.now() - this.since > AGAIN) {
      this.send();
      this.told();
    }
  }

  /** Whether the first request has gone without an answer for long. */
  get late() {
    return this.waiting.length > 0 && Date.now() - this.since > AGAIN / 2;
  }

  stop() {
    clearInterval(this.timer);
  }
}

/** What was begun on an item and is not saved: it survives a reload of the page. */
export class Drafts {
  constructor(scope) {
    this.prefix = `veriscope.draft.${scope}.`;
  }

  read(item) {
    return memory.read(this.prefix + item);
  }

  write(item, value) {
    memory.write(this.prefix + item, value);
  }
}

/** Seconds in which the tab could be seen and something was done within the last minute. */
export class ActiveTime {
  constructor() {
    this.total = 0;
    this.at = performance.now();
    this.input = performance.now();
    this.abort = new AbortController();
    const listen = { signal: this.abort.signal, capture: true, passive: true };
    for (const kind of ["pointerdown", "pointermove", "keydown", "wheel", "touchmove", "scroll"]) {
      addEventListener(
        kind,
        () => {
          this.count();
          this.input = performance.now();
        },
        listen,
      );
    }
    document.addEventListener("visibilitychange", () => this.count(true), listen);
  }

  /** Whether somebody is at it now. */
  get active() {
    return document.visibilityState === "visible" && performance.now() - this.input < IDLE;
  }

  /** Add what has passed since the last time; `turned`: the tab was just hidden or shown. */
  count(turned = false) {
    const now = performance.now();
    const visible = (document.visibilityState === "visible") !== turned;
    const until = Math.min(now, this.input + IDLE);
    if (visible && until > this.at) this.total += (until - this.at) / 1000;
    this.at = now;
  }

  /** The seconds so far. */
  get seconds() {
    this.count();
    return Math.round(this.total * 10) / 10;
  }

  /** Begin anew, for another item, or go on from `seconds`. */
  reset(seconds = 0) {
    this.total = seconds;
    this.at = this.input = performance.now();
  }

  stop() {
    this.abort.abort();
  }
}
