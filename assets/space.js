// What the buttons of the Space's page do in the browser.
globalThis.veriscopeSpace = {
  typed: "",
  note(typed) {
    this.typed = typed;
  },
  put(example, typed) {
    return typed === this.typed ? example : typed;
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
