// Streamlit writes a few words of its own, in English only. In another language they are replaced
// where Streamlit writes them, and nowhere else; it may write them again at any moment.
const ATTRIBUTES = ["aria-label", "title", "placeholder"];
const written = new WeakMap();
let rules = null;
let observer = null;

export default function ({ data }) {
  const text = JSON.stringify(data);
  if (rules?.text === text) return;
  restore();
  rules = { ...data, text, patterns: data.patterns.map(([p, to]) => [new RegExp(`^${p}$`), to]) };
  if (!data.places.length) return observer?.disconnect();
  observer ??= new MutationObserver(() => replaceAll());
  observer.observe(document.body, {
    subtree: true,
    childList: true,
    characterData: true,
    attributes: true,
    attributeFilter: ATTRIBUTES,
  });
  replaceAll();
}

/** A word in the language of the page; null for one that is not Streamlit's. */
function worded(text) {
  const whole = text.trim();
  if (Object.hasOwn(rules.words, whole)) return text.replace(whole, () => rules.words[whole]);
  for (const [pattern, to] of rules.patterns) {
    if (pattern.test(whole)) return whole.replace(pattern, to);
  }
  return null;
}

function replaceAll() {
  for (const place of document.querySelectorAll(rules.places.join(","))) {
    const walker = document.createTreeWalker(place, NodeFilter.SHOW_TEXT | NodeFilter.SHOW_ELEMENT);
    for (let node = place; node; node = walker.nextNode()) {
      if (node.nodeType === Node.TEXT_NODE) replaceText(node);
      else ATTRIBUTES.forEach((name) => replaceAttribute(node, name));
    }
  }
}

function replaceText(node) {
  const to = worded(node.data);
  if (to === null || to === node.data) return;
  remember(node, "", node.data, to);
  node.data = to;
}

function replaceAttribute(node, name) {
  const text = node.getAttribute(name);
  const to = text && worded(text);
  if (!to || to === text) return;
  remember(node, name, text, to);
  node.setAttribute(name, to);
}

function remember(node, name, from, to) {
  const known = written.get(node) ?? {};
  written.set(node, { ...known, [name]: { from, to } });
}

/** What was replaced is put back, as far as it still stands as it was written. */
function restore() {
  observer?.disconnect();
  const walker = document.createTreeWalker(
    document.body,
    NodeFilter.SHOW_TEXT | NodeFilter.SHOW_ELEMENT,
  );
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    for (const [name, { from, to }] of Object.entries(written.get(node) ?? {})) {
      if (!name && node.data === to) node.data = from;
      else if (name && node.getAttribute(name) === to) node.setAttribute(name, from);
    }
    written.delete(node);
  }
}
