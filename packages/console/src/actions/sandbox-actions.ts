import { Sandbox, type OperationRecord, type SandboxRecord } from "@sandboxer/client";
import { forgetSandbox } from "../live/sandboxes.ts";
import { client, type Scope } from "../session.ts";
import { commandLine, curlLine, sdkOnSandbox, type HttpCall, type Spellings } from "./spellings.ts";

/** An action on a sandbox: offered by buttons, menus and the palette alike, with its other forms. */
export interface SandboxAction {
  readonly name: string;
  readonly scope: Scope;
  /** The question before an action that cannot be undone or affects others. */
  readonly confirm?: string;
  readonly danger?: boolean;
  applies(record: SandboxRecord): boolean;
  spell(record: SandboxRecord): Spellings;
  run(record: SandboxRecord, onProgress: (operation: OperationRecord) => void): Promise<void>;
}

const here = (record: SandboxRecord): Promise<Sandbox> => Sandbox.attach(record.id, { client, autoResume: false });

export const checkpointAction: SandboxAction = {
  name: "Pause",
  scope: "use",
  applies: ({ state, flags }) => state === "running" && flags.enableCheckpoint,
  spell: ({ id }) =>
    spell(["checkpoint", id], ["await sandbox.checkpoint();"], id, { method: "POST", path: "/checkpoint" }),
  run: async (record, onProgress) => void (await (await here(record)).checkpoint({ onProgress })),
};

export const liveCheckpointAction: SandboxAction = {
  name: "Save checkpoint",
  scope: "use",
  applies: (record) => checkpointAction.applies(record),
  spell: ({ id }) =>
    spell(["checkpoint", id, "--leave-running"], ["await sandbox.checkpoint({ leaveRunning: true });"], id, {
      method: "POST",
      path: "/checkpoint",
      body: { leave_running: true },
    }),
  run: async (record, onProgress) => void (await (await here(record)).checkpoint({ leaveRunning: true, onProgress })),
};

export const resumeAction: SandboxAction = {
  name: "Resume here",
  scope: "use",
  applies: ({ state }) => state === "stored",
  spell: spellResume,
  run: resume,
};

export const bringAction: SandboxAction = {
  name: "Move here",
  scope: "use",
  confirm: "The other server saves the sandbox and hands it off. Its programs continue on this server.",
  applies: ({ state, owner }) => state === "running" && owner?.here === false,
  spell: spellResume,
  run: resume,
};

export const destroyAction: SandboxAction = {
  name: "Delete",
  scope: "use",
  danger: true,
  confirm: "This permanently deletes the sandbox and its checkpoints. Snapshots are kept.",
  applies: ({ state }) => state !== "destroying" && state !== "destroyed",
  spell: ({ id }) => spell(["rm", id], ["await sandbox.destroy();"], id, { method: "DELETE", path: "" }),
  run: async (record) => {
    await (await here(record)).destroy();
    forgetSandbox(record.id);
  },
};

/** The first one that applies is what people want most of a sandbox in its state. */
export const PRIMARY_ACTIONS: readonly SandboxAction[] = [resumeAction, bringAction, checkpointAction];

export const SANDBOX_ACTIONS: readonly SandboxAction[] = [
  checkpointAction,
  liveCheckpointAction,
  resumeAction,
  bringAction,
  destroyAction,
];

function spellResume({ id }: SandboxRecord): Spellings {
  return {
    cli: commandLine("api", "POST", `/v1/sandboxes/${id}/resume`),
    sdk: sdkOnSandbox(id, "await sandbox.resume();"),
    curl: curlLine({ method: "POST", path: pathOf(id, "/resume") }, location.origin),
  };
}

async function resume(record: SandboxRecord, onProgress: (operation: OperationRecord) => void): Promise<void> {
  await (await here(record)).resume({ onProgress });
}

/** The same call as a command line, a program and a request. */
export function spell(cli: readonly string[], sdk: readonly string[], id: string, call: HttpCall): Spellings {
  return {
    cli: commandLine(...cli),
    sdk: sdkOnSandbox(id, ...sdk),
    curl: curlLine({ ...call, path: pathOf(id, call.path) }, location.origin),
  };
}

function pathOf(id: string, rest: string): string {
  return `/v1/sandboxes/${encodeURIComponent(id)}${rest}`;
}
