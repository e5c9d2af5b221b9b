// Makes the children of one element equal to those of another, touching only what differs, so that
// elements that stay keep their focus, scroll position and state.

/** Change the content of `root` into that of `fragment` (which is used up). */
export function morphInto(root, fragment) {
  const scope = root.getRootNode();
  const active = root.contains(scope.activeElement) ? scope.activeElement : null;
  const path = active && keyPath(root, active);
  morphChildren(root, fragment);
  if (active && scope.activeElement !== active) {
    const target = active.isConnected ? active : follow(root, path);
    // What took the place of the focused element has to be able to hold the focus.
    for (const name of ["tabindex", "role"]) {
      if (active.hasAttribute(name)) target?.setAttribute(name, active.getAttribute(name));
    }
    target?.focus({ preventScroll: true });
  }
}

/** What makes an element the same one after an update, among its siblings. */
function keyOf(node) {
  if (node?.nodeType !== Node.ELEMENT_NODE) return "";
  return node.dataset.key || node.id || (node.dataset.i ? `i${node.dataset.i}` : "");
}

function keyPath(root, element) {
  const keys = [];
  for (let node = element; node && node !== root; node = node.parentNode) {
    const key = keyOf(node);
    if (key) keys.unshift([key, node.localName]);
  }
  return keys;
}

/** The element under the same keys; only the last has to be found where it was. */
function follow(root, path) {
  let found = root;
  for (const [key, name] of path) {
    const inside = [...found.querySelectorAll(name)].find((node) => keyOf(node) === key);
    found = inside ?? found;
  }
  const last = path.at(-1);
  return last && keyOf(found) === last[0] ? found : null;
}

/** Attributes that belong to the visitor or to this script, not to the HTML that comes in. */
function isOwned(element, name) {
  if (name === "open") return element.localName === "details";
  if (!element.dataset.i) return false;
  const always = name === "tabindex" || name === "aria-describedby" || name === "data-shown";
  return always || (element.localName === "span" && (name === "role" || name === "aria-label"));
}

/** Elements that a script added beside the content; they are left alone. */
const isAdded = (node) => node.nodeType === Node.ELEMENT_NODE && node.hasAttribute("data-added");

function morphChildren(parent, next) {
  const wantedKeys = new Set([...next.children].map(keyOf));
  const keyed = new Map([...parent.children].map((child) => [keyOf(child), child]));
  let cursor = parent.firstChild;
  const skip = () => {
    while (cursor && (isAdded(cursor) || (keyOf(cursor) && !wantedKeys.has(keyOf(cursor))))) {
      const gone = cursor;
      cursor = cursor.nextSibling;
      if (!isAdded(gone)) gone.remove();
    }
  };
  for (const wanted of [...next.childNodes]) {
    skip();
    const key = keyOf(wanted);
    const match = key ? keyed.get(key) : keyOf(cursor) ? null : cursor;
    if (!match || match.nodeName !== wanted.nodeName || match.parentNode !== parent) {
      parent.insertBefore(wanted, cursor);
      continue;
    }
    if (match === cursor) cursor = cursor.nextSibling;
    else if (parent.moveBefore) parent.moveBefore(match, cursor);
    else parent.insertBefore(match, cursor);
    morph(match, wanted);
  }
  while (cursor) {
    const gone = cursor;
    cursor = cursor.nextSibling;
    if (!isAdded(gone)) gone.remove();
  }
}

function morph(node, wanted) {
  if (node.nodeType !== Node.ELEMENT_NODE) {
    if (node.nodeValue !== wanted.nodeValue) node.nodeValue = wanted.nodeValue;
    return;
  }
  if (node.isEqualNode(wanted)) return;
  for (const { name } of [...node.attributes]) {
    if (!wanted.hasAttribute(name) && !isOwned(node, name)) node.removeAttribute(name);
  }
  for (const { name, value } of [...wanted.attributes]) {
    if (node.getAttribute(name) !== value && !isOwned(node, name)) node.setAttribute(name, value);
  }
  // A running clock writes its own text between two updates.
  if (!wanted.hasAttribute("data-clock")) morphChildren(node, wanted);
}
