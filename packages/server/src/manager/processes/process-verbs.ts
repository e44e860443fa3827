import { isSandboxId, SandboxerError } from "@sandboxer/protocol";
import type { ProcessTableEntry } from "../../backends/backend.ts";
import type { MasterKey } from "../../checkpoints/keys/master-key.ts";
import type { ProcessContext } from "../room-contexts.ts";
import { live } from "../live-sandbox.ts";
import { Room } from "../room.ts";
import type { Sandbox } from "../sandbox.ts";
import { runningSandbox } from "../running.ts";
import { checkAccess, type Credentials } from "../token.ts";
import { collectOutput, type CollectedOutput, type CollectOptions } from "./collect-output.ts";
import { hooksFor } from "./hooks.ts";
import type { ManagedProcess } from "./managed-process.ts";
import type { OutputBudget } from "./output-budget.ts";
import { readNotes, type ProcessNote } from "./process-notes.ts";
import { startProcess } from "./start-process.ts";

/** Operations on the processes of a sandbox over HTTP. */
export class ProcessVerbs extends Room<ProcessContext> {
  readonly start = this.verbOn(startProcess);
  /** The memory for output that is collected for responses. */
  readonly collected: Pick<OutputBudget, "heldBytes" | "limitBytes" | "waiting"> = this.context.collected;

  collect(process: ManagedProcess, options: CollectOptions): Promise<CollectedOutput> {
    return collectOutput(process, this.context.collected, options);
  }

  async list(sandbox: Sandbox): Promise<readonly ManagedProcess[]> {
    const known = live(sandbox);
    await known.processes.sync(known.handle, hooksFor(this.context, known));
    await known.processes.recalled;
    return known.processes.overHttp;
  }

  /**
   * The processes of a paused sandbox as they were saved, with their last output; undefined if it is not paused. A
   * client's key is needed if the sandbox is encrypted with it.
   */
  async ofPaused(sandboxId: string, presentedKey: MasterKey | undefined): Promise<readonly ProcessNote[] | undefined> {
    const { context } = this;
    if (context.draining || context.sandboxes.has(sandboxId)) return undefined;
    const head = await context.storedHead(sandboxId);
    if (head?.state !== "parked") return undefined;
    const place = { sandboxId, checkpoint: head.checkpoint?.name, snapshot: head.lineage.snapshot, presentedKey };
    return (await readNotes(context, place)).filter(({ execution }) => !execution);
  }

  async get(sandbox: Sandbox, processId: string): Promise<ManagedProcess> {
    const found = (await this.list(sandbox)).find(({ id }) => id === processId);
    if (found !== undefined) return found;
    throw noProcess(processId);
  }

  /** The variables that the sandbox was created with, without secrets. */
  environment(sandbox: Sandbox): Readonly<Record<string, string>> {
    return live(sandbox).facts.spec.env;
  }

  table(sandbox: Sandbox): Promise<readonly ProcessTableEntry[]> {
    return live(sandbox).handle.processTable();
  }

  async release(sandbox: Sandbox, processId: string): Promise<void> {
    const process = await this.get(sandbox, processId);
    await process.release();
    live(sandbox).processes.forget(process);
  }

  /** The process for a client with a key or the sandbox's token. Waits for a save to end. */
  async attach(
    sandboxId: string,
    processId: string,
    credentials: Credentials,
  ): Promise<{ sandbox: Sandbox; process: ManagedProcess }> {
    const context = this.context;
    const live = context.sandboxes.get(sandboxId);
    if (credentials.token !== undefined || !credentials.trusted) {
      checkAccess(credentials, live === undefined ? await this.#storedTokenHash(sandboxId) : live.facts.tokenHash);
    }
    if (live?.state === "saving") await live.queue.run(async () => {});
    const sandbox = await runningSandbox(context, sandboxId, undefined, { limitMs: Infinity });
    return { sandbox, process: await this.get(sandbox, processId) };
  }

  async #storedTokenHash(sandboxId: string): Promise<string | null | undefined> {
    if (!isSandboxId(sandboxId)) return undefined;
    return (await this.context.storedHead(sandboxId))?.token_hash;
  }
}

export function noProcess(processId: string): SandboxerError {
  return new SandboxerError(
    "process_not_found",
    `The sandbox has no process ${JSON.stringify(processId.slice(0, 100))}.`,
  );
}
