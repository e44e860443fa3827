import type { ErrorCode } from "./errors.ts";
import type { Status } from "./status.ts";

/**
 * What the server says over WebSocket. A status that is an error is followed by its error event. What is optional here goes
 * to clients that have asked for `extensions`.
 */
export type ServerEvent =
  | {
      readonly event: "status_update";
      readonly status: Status;
      readonly message?: string;
      readonly exit_code?: number | null;
      readonly execution_id?: string;
    }
  | { readonly event: "sandbox_id"; readonly sandbox_id: string; readonly sandbox_token: string }
  | {
      readonly event: "stdout" | "stderr";
      readonly data: string;
      readonly execution_id?: string;
      /** The offset after the last byte of `data`: what to send with `reconnect` to get what comes next. */
      readonly offset?: number;
    }
  | { readonly event: "error"; readonly message: string; readonly code?: ErrorCode; readonly hint?: string };

/** The fields that every client gets, those of the original protocol: some compare whole messages. */
export function withoutExtensions(event: ServerEvent): ServerEvent {
  switch (event.event) {
    case "status_update":
      return { event: event.event, status: event.status };
    case "sandbox_id":
      return event;
    case "stdout":
    case "stderr":
      return { event: event.event, data: event.data };
    case "error":
      return { event: event.event, message: event.message };
  }
}
