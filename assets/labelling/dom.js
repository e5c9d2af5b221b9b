// Builds elements. Whatever comes from data is set as text or as an attribute, never as HTML.

/** An element: `el("p.vs-note", {lang: "en"}, "text", child)`. null, false and "" are left out. */
export function el(name, attributes = {}, ...children) {
  const [tag, ...classes] = name.split(".");
  const element = document.createElement(tag);
  if (classes.length) element.className = classes.join(" ");
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false || value === "") continue;
    if (key === "class") element.className = `${element.className} ${value}`.trim();
    else if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child || child === 0));
  return element;
}

/** A sign for the eye, beside words that say the same. */
export const signOf = (text) => el("span.vs-sign", { "aria-hidden": "true" }, text);

/** A button; `key` is the key that does the same, and is shown on it. */
export function button(words, { key = "", press, sign = "", css = "", ...attributes } = {}) {
  return el(
    "button.vs-lab-button",
    {
      type: "button",
      class: css,
      "aria-keyshortcuts": key.replace("⇧", "Shift+").replace("⏎", "Enter"),
      // The text keeps its selection, and on a phone no keyboard opens or closes.
      onpointerdown: (event) => event.preventDefault(),
      onclick: press,
      ...attributes,
    },
    sign && signOf(sign),
    el("span", {}, words),
    key && el("kbd.vs-lab-key", { "aria-hidden": "true" }, key),
  );
}

/** "2 spans" from "{count} spans". */
export const filled = (words, count) => words.replaceAll("{count}", count);

/** A length of time as a clock shows it: 0:07, 12:30. */
export function clock(seconds) {
  const whole = Math.floor(seconds);
  return `${Math.floor(whole / 60)}:${String(whole % 60).padStart(2, "0")}`;
}

/** A name of a request that nobody else chooses; on an address without https as well. */
export function newName() {
  if (globalThis.crypto?.randomUUID) return crypto.randomUUID();
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Whether a key that was pressed is meant for the item, and for nothing else on the page. */
export function isOurs(event, root) {
  if (event.defaultPrevented || event.isComposing || event.repeat) return false;
  if (event.ctrlKey || event.altKey || event.metaKey) return false;
  const [target] = event.composedPath();
  if (!(target instanceof Element)) return true;
  const written = "input:not([type='radio'], [type='checkbox']), textarea, select";
  if (target.closest(`${written}, [contenteditable='true']`)) return false;
  if (root.contains(target)) return true;
  // Elsewhere keys belong to what has the focus there: a dialog, a list, a menu.
  const taken = "[role='dialog'], [role='listbox'], [role='menu'], [role='combobox'], iframe";
  if (document.querySelector("[role='dialog'], [role='listbox']")) return false;
  return !target.closest(taken);
}
