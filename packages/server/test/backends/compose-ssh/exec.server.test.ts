import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { PassThrough } from "node:stream";
import { text } from "node:stream/consumers";
import { expect, test } from "vitest";
import { execInService } from "../../../src/backends/compose-ssh/exec.ts";
import { ServiceContainers } from "../../../src/backends/compose-ssh/service-containers.ts";
import type { SshConnection } from "../../../src/backends/compose-ssh/ssh-connection.ts";
import { sampleProject } from "./sample-project.ts";

const project = sampleProject("7f2c1c9e-6f0e-4b38-9a52-0f3f2b8f5d11", { host: "h" });

/**
 * Runs the command for the service on this machine. Its report arrives after its exit, as if several children exited at
 * about the same time: Node handles all of them when it is notified of one.
 */
const here = {
  placement: project.placement,
  start: (argv: readonly string[]): ChildProcessWithoutNullStreams => {
    const child = spawn("sh", ["-c", argv.at(-1) ?? ""]);
    const stderr = new PassThrough();
    const said = text(child.stderr);
    child.once("exit", () => setImmediate(() => void said.then((report) => stderr.end(report))));
    return Object.assign(child, { stderr });
  },
} as unknown as SshConnection;

test("the output of a command that ends before it is read is kept", async () => {
  const process = await execInService(here, project, { argv: ["sh", "-c", "echo out; echo err >&2"], env: {} });
  const [stdout, stderr] = await Promise.all([text(process.stdout), text(process.stderr)]);
  expect([stdout, stderr, await process.exited]).toEqual(["out\n", "err\n", { code: 0, signal: undefined }]);
});

/**
 * Docker carries both streams of a process in one, in any order, and waits for its reader. Here nothing of stderr
 * arrives before stdout has been read to its end.
 */
const oneStream = {
  placement: project.placement,
  start: (argv: readonly string[]): ChildProcessWithoutNullStreams => {
    const child = spawn("sh", ["-c", argv.at(-1) ?? ""]);
    const stderr = new PassThrough();
    const said = text(child.stderr);
    child.stdout.once("end", () => void said.then((report) => stderr.end(report)));
    return Object.assign(child, { stderr });
  },
} as unknown as SshConnection;

test("a command that prints megabytes is started, even if they come before the first byte of stderr", async () => {
  const argv = ["sh", "-c", "echo err >&2; head -c 3000000 /dev/zero"];
  const process = await execInService(oneStream, project, { argv, env: {} });
  const [stdout, stderr] = await Promise.all([text(process.stdout), text(process.stderr)]);
  expect([stdout.length, stderr, await process.exited]).toEqual([3_000_000, "err\n", { code: 0, signal: undefined }]);
}, 30_000);

test("a command that does not start is reported, whichever stream comes first", async () => {
  const command = { argv: ["no-such-program"], env: {} };
  for (const host of [here, oneStream]) {
    await expect(execInService(host, project, command)).rejects.toThrow("There is no program no-such-program");
  }
});

test("a known container is not looked up until Docker reports that it is missing", async () => {
  const [id, asked] = ["ab".repeat(32), [] as (readonly string[])[]];
  const containers = new ServiceContainers();
  const isKnown = (argv: readonly string[]): boolean => argv.includes(id);
  let gone = false;
  const host = {
    placement: project.placement,
    start: (argv: readonly string[]): ChildProcessWithoutNullStreams => {
      asked.push(argv);
      if (!gone || !isKnown(argv)) return here.start(argv);
      return here.start([`echo "Error response from daemon: No such container: ${id}" >&2; exit 1`]);
    },
  } as unknown as SshConnection;
  const run = async (): Promise<string> =>
    text((await execInService(host, project, { argv: ["echo", "out"], env: {} }, containers)).stdout);
  const known = (): boolean[] => asked.splice(0).map(isKnown);
  containers.note(project.sandboxId, "$(no id)");
  expect([await run(), known()]).toEqual(["out\n", [false]]);
  containers.note(project.sandboxId, id);
  expect([await run(), known()]).toEqual(["out\n", [true]]);
  gone = true;
  expect([await run(), known()]).toEqual(["out\n", [true, false]]);
  expect([await run(), known()]).toEqual(["out\n", [false]]);
});

test("a process is signalled and watched in the container where it was started, even if the service has another by then", async () => {
  const [id, asked] = ["cd".repeat(32), [] as string[]];
  const containers = new ServiceContainers();
  containers.note(project.sandboxId, id);
  const host = {
    placement: project.placement,
    start: (argv: readonly string[]): ChildProcessWithoutNullStreams => {
      asked.push(argv.join(" "));
      return here.start(argv);
    },
  } as unknown as SshConnection;
  const process = await execInService(host, project, { argv: ["true"], env: {} }, containers);
  containers.note(project.sandboxId, "ef".repeat(32));
  asked.length = 0;
  await process.untilEnded?.(AbortSignal.timeout(20_000));
  await process.signal(15, "process").catch(() => {});
  expect(asked.map((line) => line.includes(id))).toEqual([true, true]);
});
