import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { describe, expect, onTestFinished, test } from "vitest";
import { hasPython, inTerminal } from "./support/real-terminal.ts";
import { createSandboxes, type Machine, newMachine, numbersIn } from "./support/served.ts";
import { meanwhile } from "../../../test/kit/meanwhile.ts";
import { CLONE_COMMAND, COMMAND } from "../../../test/kit/server/command.ts";

const SANDBOXES = 5;

interface Started {
  readonly child: ChildProcess;
  readonly url: string;
  readonly out: () => string;
  readonly log: () => string;
  /** Settles when nothing writes to its stdout any more. */
  readonly ended: Promise<void>;
  says(text: string): Promise<void>;
}

/** A command that becomes `sandboxer serve`, or starts it, as a process group of its own. */
async function start(argv: readonly string[], env: Record<string, string> = {}): Promise<Started> {
  const [program = "", ...rest] = argv;
  const child = spawn(program, rest, {
    env: { ...process.env, ...env },
    stdio: ["ignore", "pipe", "pipe"],
    detached: true,
  });
  const group = child.pid ?? 0;
  onTestFinished(() => {
    try {
      process.kill(-group, "SIGKILL");
    } catch {
      // It has ended.
    }
  });
  let [out, log] = ["", ""];
  child.stdout.on("data", (data: Buffer) => (out += data.toString()));
  child.stderr.on("data", (data: Buffer) => (log += data.toString()));
  const ended = new Promise<void>((resolve) => child.stdout.once("end", resolve));
  await expect.poll(() => out, { message: "the address" }).toMatch(/"url":"[^"]+"/);
  const says = async (text: string): Promise<void> => await expect.poll(() => log).toContain(text);
  return { child, url: /"url":"([^"]+)"/.exec(out)?.[1] ?? "", out: () => out, log: () => log, ended, says };
}

const serve = (machine: Machine, ...more: string[]): string[] => {
  return [process.execPath, COMMAND, "serve", ...machine.flags, ...more];
};

/** As npm does: npm, a shell, the command. */
const underNpm = (machine: Machine): Promise<Started> => {
  const shell = ["/bin/sh", "-c", '"$@"; true', "sh"];
  return start([...shell, ...shell, ...serve(machine)], { npm_command: "exec" });
};

async function exitOf({ child, ended }: Started): Promise<number | null> {
  await ended;
  await expect.poll(() => child.exitCode ?? child.signalCode).not.toBe(null);
  return child.exitCode;
}

/** Sandboxes of a draining server that waits for its store. */
async function held(machine: Machine, server: Started, stop: () => void): Promise<string[]> {
  const ids = await createSandboxes(server.url, SANDBOXES);
  await machine.takeStoreAway();
  stop();
  await server.says("sandboxes are kept");
  return ids;
}

async function expectSaved(machine: Machine, ids: readonly string[]): Promise<void> {
  expect(await Promise.all(ids.map(machine.isSaved))).toEqual(ids.map(() => true));
  const next = await start(serve(machine));
  expect(await numbersIn(next.url, ids)).toEqual([...ids.keys()]);
}

describe("every sandbox is saved", () => {
  test("when the whole group under npm is signalled repeatedly", async () => {
    const machine = await newMachine();
    const server = await underNpm(machine);
    const tell = (signal: NodeJS.Signals): boolean => process.kill(-(server.child.pid ?? 0), signal);
    const ids = await held(machine, server, () => tell("SIGTERM"));
    // Before or after the signal reaches the server itself.
    await server.says("npm has exited: ");
    for (const signal of ["SIGTERM", "SIGHUP", "SIGINT"] as const) {
      tell(signal);
      await server.says(`${signal}: still saving`);
    }
    await machine.giveStoreBack();
    await server.ended;
    await expectSaved(machine, ids);
  });

  test("when npm is killed", async () => {
    const machine = await newMachine();
    const server = await underNpm(machine);
    const ids = await held(machine, server, () => server.child.kill("SIGKILL"));
    await server.says("npm has exited: saving");
    await machine.giveStoreBack();
    await server.ended;
    await expectSaved(machine, ids);
  });

  test.skipIf(!hasPython)("when its terminal is closed", async () => {
    const machine = await newMachine();
    const [, , ...argv] = serve(machine);
    const terminal = inTerminal(argv, {});
    await terminal.shows(/"url":"[^"]+"/);
    const ids = await createSandboxes(/"url":"([^"]+)"/.exec(terminal.screen())?.[1] ?? "", SANDBOXES);
    terminal.hangUp();
    expect(await terminal.ended).toMatchObject({ code: 0 });
    await expectSaved(machine, ids);
  });

  test("when systemd stops it: SIGTERM, SIGCONT and SIGHUP to every process", async () => {
    const machine = await newMachine();
    const server = await start(serve(machine));
    const ids = await held(machine, server, () => {
      for (const signal of ["SIGTERM", "SIGCONT", "SIGHUP"] as const) process.kill(-(server.child.pid ?? 0), signal);
    });
    await server.says("SIGHUP: ");
    await machine.giveStoreBack();
    expect(await exitOf(server)).toBe(0);
    await expectSaved(machine, ids);
  });
});

