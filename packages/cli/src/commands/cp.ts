import { resolve } from "node:path";
import { SandboxerError } from "@sandboxer/protocol/errors";
import type { Copied } from "../copy/upload.ts";
import { defineCommand } from "../define-command.ts";
import { formatBytes } from "../output/bytes.ts";
import { ProgressLine } from "../output/progress.ts";
import type { Run } from "../run.ts";
import { parseRemotePath } from "../targets/remote-path.ts";

const STREAM = "-";

export const cpCommand = defineCommand({
  arguments: "<source> <target>",
  examples: [
    "sandboxer cp ./app web:/srv/app",
    "sandboxer cp web:/var/log/app.log .",
    "echo hello | sandboxer cp - web:/tmp/hello.txt",
  ],
  details:
    "Write a path in a sandbox as SANDBOX:/PATH. As with `cp -r`, copying into an existing folder keeps the source's\n" +
    "name; a source that ends with /. copies the contents of the folder. `-` is stdin or stdout.",
  options: (command) => command.option("--no-wake", "fail if the sandbox is paused, instead of resuming it"),
  async run(run) {
    const line = new ProgressLine(run.io, run.json);
    try {
      const copied = await copy(run, run.argument(0), run.argument(1), line);
      line.end();
      if (run.json && copied.to !== STREAM) run.print(copied, () => "");
      else
        run.say(
          `${copied.files} ${copied.files === 1 ? "file" : "files"}, ${formatBytes(copied.bytes)}, to ${copied.to}`,
        );
    } finally {
      line.end();
    }
  },
});

async function copy(run: Run, source: string, target: string, line: ProgressLine): Promise<Copied> {
  const from = parseRemotePath(source);
  const to = parseRemotePath(target);
  const local = (path: string): string => {
    const whole = resolve(run.io.workingDirectory, path);
    return path.endsWith("/.") ? `${whole}/.` : path.endsWith("/") ? `${whole}/` : whole;
  };
  if (from === undefined && to === undefined) {
    throw new SandboxerError("bad_request", "One of the two paths must be in a sandbox.", {
      hint: "Write it as SANDBOX:/PATH, for example web:/tmp.",
    });
  }
  const { openSandbox } = await import("../process/open-sandbox.ts");
  if (from !== undefined && to !== undefined) {
    const { between } = await import("../copy/between.ts");
    const [left, right] = [await openSandbox(run, from.sandbox), await openSandbox(run, to.sandbox)];
    return between({ sandbox: left, path: from.path }, { sandbox: right, path: to.path }, line);
  }
  if (to !== undefined) {
    const { upload, uploadStdin } = await import("../copy/upload.ts");
    const sandbox = await openSandbox(run, to.sandbox);
    return source === STREAM
      ? uploadStdin(sandbox, to.path, run.io, line)
      : upload(sandbox, local(source), to.path, { io: run.io, line });
  }
  const { download, downloadToStdout } = await import("../copy/download.ts");
  const { sandbox: name, path } = from ?? { sandbox: "", path: "" };
  const sandbox = await openSandbox(run, name);
  return target === STREAM ? downloadToStdout(sandbox, path, run.io) : download(sandbox, path, local(target), line);
}
