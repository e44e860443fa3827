import type { ErrorCode } from "./errors.ts";
import type { Status } from "./status.ts";

/** What the server says over WebSocket. A status that is an error is followed by its error event. */
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
      readonly execution_id: string;
      /** The offset after the last byte of `data`: what to send with `reconnect` to get what comes next. */
      readonly offset: number;
    }
  | { readonly event: "error"; readonly message: string; readonly code?: ErrorCode; readonly hint?: string };
