import type { SandboxerError } from "@sandboxer/protocol";

/** Why something happens to a sandbox without its client having asked for it. */
export type Cause = "idle" | "drain" | "disconnect" | "handoff" | "request" | "expired";

export type Notice =
  | { readonly type: "saving"; readonly cause: Cause }
  | { readonly type: "saved"; readonly cause: Cause }
  | { readonly type: "save_failed"; readonly cause: Cause; readonly error: SandboxerError }
  | { readonly type: "deleting"; readonly cause: Cause }
  | { readonly type: "deleted"; readonly cause: Cause }
  /** Another state takes the place of the present one: what was going on is not heard of any more. */
  | { readonly type: "rewinding" }
  | { readonly type: "rewound" }
  /** The sandbox has ended by itself. */
  | { readonly type: "failed"; readonly error: SandboxerError }
  /** Another server owns it now; the copy here is thrown away. */
  | { readonly type: "lost"; readonly error: SandboxerError };

/** The one client that is attached to a sandbox, as the manager sees it. */
export interface SandboxClient {
  notify(notice: Notice): void;
  /** A save is about to begin: sends no more output, and resolves when it is known what of it has arrived. */
  quiesce(): Promise<void>;
}
