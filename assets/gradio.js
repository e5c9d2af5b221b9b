// A place for a view on a page of Gradio, in a shadow root: neither style sheet affects the other's.
const host = element.querySelector(".vs-host");
const shadow = host.attachShadow({ mode: "open" });
const root = document.createElement("div");
root.className = "vs-root";
shadow.append(root);
// What opens a page is an event of its own, so that it works while something else goes on.
root.addEventListener("vs-action", ({ detail }) =>
  trigger(detail.action === "open" ? "select" : "retry", detail),
);
globalThis.veriscope ??= Promise.withResolvers();
globalThis.veriscope.promise.then(({ mount, patch, sheet }) => {
  shadow.adoptedStyleSheets = [sheet];
  const draw = (html, lang) => {
    // Of a part that was folded while the page was greeted, Gradio forgets all but the value.
    if (lang) root.lang = lang;
    else root.removeAttribute("lang");
    patch(root, html);
    // A message has the place of what is shown otherwise, and needs more room.
    host.toggleAttribute("data-told", Boolean(root.querySelector(":scope > .vs-notice, :scope > .vs-error")));
  };
  const restore = () => draw(props.value ?? "", props.lang);
  mount(root);
  restore();
  const { played } = host.dataset;
  const player = played ? globalThis.veriscopePlayer : null;
  watch(["value", "lang"], () => {
    restore();
    player?.serverShows(played);
  });
  player?.join(played, { host, draw, restore, tell: (event) => trigger(event) });
});
