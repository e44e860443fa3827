import type { ContextRecord } from "@sandboxer/protocol";
import type { ManagedProcess } from "../../../manager/processes/managed-process.ts";
import type { Sandbox } from "../../../manager/sandbox.ts";
import type { SandboxManager } from "../../../manager/sandbox-manager.ts";
import { collectedCell } from "../cell-answer.ts";
import { cellLines } from "../cell-lines.ts";
import type { Call, Handlers } from "../handler.ts";
import type { Routes } from "@sandboxer/protocol";

const NDJSON = "application/x-ndjson";

/** Code interpreters of a sandbox: contexts and cells. */
export function interpreterHandlers(manager: SandboxManager) {
  const { interpreter: verbs } = manager;

  const sandboxOf = async (call: {
    readonly params: { readonly id: string };
    readonly epoch: number | undefined;
    readonly signal: AbortSignal;
  }): Promise<Sandbox> => {
    const sandbox = await manager.running(call.params.id, call.epoch, { signal: call.signal });
    manager.touch(sandbox);
    return sandbox;
  };

  const find = async (call: {
    readonly params: { readonly id: string; readonly context_id: string };
    readonly epoch: number | undefined;
    readonly signal: AbortSignal;
  }): Promise<{ sandbox: Sandbox; interpreter: ManagedProcess }> => {
    const sandbox = await sandboxOf(call);
    return { sandbox, interpreter: await verbs.get(sandbox, call.params.context_id) };
  };

  const interpreterFor = async (sandbox: Sandbox, { context_id, language }: Call<Routes["runCell"]>["body"]) =>
    context_id === undefined
      ? verbs.default(sandbox, language ?? "python")
      : { interpreter: await verbs.get(sandbox, context_id), fresh: false };

  return {
    runCell: async (call) => {
      const { body, signal } = call;
      const sandbox = await sandboxOf(call);
      const { interpreter, fresh } = await interpreterFor(sandbox, body);
      const timeoutMs = body.timeout === undefined ? undefined : Math.ceil(body.timeout * 1000);
      const cell = verbs.run(sandbox, interpreter, { code: body.code, env: body.env ?? {}, timeoutMs, signal });
      const release = manager.hold(sandbox, "a cell");
      const onClose = (complete: boolean): void => {
        release();
        const left = !complete && interpreter.activity?.cell === cell.id;
        if (left && body.on_disconnect === "interrupt") verbs.interrupt(interpreter);
      };
      if (call.accepts(NDJSON)) {
        const identity = { contextId: interpreter.id, cellId: cell.id, fresh };
        return cellLines(cell.events, { ...identity, isTimedOut: () => cell.timedOut, signal, onClose });
      }
      try {
        return await collectedCell(cell, {
          maxBytes: body.max_output_bytes,
          signal,
          share: verbs.openShare(),
          isWanted: () => manager.processes.collected.waiting > 0,
        });
      } finally {
        onClose(!signal.aborted);
      }
    },

    followCell: async (call) => {
      const { sandbox, interpreter } = await find(call);
      const { signal, params, query } = call;
      const events = verbs.follow(interpreter, { id: params.cell_id, from: query.offset, signal });
      const onClose = manager.hold(sandbox, "a cell");
      const identity = { contextId: interpreter.id, cellId: params.cell_id, fresh: false };
      return cellLines(events, { ...identity, isTimedOut: () => false, signal, onClose });
    },

    createContext: async (call) => {
      const { language, cwd } = call.body;
      return contextRecord(await verbs.create(await sandboxOf(call), { language, workingFolder: cwd }));
    },

    listContexts: async ({ params }) => {
      const sandbox = await manager.running(params.id);
      manager.touch(sandbox);
      return { items: (await verbs.list(sandbox)).map(contextRecord), next_cursor: null };
    },

    restartContext: async (call) => contextRecord(await verbs.restart(await sandboxOf(call), call.params.context_id)),

    interruptContext: async (call) => verbs.interrupt((await find(call)).interpreter),

    deleteContext: async (call) => verbs.delete(await sandboxOf(call), call.params.context_id),
  } satisfies Partial<Handlers>;
}

function contextRecord({ id, pid, traits, startedAt, running, activity }: ManagedProcess): ContextRecord {
  return {
    id,
    language: traits.context?.language ?? "python",
    cwd: traits.context?.workingFolder ?? null,
    state: !running ? "exited" : activity?.cell === undefined ? "idle" : "busy",
    pid,
    started_at: startedAt,
  };
}
