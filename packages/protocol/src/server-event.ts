import type { ErrorCode } from "./errors.ts";
import type { Status } from "./status.ts";

/**
 * The messages that the server sends over WebSocket. An error status is followed by its error event. Optional fields are
 * sent only to clients that asked for `extensions`.
 */
export type ServerEvent =
  | {
      readonly event: "status_update";
      readonly status: Status;
      readonly message?: string;
      readonly exit_code?: number | null;
      readonly execution_id?: string;
      /** With SANDBOX_DELETED, as in the response to a DELETE. */
      readonly removed_bytes?: number | null;
      readonly shared_bytes?: number | null;
    }
  | { readonly event: "sandbox_id"; readonly sandbox_id: string; readonly sandbox_token: string }
  | {
      readonly event: "stdout" | "stderr";
      readonly data: string;
      readonly execution_id?: string;
      /** The offset after the last byte of `data`: send it with `reconnect` to continue. */
      readonly offset?: number;
    }
  | { readonly event: "error"; readonly message: string; readonly code?: ErrorCode; readonly hint?: string };

/** Keeps only the fields of the original protocol, for clients that compare whole messages. */
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
