// What the buttons of the Space's page do in the browser.
globalThis.veriscopeSpace = {
  clicks: 0,
  last: "",
  typed: "",
  /** The inputs of a click with its number, by which the server knows the order of the clicks. */
  numbered(kind, [visit, , ...others]) {
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
    return id ? `${location.origin}${location.pathname}?run=${id}` : "";
  },
  copy(link) {
    if (link) navigator.clipboard?.writeText(link).catch(() => {});
    return link;
  },
  open(html) {
    if (!html) return "";
    const page = URL.createObjectURL(new Blob([html], { type: "text/html" }));
    window.open(page, "_blank");
    setTimeout(() => URL.revokeObjectURL(page), 60000);
    return "";
  },
};
// Noted at once: what Gradio itself says of a click comes a moment later.
document.addEventListener(
  "click",
  (event) => {
    if (!event.target.closest?.("#examples .gallery-item")) return;
    veriscopeSpace.typed = document.querySelector("#asking textarea")?.value ?? "";
  },
  true,
);
