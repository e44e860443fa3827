import { availableParallelism } from "node:os";
import { Places } from "../../support/places.ts";
import type { SandboxFacts } from "../live-sandbox.ts";

/**
 * The sandboxes that this server resumes by itself, without a client that asked for it. They are resumed few at a time,
 * so that a server that drains or dies does not take the processors of the others.
 */
export class AcceptedSandboxes {
  readonly places = new Places(Math.max(2, availableParallelism()));
  /** Sandboxes in the queue. Their room on this server is reserved. */
  readonly waiting = new Map<string, Pick<SandboxFacts, "backend" | "spec">>();
  /** Sandboxes that are being restored without a client that waits for them. */
  readonly restoring = new Set<string>();
}
