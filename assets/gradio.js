// A place for a view on a page of Gradio, in a shadow root: neither style sheet affects the other's.
const host = element.querySelector(".vs-host");
const shadow = host.attachShadow({ mode: "open" });
const root = document.createElement("div");
root.className = "vs-root";
shadow.append(root);
root.addEventListener("vs-action", (event) => trigger("select", event.detail));
globalThis.veriscope ??= Promise.withResolvers();
globalThis.veriscope.promise.then(({ mount, patch, sheet }) => {
  shadow.adoptedStyleSheets = [sheet];
  const show = () => {
    root.lang = props.lang;
    patch(root, props.value ?? "");
  };
  mount(root);
  show();
  watch(["value", "lang"], show);
});
