import { client } from "../../../session.ts";
import { tellError } from "../../../ui/toasts.tsx";

/** Over HTTP, without affecting the process's reader: attaching would take it from a terminal. */

interface Target {
  readonly id: string;
  readonly process_id: string;
}

const targetOf = (sandboxId: string, processId: string): Target => ({ id: sandboxId, process_id: processId });

export async function writeStdin(sandboxId: string, processId: string, text: string, close: boolean): Promise<void> {
  const params = targetOf(sandboxId, processId);
  await client.call("writeStdin", { params, query: close ? { close } : {}, body: new Blob([text]) });
}

export async function sendSignal(sandboxId: string, processId: string, signal: string): Promise<void> {
  await client.call("signalProcess", { params: targetOf(sandboxId, processId), body: { signal } });
}

export async function removeProcess(sandboxId: string, processId: string): Promise<void> {
  await client.call("releaseProcess", { params: targetOf(sandboxId, processId) });
}

/** Counts unread output up to there as received. */
export async function letGoOn(sandboxId: string, processId: string, offset: number): Promise<void> {
  const input = { params: targetOf(sandboxId, processId), query: { offset, acknowledge: true } };
  try {
    await client.transport.read("processOutput", input, {}, (response) => response.text());
  } catch (thrown) {
    tellError("The process still waits", thrown);
  }
}
