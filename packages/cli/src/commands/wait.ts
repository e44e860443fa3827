import { setTimeout as sleep } from "node:timers/promises";
import { Option } from "commander";
import type { Transport } from "@sandboxer/client/transport";
import type { SandboxRecord } from "@sandboxer/protocol";
import { SandboxerError } from "@sandboxer/protocol/errors";
import { stateWord } from "@sandboxer/protocol/state-word";
import { defineCommand } from "../define-command.ts";
import { durationMs } from "../options/parse.ts";
import { sandboxStateOption } from "../options/states.ts";
import type { Run } from "../run.ts";
import { sandboxId } from "../targets/sandbox.ts";
import { waitForOperation } from "../api/wait-for-operation.ts";
import { ProgressLine } from "../output/progress.ts";

const LOOK_EVERY_MS = 250;

export const waitCommand = defineCommand({
  arguments: "[sandbox]",
  examples: [
    "sandboxer wait web",
    "sandboxer wait web --for paused --timeout 5m",
    "sandboxer wait --operation 3f2a9c01-0000-4000-8000-000000000000",
  ],
  details:
    "Exits with 0 when the state is reached, with 11 after the timeout, and with the error code of a failed operation.",
  options: (command) =>
    command
      .addOption(sandboxStateOption("-f, --for <STATE>", "state to wait for").default("running"))
      .option("-o, --operation <ID>", "wait for this operation to end instead")
      .addOption(
        new Option("-t, --timeout <DURATION>", "give up after this long (default: never)").argParser(durationMs),
      ),
  async run(run) {
    const timeoutMs = run.number("timeout");
    const deadlineMs = timeoutMs === undefined ? undefined : performance.now() + timeoutMs;
    const operation = run.text("operation");
    const given = run.optionalArgument(0);
    if ((operation === undefined) === (given === undefined)) {
      throw new SandboxerError("bad_request", "Give a sandbox or --operation.");
    }
    if (operation !== undefined) return operationEnd(run, operation, deadlineMs);
    return sandboxState(run, await sandboxId(await run.client(), given ?? ""), deadlineMs);
  },
});

async function operationEnd(run: Run, id: string, deadlineMs: number | undefined): Promise<void> {
  const line = new ProgressLine(run.io, run.json);
  try {
    const ended = await waitForOperation(await run.client(), id, { deadlineMs, onProgress: line.operation });
    line.end();
    run.print(ended, ({ state }) => `${state}\n`);
  } finally {
    line.end();
  }
}

async function sandboxState(run: Run, id: string, deadlineMs: number | undefined): Promise<void> {
  const wanted = run.text("for") ?? "running";
  for (;;) {
    const record = await lookAt(await run.client(), id, wanted);
    if (record.state === wanted) return run.print(record, ({ state }) => `${stateWord(state)}\n`);
    if (record.state === "destroyed") throw new SandboxerError("sandbox_destroyed", `Sandbox ${id} was deleted.`);
    if (deadlineMs !== undefined && performance.now() >= deadlineMs) {
      throw new SandboxerError("timeout", `Sandbox ${id} is ${stateWord(record.state)}, not ${stateWord(wanted)}.`, {
        hint: "Wait longer with --timeout, or see what happened with `sandboxer timeline`.",
      });
    }
    await sleep(LOOK_EVERY_MS);
  }
}

/** A missing sandbox counts as destroyed when waiting for that. */
async function lookAt(client: Transport, id: string, wanted: string): Promise<Pick<SandboxRecord, "id" | "state">> {
  try {
    return await client.call("getSandbox", { params: { id } });
  } catch (error) {
    const gone = error instanceof SandboxerError && error.row.exitCode === 4;
    if (gone && wanted === "destroyed") return { id, state: "destroyed" };
    throw error;
  }
}
