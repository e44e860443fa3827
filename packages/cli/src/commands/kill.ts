import { InvalidArgumentError, Option } from "commander";
import { defineCommand } from "../define-command.ts";
import { findProcess } from "../targets/process.ts";
import { sandboxId } from "../targets/sandbox.ts";

export const killCommand = defineCommand({
  arguments: "<sandbox> <process>",
  examples: [
    "sandboxer kill web 3f2a9c01",
    "sandboxer kill web 3f2a9c01 --signal SIGKILL",
    "sandboxer kill web 7 -s INT",
  ],
  details: "Give the id of the process, a prefix of it, or its PID. List processes with `sandboxer ps`.",
  options: (command) =>
    command
      .addOption(new Option("-s, --signal <SIGNAL>", "signal name or number").argParser(signal).default("SIGTERM"))
      .option("--only", "signal only this process, not its children")
      .option("--release", "also delete its output and its record"),
  async run(run) {
    const client = await run.client();
    const id = await sandboxId(client, run.argument(0));
    const process = await findProcess(client, id, run.argument(1));
    const params = { id, process_id: process.id };
    const body = {
      signal: run.value<string | number>("signal") ?? "SIGTERM",
      scope: run.flag("only") ? ("process" as const) : ("group" as const),
    };
    if (process.state === "running") await client.call("signalProcess", { params, body });
    if (run.flag("release")) await client.call("releaseProcess", { params });
    run.print({ process_id: process.id, signal: body.signal }, ({ process_id }) => `${process_id}\n`);
    if (process.state !== "running") run.say("The process had already ended.");
  },
});

function signal(text: string): string | number {
  if (/^\d{1,2}$/.test(text) && Number(text) >= 1 && Number(text) <= 64) return Number(text);
  const name = text.toUpperCase();
  if (/^(SIG)?[A-Z][A-Z0-9]{1,9}$/.test(name)) return name.startsWith("SIG") ? name : `SIG${name}`;
  throw new InvalidArgumentError("It must be a name such as SIGINT, or a number from 1 to 64.");
}
