import type { TestContext } from "vitest";
import type { ContractContext } from "./context.ts";

/** Why a part of the contract is skipped, as the table of `docs/reference/backends.md` has it. */
export interface Lacking {
  readonly reason: string;
  /** Shown instead of "no" if something else replaces the missing feature. */
  readonly instead?: string;
}

declare module "vitest" {
  interface TaskMeta {
    /** In the JSON report too, which otherwise has no reasons of skipped tests. */
    lacking?: Lacking;
  }
}

export type Need = (context: ContractContext) => Lacking | undefined;

export function skipLacking({ task, skip }: TestContext, lacking: Lacking): never {
  task.meta.lacking = lacking;
  return skip(lacking.reason);
}

export const commands: Need = ({ runsCommands }) => (runsCommands ? undefined : { reason: "It runs no commands." });

export const terminals: Need = ({ backend }) =>
  backend.capabilities.pty ? undefined : { reason: "It has no terminals." };

export const files: Need = ({ backend }) => (backend.capabilities.files ? undefined : { reason: "It has no files." });

export const connections: Need = ({ backend }) =>
  backend.capabilities.connect ? undefined : { reason: "Ports inside cannot be reached from outside." };

export const fullSnapshots: Need = ({ backend: { capabilities } }) => {
  if (capabilities.snapshot === "full") return undefined;
  return { reason: capabilities.snapshot === "metadata" ? RECORDS : "Memory and processes are not saved." };
};

export const filesystemSnapshots: Need = ({ backend: { capabilities } }) => {
  if (capabilities.filesystemSnapshot) return undefined;
  return { reason: capabilities.snapshot === "metadata" ? RECORDS : "Files are not saved." };
};

export const resuming: Need = ({ backend }) => {
  const { outlivesServer, snapshot, files: hasFiles } = backend.capabilities;
  if (outlivesServer) return hasFiles ? undefined : { reason: "Its sandboxes hold no state to resume." };
  if (snapshot === "none") return { reason: "Its sandboxes end with the server, and are not saved." };
  return {
    instead: "by the server",
    reason:
      "Its sandboxes end with the server process. The server finds the key in the store and loads the newest state.",
  };
};

const RECORDS = "Its snapshots are records without content.";
