import type { HeadFlags } from "@sandboxer/protocol";
import type { ManagedProcess } from "./processes/managed-process.ts";

/** A sandbox that runs here, as the gateway sees it: a handle for the manager's verbs. */
export interface Sandbox {
  readonly id: string;
  readonly facts: { readonly flags: HeadFlags };
  readonly processes: {
    /** The current execution, or the last one. */
    readonly execution: ManagedProcess | undefined;
    /** Whether an execution runs, or its client has still to be told of its end. */
    readonly executing: boolean;
  };
}

/** The result of a verb, with only the public part of its sandbox. */
export type GivenOut<Result extends { readonly sandbox: Sandbox }> = Omit<Result, "sandbox"> & {
  readonly sandbox: Sandbox;
};
