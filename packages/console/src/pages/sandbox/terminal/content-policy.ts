/**
 * xterm.js creates style elements and sets style attributes, which the page's policy forbids. Its style elements get
 * the page's nonce; its style attributes are set as properties, which is always allowed.
 */

const nonce = document.querySelector<HTMLMetaElement>('meta[name="csp-nonce"]')?.content ?? "";

/** While a terminal is opened, which is when it creates all of its style elements. */
export function withNonce(open: () => void): void {
  Object.defineProperty(document, "createElement", { value: createElement, configurable: true });
  try {
    open();
  } finally {
    Reflect.deleteProperty(document, "createElement");
  }
}

function createElement(name: string): HTMLElement {
  const element = Document.prototype.createElement.call(document, name);
  if (name === "style") element.nonce = nonce;
  return element;
}

/** Colours without a theme class are attributes of its spans, whenever a row is drawn. */
HTMLSpanElement.prototype.setAttribute = function setAttribute(name: string, value: string): void {
  if (name === "style") this.style.cssText = value;
  else Element.prototype.setAttribute.call(this, name, value);
};
