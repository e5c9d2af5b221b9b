// A place in which an item is labelled, on a page of Streamlit, as a component of its own.
// Streamlit calls this whenever the data has changed; what draws is in labelling/.
export default function (component) {
  const { data, parentElement, setTriggerValue } = component;
  const root = parentElement.querySelector(".vs-lab");
  root.vsLatest = component;
  globalThis.veriscopeLabelling ??= Promise.withResolvers();
  globalThis.veriscopeLabelling.promise.then(({ Labelling }) => {
    // What was asked for later has been drawn already.
    if (!root.isConnected || root.vsLatest !== component) return;
    root.vsView ??= new Labelling(root);
    root.vsView.update(data, (request) => setTriggerValue("request", request));
  });
  return () => {
    if (root.vsLatest === component) root.vsView?.stop();
  };
}
