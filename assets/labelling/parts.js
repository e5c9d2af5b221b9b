// The parts of an item's page: what only shows what data says, and the fields to write in.

import { button, el, signOf } from "./dom.js";

/** A part of the page under its name. */
export function labelled(words, ...content) {
  return el("section.vs-lab-part", {}, el("h3.vs-label", {}, words), content);
}

/** What was saved last, with what can still be done with it; `send` asks for that. */
export function lastSaved(data, send) {
  const { words, last } = data;
  const said = data.label ? data.said : last;
  if (!said) return el("div.vs-lab-last", {}, el("span.vs-lab-first", {}, words.keys_hint));
  const reveal = data.label ? data.can.reveal && data.item : last.reveal && last.item;
  const quiet = (name, key, press) => button(words[name], { key, css: "vs-lab-quiet", press });
  return el(
    "div.vs-lab-last",
    {},
    el("span", {}, data.label ? words.old_label : words.last_saved),
    el("span.vs-badge", { class: said.css }, signOf(said.sign), el("span", {}, said.word)),
    !data.label && el("q.vs-lab-quoted", { dir: "auto" }, last.piece),
    reveal !== false && quiet("reveal", "v", () => send("reveal", { item: reveal })),
    data.label && quiet("next", "n", () => send("next")),
  );
}

/** What an item is about, with its passages; `text()` makes the elements that show its text. */
export function bodyOf(data, text) {
  const { words } = data;
  const parts = [];
  if (data.question) {
    parts.push(labelled(words.question, el("p.vs-answer", { dir: "auto" }, data.question)));
  }
  if (data.texts.length) {
    const papers = data.texts.map(({ name, text: shown }) =>
      labelled(name, el("div.vs-lab-paper.vs-answer", { dir: "auto" }, shown)),
    );
    parts.push(el("div.vs-lab-pair", {}, papers));
  } else parts.push(labelled(words.text, ...text()));
  if (data.statement) {
    parts.push(el("p.vs-lab-statement.vs-answer", { dir: "auto" }, data.statement));
  }
  const side = evidenceOf(data);
  return el(
    "div.vs-lab-body",
    { class: side ? "" : "vs-lab-single" },
    el("div.vs-lab-main", {}, parts),
    side,
  );
}

/** The passages beside an item; null where it has none and needs none. */
function evidenceOf(data) {
  if (!data.evidence.length) {
    return data.task === "concept" ? el("p.vs-note", {}, data.words.evidence_none) : null;
  }
  const passages = data.evidence.map(({ title, text, source, url }) =>
    el(
      "li.vs-lab-passage",
      {},
      (title || source) &&
        el(
          "p.vs-label",
          {},
          url
            ? el("a", { href: url, target: "_blank", rel: "noopener noreferrer" }, title || url)
            : title,
          source && el("span.vs-note", {}, ` ${source}`),
        ),
      el("p.vs-answer", { dir: "auto", lang: data.text_lang || null }, text),
    ),
  );
  // What can be scrolled can be reached by keyboard.
  const list = el(
    "div.vs-lab-evidence",
    { tabindex: "0", role: "region", "aria-label": data.words.evidence },
    el("ul", {}, passages),
  );
  return el("div.vs-lab-side", {}, el("h3.vs-label", {}, data.words.evidence), list);
}

/** What models and other people said of an item, once it may be seen. */
export function revealedLabels({ words, revealed }) {
  const rows = revealed.map(({ name, word, sign, css }) =>
    el(
      "li",
      {},
      el("span.vs-lab-name", {}, name),
      el("span.vs-badge", { class: css }, sign && signOf(sign), el("span", {}, word)),
    ),
  );
  return el(
    "section.vs-lab-revealed",
    {},
    el("h3.vs-label", {}, words.revealed),
    rows.length ? el("ul", {}, rows) : el("p.vs-note", {}, words.revealed_none),
  );
}

/** What an adjudicator says beside the label, and the button that decides: `element` holds them. */
export class DecisionForm {
  constructor(data, decide) {
    const { words } = data;
    this.note = el("textarea.vs-lab-field", { rows: "2", maxlength: "5000", dir: "auto" });
    this.note.value = data.note;
    this.gap = el("input", { type: "checkbox" });
    this.gap.checked = data.gap;
    this.sure = el(
      "select.vs-lab-kind",
      {},
      ["", "sure", "unsure"].map((value) =>
        el(
          "option",
          { value, selected: value === data.confidence },
          words[`confidence_${value || "none"}`],
        ),
      ),
    );
    // An option without an attribute has its text as its value.
    this.sure.options[0].value = "";
    this.element = el(
      "div.vs-lab-part",
      {},
      el("label.vs-lab-labelled", {}, el("span.vs-label", {}, words.note), this.note),
      el(
        "div.vs-lab-row",
        {},
        el("label.vs-lab-inline", {}, el("span", {}, words.confidence), this.sure),
        el("label.vs-lab-inline", {}, this.gap, el("span", {}, words.gap)),
        (this.saving = button(words.decide, { key: "d", css: "vs-lab-primary", press: decide })),
      ),
    );
  }

  /** Whether the decision can be saved now. */
  set open(open) {
    this.saving.disabled = !open;
  }

  /** As the server takes it. */
  get value() {
    return {
      note: this.note.value.trim(),
      confidence: this.sure.value,
      gap: this.gap.checked,
    };
  }
}

/**
 * A field for a comment or the reason to skip, in place of what is in `panel`.
 * `send(text)` takes what was written, `close()` leaves the field, `say(words)` says what is wrong.
 */
export function openField(panel, what, words, { send, close, say }) {
  const field = el("textarea.vs-lab-field", {
    rows: "2",
    maxlength: "5000",
    dir: "auto",
    "aria-label": what === "skip" ? words.skip_reason : words.comment,
  });
  const given = () => {
    const text = field.value.trim();
    if (text) return send(text);
    say(words.write_something);
    field.focus();
  };
  field.addEventListener("keydown", (event) => {
    if (event.key === "Escape") close();
    else if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) given();
    else return;
    event.preventDefault();
  });
  panel.replaceChildren(
    el("p.vs-label", {}, words[`${what}_label`]),
    field,
    el(
      "div.vs-lab-keys",
      {},
      button(what === "skip" ? words.skip : words.send, { css: "vs-lab-primary", press: given }),
      button(words.cancel, { css: "vs-lab-quiet", press: close }),
    ),
  );
  field.focus();
  panel.scrollIntoView({ block: "nearest" });
}
