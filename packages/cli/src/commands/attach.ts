import { Option } from "commander";
import { SandboxerError } from "@sandboxer/protocol/errors";
import { defineCommand } from "../define-command.ts";
import { operate } from "../operate.ts";
import { addTerminalOptions } from "../options/exec.ts";
import { integer } from "../options/parse.ts";
import { nameOf } from "../output/sandboxes.ts";
import type { Run } from "../run.ts";
import { pickProcess } from "../targets/process.ts";
import { sandboxId } from "../targets/sandbox.ts";
import { parseDetachKeys } from "../terminal/detach-keys.ts";

export const attachCommand = defineCommand({
  arguments: "<sandbox> [process]",
  examples: [
    "sandboxer attach web",
    "sandboxer attach web --url http://10.0.0.2:8080",
    "sandboxer attach web 3f2a9c01",
  ],
  details:
    "Without a process: resume the sandbox on this server. A server that runs it is asked to hand it off.\n" +
    "With a process: replay its buffered output, then follow it.",
  options: (command) =>
    addTerminalOptions(command)
      .option("--checkpoint <NAME>", "resume from an older checkpoint")
      .addOption(
        new Option("--from <OFFSET>", "start the output at this byte offset").argParser(
          integer(0, Number.MAX_SAFE_INTEGER),
        ),
      )
      .option("--unread", "skip output that was already read")
      .option("--no-stdin", "do not send input")
      .option("--close-stdin", "close the process's stdin when this command's stdin ends"),
  async run(run) {
    const client = await run.client();
    const id = await sandboxId(client, run.argument(0));
    const process = run.optionalArgument(1);
    if (process !== undefined) return takeUp(run, id, process);
    const checkpoint = run.text("checkpoint");
    const body = checkpoint === undefined ? {} : { checkpoint };
    const woken = await operate(run, "resumeSandbox", { params: { id }, body });
    run.print(woken, (record) => `${record.id}\n`);
    run.say(`${nameOf(woken)} is ${woken.state} at ${client.url.replace(/\/$/, "")}.`);
  },
});

async function takeUp(run: Run, id: string, given: string): Promise<void> {
  if (run.json) {
    throw new SandboxerError("bad_request", "--json cannot be used when you attach to a process.", {
      hint: "Use `sandboxer logs --json` to read the output of a process as JSON.",
    });
  }
  const { openSandbox } = await import("../process/open-sandbox.ts");
  const { follow } = await import("../process/run-process.ts");
  const sandbox = await openSandbox(run, id);
  // The server that runs the sandbox has the list; asking for it resumes a paused one.
  const record = pickProcess(given, await sandbox.processes());
  const offset = run.flag("unread") ? undefined : (run.number("from") ?? 0);
  const process = await sandbox.process(record.id, { offset });
  const stdin = run.value<boolean>("stdin") !== false;
  const terminal = run.io.terminal;
  const tty = record.pty && stdin && terminal !== undefined;
  if (tty && record.state === "running") await process.resize(terminal.size()).catch(() => {});
  const detachKeys = parseDetachKeys(run.text("detachKeys") ?? "");
  await follow(run, sandbox, process, { stdin, tty, detachKeys, closeStdin: run.flag("closeStdin") });
}
