import type { SandboxerError } from "@sandboxer/protocol";

/** Why something happens to a sandbox although its client did not ask for it. */
export type Cause = "idle" | "drain" | "disconnect" | "handoff" | "request" | "expired";

export type Notice =
  | { readonly type: "saving"; readonly cause: Cause }
  | { readonly type: "saved"; readonly cause: Cause }
  | { readonly type: "save_failed"; readonly cause: Cause; readonly error: SandboxerError }
  | { readonly type: "deleting"; readonly cause: Cause }
  | { readonly type: "deleted"; readonly cause: Cause }
  /** Another state replaces the current one: the client hears nothing more of what was running. */
  | { readonly type: "rewinding" }
  | { readonly type: "rewound" }
  /** The sandbox ended by itself. */
  | { readonly type: "failed"; readonly error: SandboxerError }
  /** Another server owns the sandbox now; this server discards its copy. */
  | { readonly type: "lost"; readonly error: SandboxerError };

/** The client that is attached to a sandbox, as the manager sees it. There is at most one. */
export interface SandboxClient {
  notify(notice: Notice): void;
  /** A save is about to begin: sends no more output, and resolves when the client has confirmed what it received. */
  quiesce(): Promise<void>;
}
