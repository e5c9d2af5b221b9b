// What several people said of an item, for an adjudicator: a line under the text for each person,
// and a row with their label, comments, and a button that takes the label.

import { button, el, signOf } from "./dom.js";

// Each person's line has a colour and a dash of its own, so that it is told apart without colour.
const LINES = [
  { colour: "--vs-generate" },
  { colour: "--vs-retrieve", dash: 9, gap: 3 },
  { colour: "--vs-score", dash: 3, gap: 3 },
  { colour: "--vs-choose", dash: 14, gap: 4 },
  { colour: "--vs-generate", dash: 5, gap: 5 },
  { colour: "--vs-retrieve", dash: 2, gap: 4 },
  { colour: "--vs-score", dash: 20, gap: 3 },
  { colour: "--vs-choose", dash: 7, gap: 7 },
];

/** The layers of marks of those people whose numbers are not in `hidden`. */
export function peopleLayers(people, hidden, measured) {
  return people.flatMap(({ number, label }, index) => {
    if (hidden.has(number) || !label.spans) return [];
    const spans = label.spans.map(({ start, end }) => ({
      start: measured.toUnits(start),
      end: measured.toUnits(end),
      badge: "",
    }));
    return [{ spans, css: LINES[index % LINES.length], lanes: 1 }];
  });
}

/**
 * The part of the page with a row for each person, and for spans the ways to merge them all.
 * `hidden` holds the numbers of those whose line is hidden; `changed()` is called after it changed.
 */
export class PeoplePart {
  constructor(data, measured, hidden, { take, merge, changed }) {
    const toggle = ({ number }) => {
      if (!hidden.delete(number)) hidden.add(number);
      this.draw();
      changed();
    };
    this.rows = el("ul.vs-lab-people", {});
    this.made = () => peopleRows({ data, measured, hidden, take, toggle });
    this.draw();
    const { words } = data;
    const all = (rule) => button(words[`merge_${rule}`], { press: () => merge(rule) });
    this.element = el(
      "section.vs-lab-part.vs-lab-everybody",
      {},
      el("h3.vs-label", {}, words.people),
      this.rows,
      data.task === "span" && el("div.vs-lab-keys", {}, all("union"), all("majority")),
    );
  }

  draw() {
    const { rows } = this;
    const focus = rows.contains(document.activeElement) && document.activeElement.dataset.key;
    rows.replaceChildren(...this.made());
    if (focus) rows.querySelector(`[data-key="${focus}"]`)?.focus();
  }
}

/** A row for each person. `take(person)` takes a label, `toggle(person)` shows or hides a line. */
function peopleRows({ data, measured, hidden, take, toggle }) {
  const { words, people, task } = data;
  const kindWord = Object.fromEntries(data.kinds.map(({ value, word }) => [value, word]));
  return people.map((person, index) => {
    const line = LINES[index % LINES.length];
    const spans = (person.label.spans ?? []).map(({ start, end, kind }) =>
      el(
        "li",
        {},
        el(
          "q.vs-lab-quoted",
          { dir: "auto", lang: data.text_lang || null },
          measured.text.slice(measured.toUnits(start), measured.toUnits(end)),
        ),
        el("span.vs-chip", {}, kindWord[kind] ?? kind),
      ),
    );
    const name =
      task === "span"
        ? el(
            "button.vs-lab-name",
            {
              type: "button",
              "aria-pressed": String(!hidden.has(person.number)),
              "data-key": `person-${person.number}`,
              onclick: () => toggle(person),
            },
            el("span.vs-lab-line", { "aria-hidden": "true", style: lineStyle(line) }),
            person.name,
          )
        : el("span.vs-lab-name", {}, person.name);
    return el(
      "li.vs-lab-person",
      {},
      name,
      el("span.vs-badge", { class: person.css }, signOf(person.sign), el("span", {}, person.word)),
      button(words.merge_person, {
        "data-key": `take-person-${person.number}`,
        "aria-label": person.take,
        press: () => take(person),
      }),
      spans.length > 0 && el("ul.vs-lab-quotes", {}, spans),
      person.comments.map((comment) => el("p.vs-lab-said", { dir: "auto" }, comment)),
    );
  });
}

function lineStyle({ colour, dash, gap }) {
  const tone = `var(${colour})`;
  if (!gap) return `background:${tone}`;
  const end = `${dash + gap}px`;
  const line = `90deg,${tone} 0 ${dash}px,transparent ${dash}px ${end}`;
  return `background:repeating-linear-gradient(${line})`;
}