/** A Node of this machine that is too old to run the command itself, and starts it again on another one. */
const oldNode = ["/usr/bin/node", "/usr/local/bin/node"].find((path) => {
  return Number(spawnSync(path, ["-p", "process.versions.node.split('.')[0]"], { encoding: "utf8" }).stdout) < 22;
});

test.skipIf(oldNode === undefined)("a drain continues when the older Node that started it is killed", async () => {
  const machine = await newMachine();
  const [, , ...argv] = serve(machine);
  // Only the clone has a newer Node.
  const server = await start([oldNode ?? "", CLONE_COMMAND, ...argv]);
  const ids = await held(machine, server, () => server.child.kill("SIGTERM"));
  server.child.kill("SIGKILL");
  await expect.poll(() => server.child.signalCode).toBe("SIGKILL");
  await machine.giveStoreBack();
  await server.ended;
  await expectSaved(machine, ids);
});

/** A process that is PID 1, as in a container. */
const AS_PID_1 = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"];
const canUnshare = spawnSync(AS_PID_1[0] ?? "", [...AS_PID_1.slice(1), "true"]).status === 0;

describe.skipIf(!canUnshare)("as PID 1 of a container (skipped where there are no namespaces)", () => {
  async function inContainer(machine: Machine) {
    const server = await start([...AS_PID_1, ...serve(machine)]);
    const { pid } = server.child;
    const inside = Number(readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim());
    return { server, tell: (signal: NodeJS.Signals) => process.kill(inside, signal) };
  }

  test("`docker stop` saves every sandbox", async () => {
    const machine = await newMachine();
    const { server, tell } = await inContainer(machine);
    const ids = await createSandboxes(server.url, SANDBOXES);
    tell("SIGTERM");
    expect(await exitOf(server)).toBe(0);
    await expectSaved(machine, ids);
  });

  test("if the time limit passes before the store is back, the next server on the machine has everything", async () => {
    const machine = await newMachine();
    const { server, tell } = await inContainer(machine);
    const ids = await held(machine, server, () => tell("SIGTERM"));
    await expect.poll(() => machine.keptIds()).toHaveLength(SANDBOXES);
    tell("SIGKILL");
    await server.ended;
    await machine.giveStoreBack();
    const next = await start(serve(machine));
    expect(await numbersIn(next.url, ids)).toEqual([...ids.keys()]);
  });
});

test("a second Ctrl-C ends it at once, but a copy of the first does not", async () => {
  const machine = await newMachine();
  const server = await start(serve(machine));
  await held(machine, server, () => server.child.kill("SIGINT"));
  const beganMs = performance.now();
  server.child.kill("SIGINT");
  await server.says("SIGINT: still saving");
  expect(server.child.exitCode).toBe(null);
  while (performance.now() - beganMs < 1_000) await meanwhile(50);
  server.child.kill("SIGINT");
  expect(await exitOf(server)).toBe(130);
});

test("a store that stays unavailable makes it fail with a list, and the next server publishes the kept states", async () => {
  const machine = await newMachine();
  const server = await start(serve(machine, "--drain-timeout", "1s"));
  const ids = await held(machine, server, () => server.child.kill("SIGTERM"));
  expect(await exitOf(server)).toBe(9);
  expect(server.out()).toContain(`${SANDBOXES} sandboxes are not in the store`);
  for (const id of ids) expect(server.out()).toMatch(new RegExp(`${id}: kept in .*/unpublished/.*${id}`));
  await machine.giveStoreBack();
  const next = await start(serve(machine));
  await expect.poll(() => Promise.all(ids.map(machine.isSaved))).toEqual(ids.map(() => true));
  expect(await numbersIn(next.url, ids)).toEqual([...ids.keys()]);
});
