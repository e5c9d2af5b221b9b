// Gives the page what its views wait for. STYLE is the text of all style sheets.
const sheet = new CSSStyleSheet();
sheet.replaceSync(STYLE);
globalThis.veriscope ??= Promise.withResolvers();
globalThis.veriscope.resolve({ mount, patch, sheet });
