import { availableParallelism } from "node:os";
import { Places } from "../../support/places.ts";
import type { SandboxFacts } from "../live-sandbox.ts";

/**
 * The sandboxes that this server resumes by itself, without a client that asked for it. They are resumed few at a time,
 * so that a server that drains or dies does not take the processors of the others.
 */
export class AcceptedSandboxes {
  readonly places = new Places(Math.max(2, availableParallelism()));
  /** Those that wait for their turn. Each has room here, which nobody else gets. */
  readonly waiting = new Map<string, Pick<SandboxFacts, "backend" | "spec">>();
  /** Those that are being restored: no client waits for them. */
  readonly restoring = new Set<string>();
}
