// A place for a view on a page of Streamlit, as a component of its own.
export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".vs-root");
  root.lang = data.lang;
  root.dataset.glossary = "";
  root.vsData = data.html;
  if (!root.vsAsk) root.addEventListener("vs-action", (event) => root.vsAsk(event.detail));
  root.vsAsk = (detail) => setTriggerValue("action", detail);
  globalThis.veriscope ??= Promise.withResolvers();
  globalThis.veriscope.promise.then(({ mount, patch, sheet }) => {
    if (!root.isConnected) return;
    parentElement.adoptedStyleSheets = [sheet];
    patch(root, root.vsData);
    root.vsStop = mount(root);
  });
  return () => root.vsStop?.();
}
