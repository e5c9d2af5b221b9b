// A report on its own: what is folded opens where a link leads into it, and on paper.

let opened = [];

/** Open every fold around the place that the address names, and show it. */
function reveal() {
  const place = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (!place) return;
  for (let node = place.closest("details"); node; node = node.parentElement.closest("details")) {
    node.open = true;
  }
  place.scrollIntoView({ block: "start" });
}

addEventListener("hashchange", reveal);
document.addEventListener("click", (event) => {
  // The same link once more changes no address.
  const link = event.target.closest?.('a[href^="#"]');
  if (link && link.hash === location.hash) reveal();
});
addEventListener("beforeprint", () => {
  opened = [...document.querySelectorAll("details:not([open])")];
  for (const fold of opened) fold.open = true;
});
addEventListener("afterprint", () => {
  for (const fold of opened) fold.open = false;
  opened = [];
});
reveal();
