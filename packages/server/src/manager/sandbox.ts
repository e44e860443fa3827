import type { HeadFlags } from "@sandboxer/protocol";
import type { ManagedProcess } from "./processes/managed-process.ts";

/** A sandbox that runs here, as the gateway sees it: to be handed back to the manager's verbs. */
export interface Sandbox {
  readonly id: string;
  readonly facts: { readonly flags: HeadFlags };
  readonly processes: {
    /** The present execution, or the last one. */
    readonly execution: ManagedProcess | undefined;
    /** Whether an execution runs, or its client has still to hear of its end. */
    readonly executing: boolean;
  };
}

/** What a verb gives, with no more of its sandbox than that. */
export type GivenOut<Result extends { readonly sandbox: Sandbox }> = Omit<Result, "sandbox"> & {
  readonly sandbox: Sandbox;
};
