import { SandboxerError, type Routes } from "@sandboxer/protocol";
import type { Sandbox } from "../../../manager/sandbox.ts";
import type { ManagedProcess } from "../../../manager/processes/managed-process.ts";
import { signalNumber } from "../../../manager/processes/signals.ts";
import type { SandboxManager } from "../../../manager/sandbox-manager.ts";
import { requireScope } from "../../access/principal.ts";
import { bodyBytes } from "../body-bytes.ts";
import { collectedAnswer, processRecord, startRequest } from "../exec-answer.ts";
import { noProcess } from "../../../manager/processes/process-verbs.ts";
import { savedLines, savedRecord } from "../saved-process.ts";
import type { Call, Handlers } from "../handler.ts";
import { followLines, presentLines } from "../process-lines.ts";

const NDJSON = "application/x-ndjson";

/** Processes of a sandbox: start, list, read, write, signal, drop. */
export function processesHandlers(manager: SandboxManager) {
  const find = async (call: {
    readonly params: { readonly id: string; readonly process_id: string };
    readonly epoch: number | undefined;
    readonly signal: AbortSignal;
  }): Promise<{ sandbox: Sandbox; process: ManagedProcess }> => {
    const sandbox = await manager.running(call.params.id, call.epoch, { signal: call.signal });
    manager.touch(sandbox);
    return { sandbox, process: await manager.processes.get(sandbox, call.params.process_id) };
  };

  /** As a paused sandbox was saved, if the caller wants that; undefined: it is not paused. */
  const savedProcesses = async ({
    params,
    query,
    options,
  }: Pick<Call<Routes["listProcesses"]>, "options"> & {
    readonly params: { readonly id: string };
    readonly query: { readonly saved?: boolean | undefined };
  }) => (query.saved === true ? manager.processes.ofPaused(params.id, options.encryption?.presentedKey) : undefined);

  const findSaved = async (call: Call<Routes["getProcess"] | Routes["processOutput"]>) => {
    const { params } = call;
    const saved = await savedProcesses(call);
    const found = saved?.find(({ id }) => id === params.process_id);
    if (saved !== undefined && found === undefined) throw noProcess(params.process_id);
    return found;
  };

  const execute = async (call: Call<Routes["exec"]>): ReturnType<Handlers["exec"]> => {
    const sandbox = await manager.running(call.params.id, call.epoch, { signal: call.signal });
    manager.touch(sandbox);
    const { body, query, signal, caller, idempotencyKey: key } = call;
    const request = startRequest(body, key === undefined ? undefined : { caller: caller.id, key });
    const process = await manager.processes.start(sandbox, request);
    if (body.detach || !body.wait) return processRecord(process);
    const release = manager.hold(sandbox, "an exec call");
    const onClose = (complete: boolean): void => {
      release();
      process.waiting -= 1;
      if (!complete && body.on_disconnect === "kill") process.kill().catch(() => {});
    };
    const { encoding } = query;
    if (call.accepts(NDJSON)) return followLines(process, { from: 0, encoding: encoding ?? "utf8", signal, onClose });
    const collect = { maxBytes: body.max_output_bytes, signal };
    try {
      return await collectedAnswer(process, {
        encoding,
        signal,
        collect: () => manager.processes.collect(process, collect),
        isWanted: () => manager.processes.collected.waiting > 0,
      });
    } finally {
      onClose(!signal.aborted);
    }
  };

  return {
    exec: execute,

    listProcesses: async (call) => {
      const saved = await savedProcesses(call);
      if (saved !== undefined) return { items: saved.map(savedRecord), next_cursor: null };
      const sandbox = await manager.running(call.params.id);
      manager.touch(sandbox);
      const processes = await manager.processes.list(sandbox);
      return { items: await Promise.all(processes.map(processRecord)), next_cursor: null };
    },

    getProcess: async (call) => {
      const saved = await findSaved(call);
      return saved === undefined ? processRecord((await find(call)).process) : savedRecord(saved);
    },

    processTable: async ({ params }) => {
      const sandbox = await manager.running(params.id);
      manager.touch(sandbox);
      const entries = await manager.processes.table(sandbox);
      const items = entries.map(({ parentPid, residentBytes, cpuMs, ...entry }) => ({
        ...entry,
        parent_pid: parentPid,
        resident_bytes: residentBytes,
        cpu_ms: cpuMs,
      }));
      return { items, next_cursor: null };
    },

    processOutput: async (call) => {
      const { offset, follow, acknowledge, encoding } = call.query;
      // Both change the output that others can read.
      if (follow === true || acknowledge === true) requireScope(call.caller.principal, "use");
      // The end of a paused process is not awaited, and nothing of its output is dropped.
      const saved = follow === true || acknowledge === true ? undefined : await findSaved(call);
      if (saved !== undefined) return savedLines(saved, offset, encoding);
      const { sandbox, process } = await find(call);
      if (follow === true) {
        const onClose = manager.hold(sandbox, "a reader of output");
        return followLines(process, { from: offset, encoding, signal: call.signal, onClose });
      }
      const answer = await presentLines(process, offset, encoding);
      if (acknowledge === true && offset !== undefined) process.acknowledge(Math.min(offset, await endOf(process)));
      return answer;
    },

    writeStdin: async (call) => {
      const { sandbox, process } = await find(call);
      const release = manager.hold(sandbox, "a writer of stdin");
      try {
        for await (const data of bodyBytes(call.stream)) await process.writeStdin(data);
        if (call.query.close === true) await process.closeStdin();
      } catch (error) {
        throw withHint(error, "The process has ended, or its stdin is closed.");
      } finally {
        release();
      }
    },

    signalProcess: async (call) => {
      const signal = signalNumber(call.body.signal);
      await (await find(call)).process.signal(signal, call.body.scope);
    },

    resizeProcess: async (call) => {
      await (await find(call)).process.resize(call.body.rows, call.body.columns);
    },

    releaseProcess: async (call) => {
      const { sandbox } = await find(call);
      await manager.processes.release(sandbox, call.params.process_id);
    },
  } satisfies Partial<Handlers>;
}

async function endOf(process: ManagedProcess): Promise<number> {
  return (await process.bounds()).end;
}

function withHint(error: unknown, hint: string): unknown {
  if (!(error instanceof SandboxerError) || error.code !== "wrong_state") return error;
  return new SandboxerError(error.code, error.message, { cause: error, hint, details: error.details });
}
