import type { SandboxerError } from "@sandboxer/protocol";

/** A page has no scripts, and nobody may frame it. */
export const PAGE_HEADERS: Readonly<Record<string, string>> = {
  "content-type": "text/html; charset=utf-8",
  "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'",
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "cache-control": "no-store",
};

/** For a browser that waits for a paused sandbox: it asks again by itself. */
export const WAKING_PAGE = page(
  "Resuming the sandbox",
  "<p>The sandbox is paused and is being resumed. This page reloads by itself.</p>",
  '<meta http-equiv="refresh" content="1">',
);

/** An error of this server, with the next step. */
export function errorPage({ message, hint, details }: SandboxerError): string {
  const listening = details["listening"];
  const ports = Array.isArray(listening) ? listening.filter((port) => typeof port === "number") : undefined;
  const list =
    ports === undefined
      ? ""
      : `<p>Listening inside: ${ports.length === 0 ? "nothing" : `port ${ports.join(", ")}`}.</p>`;
  return page("Preview", `<p>${escape(message)}</p>${list}<p>${escape(hint)}</p>`);
}

function page(title: string, body: string, head = ""): string {
  const style =
    "body{font:16px/1.5 system-ui,sans-serif;max-width:40rem;margin:4rem auto;padding:0 1rem;color-scheme:light dark}";
  return `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>${title}</title>${head}<style>${style}</style></head><body><h1>${title}</h1>${body}</body></html>\n`;
}

function escape(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");
}
