import type { ServerEvent } from "@sandboxer/protocol";

/** An event in a word: a status without its prefix, `sandbox_id`, `out:…`, `err:…` or `error:…`. */
export function wordOf(event: ServerEvent): string {
  switch (event.event) {
    case "status_update":
      return event.status.replace(/^SANDBOX_/, "");
    case "sandbox_id":
      return "sandbox_id";
    case "stdout":
      return `out:${event.data}`;
    case "stderr":
      return `err:${event.data}`;
    case "error":
      return `error:${event.message}`;
  }
}
