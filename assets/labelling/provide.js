// Gives the page what its labelling component waits for.
if (!document.vsLabelling) {
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(LABELLING_STYLE);
  document.adoptedStyleSheets.push(sheet);
  document.vsLabelling = true;
}
globalThis.veriscopeLabelling ??= Promise.withResolvers();
globalThis.veriscopeLabelling.resolve({ Labelling });
