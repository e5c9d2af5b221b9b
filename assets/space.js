// What the buttons of the Space's page do in the browser.
const SCROLLING = 300;

globalThis.veriscopeSpace = {
  clicks: 0,
  scrolled: -Infinity,
  last: "",
  typed: "",
  /** The inputs of a click with its number, by which the server knows the order of the clicks. */
  numbered(kind, [visit, , ...others]) {
    if (kind === "ask" || kind === "again") this.toAnswer();
    // Run pressed twice has one number, so that it asks once.
    if (kind !== this.last || kind === "example") this.clicks += 1;
    this.last = kind;
    return [visit, this.clicks, ...others];
  },
  /** An example takes the place of what stood in the field when it was clicked, of nothing later. */
  put(example, typed) {
    if (!example || typed !== this.typed) return typed;
    this.typed = example;
    return example;
  },
  link(id) {
    this.column?.toggleAttribute("data-linked", Boolean(id));
    return id ? `${location.origin}${location.pathname}?run=${id}` : "";
  },
  copy(link) {
    if (link) navigator.clipboard?.writeText(link).catch(() => {});
    return link;
  },
  /** Go to the answer, and have it be read from there; not while the visitor scrolls. */
  toAnswer() {
    this.column?.removeAttribute("data-linked");
    const result = document.querySelector("#result");
    if (!result) return;
    result.tabIndex = -1;
    result.role = "region";
    result.ariaLabel = document.querySelector("#skip a")?.dataset.result ?? "";
    result.focus({ preventScroll: true });
    if (performance.now() - this.scrolled > SCROLLING) this.scrollTo(result);
  },
  toQuestion() {
    this.scrollTo(document.querySelector("#composer"));
    document.querySelector("#asking textarea")?.focus({ preventScroll: true });
  },
  scrollTo(place) {
    const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
    place.scrollIntoView({ behavior: calm ? "instant" : "smooth", block: "start" });
  },
  /** A window for the report, at the press itself: some seconds later a browser opens none. */
  prepare(inputs) {
    this.report = window.open("", "_blank");
    if (this.report) {
      const words = document.querySelector("#report")?.innerText ?? "";
      this.report.document.title = words;
      this.report.document.body.textContent = `${words} …`;
    }
    return inputs;
  },
  /** Show the report there; where windows are blocked it is saved as a file. */
  open(html) {
    const tab = this.report;
    this.report = null;
    if (!html) {
      tab?.close();
      return "";
    }
    const page = URL.createObjectURL(new Blob([html], { type: "text/html" }));
    if (tab) tab.location.replace(page);
    else Object.assign(document.createElement("a"), { href: page, download: "report.html" }).click();
    setTimeout(() => URL.revokeObjectURL(page), 60000);
    return "";
  },
};
/** The column of the page: what it is marked with is seen by the style sheet. */
Object.defineProperty(veriscopeSpace, "column", {
  get: () => document.querySelector(".gradio-container"),
});

// A visitor who scrolls is not taken elsewhere.
for (const moved of ["wheel", "touchmove"]) {
  const note = () => (veriscopeSpace.scrolled = performance.now());
  addEventListener(moved, note, { capture: true, passive: true });
}

// Far from the question, Stop and the way back to it stay in reach.
veriscopeSpace.watch = new IntersectionObserver(([seen]) => {
  veriscopeSpace.column?.toggleAttribute("data-away", !seen.isIntersecting);
});
new MutationObserver((_, observer) => {
  const composer = document.querySelector("#asking");
  if (!composer || !document.querySelector("#result")) return;
  observer.disconnect();
  veriscopeSpace.column?.toggleAttribute("data-touch", matchMedia("(pointer: coarse)").matches);
  veriscopeSpace.watch.observe(composer);
}).observe(document, { childList: true, subtree: true });

// That the server is gone, Gradio tells in English alone, under the title of any error.
const GONE = "Connection to the server was lost. Attempting reconnection...";
const TITLES = ["Connection Lost", "Error"];
new MutationObserver(() => {
  const words = document.querySelector("#skip a")?.dataset;
  if (!words?.lost) return;
  for (const toast of document.querySelectorAll("[data-testid='toast-body']")) {
    const texts = [];
    const walker = document.createTreeWalker(toast, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) texts.push(walker.currentNode);
    const gone = texts.find((text) => text.data.trim() === GONE);
    if (!gone) continue;
    const title = texts.find((text) => TITLES.includes(text.data.trim()));
    if (title) title.data = words.lost;
    gone.data = words.lostHelp;
    toast.querySelector("button")?.setAttribute("aria-label", words.close);
  }
}).observe(document, { childList: true, characterData: true, subtree: true });

// Beside a button that copies, Gradio writes a label without saying what it is of.
new MutationObserver(() => {
  const link = document.querySelector("#link");
  const field = link?.querySelector("input, textarea");
  const label = link?.querySelector("[data-testid='block-info']")?.textContent.trim();
  if (field && label && field.getAttribute("aria-label") !== label)
    field.setAttribute("aria-label", label);
}).observe(document, { childList: true, subtree: true });

// Noted at once: what Gradio itself says of a click comes a moment later.
document.addEventListener(
  "click",
  (event) => {
    if (event.target.closest?.("#skip a")) {
      event.preventDefault();
      veriscopeSpace.toAnswer();
    }
    const example = event.target.closest?.("#examples .gallery-item");
    if (!example) return;
    // One that was recorded is shown at once; another question is only put into the field.
    if (example.querySelector(".recorded")) veriscopeSpace.toAnswer();
    veriscopeSpace.typed = document.querySelector("#asking textarea")?.value ?? "";
  },
  true,
);
