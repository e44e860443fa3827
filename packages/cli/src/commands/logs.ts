import { setTimeout as sleep } from "node:timers/promises";
import { Option } from "commander";
import { SandboxerError } from "@sandboxer/protocol/errors";
import type { ProcessRecord } from "@sandboxer/protocol";
import { readOutput } from "../process/read-output.ts";
import { defineCommand } from "../define-command.ts";
import { integer } from "../options/parse.ts";
import { visible } from "../output/table.ts";
import type { Run } from "../run.ts";
import { findProcess } from "../targets/process.ts";
import { sandboxId } from "../targets/sandbox.ts";

const LOOK_EVERY_MS = 300;

export const logsCommand = defineCommand({
  arguments: "<sandbox> [process]",
  examples: ["sandboxer logs web", "sandboxer logs -f web 3f2a9c01", "sandboxer logs web 3f2a9c01 --from 4096"],
  details:
    "Prints the buffered output; for a detached process, the last 256 KiB. Other readers are not affected.\n" +
    "For a paused sandbox, prints the last 16 KiB that its checkpoint has.\n" +
    "If the sandbox has one process, you can omit it. --json prints stream, data (base64) and offset, one object per line.",
  options: (command) =>
    command
      .option("-f, --follow", "follow the output until the process ends")
      .addOption(
        new Option("--from <OFFSET>", "start at this byte offset")
          .argParser(integer(0, Number.MAX_SAFE_INTEGER))
          .default(0),
      ),
  async run(run) {
    const client = await run.client();
    const id = await sandboxId(client, run.argument(0));
    const given = run.optionalArgument(1);
    // A paused process is not followed.
    const saved = !run.flag("follow");
    const process =
      given === undefined ? await onlyProcess(run, id, saved) : await findProcess(client, id, given, saved);
    let offset = run.number("from") ?? 0;
    let reading = true;
    for (;;) {
      const { end, ended } = await readOutput(client, { id, processId: process.id, offset, saved }, async (piece) => {
        const bytes = run.json ? Buffer.from(`${JSON.stringify(piece)}\n`) : Buffer.from(piece.data, "base64");
        reading &&= await run.io.writeBytes(run.json ? "stdout" : piece.stream, bytes);
      });
      offset = end;
      if (ended || !reading || !run.flag("follow")) return;
      await sleep(LOOK_EVERY_MS);
    }
  },
});

async function onlyProcess(run: Run, id: string, saved: boolean): Promise<ProcessRecord> {
  const { items } = await (await run.client()).call("listProcesses", { params: { id }, query: { saved } });
  const [only] = items;
  if (only !== undefined && items.length === 1) return only;
  const shown = items.map((item) => `${item.id} (${visible(item.command?.join(" ") ?? "?").slice(0, 40)})`);
  throw items.length === 0
    ? new SandboxerError("process_not_found", "The sandbox has no process.", {
        hint: "Start one with `sandboxer exec`.",
      })
    : new SandboxerError("bad_request", `The sandbox has ${items.length} processes.`, {
        hint: `Choose one: ${shown.join(", ")}.`,
        details: { matches: items.map((item) => item.id) },
      });
}
