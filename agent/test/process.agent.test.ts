import { mkdtempSync, readFileSync, rmSync, chmodSync, existsSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { isRoot, startAgent } from "./support/agent.ts";
import { Type, list, str, u16, u32, u8 } from "./support/wire.ts";

const spawnPayload = (flags: number, key: string, folder: string, parameters: string[], environment: string[]) => [
  u8(flags),
  u16(0),
  u16(0),
  u32(1000),
  u32(1000),
  str(key),
  str(folder),
  list(parameters),
  list(environment),
];
const alive = (pid: number): boolean => existsSync(`/proc/${pid}`);

test("READY comes first, HELLO has the version and the generation", async () => {
  const agent = await startAgent();
  expect(agent.events[0]).toMatchObject({ type: Type.ready, payload: u32(1) });
  expect((await agent.hello()).toString("hex")).toBe("010000000000000000000000");
  expect(await agent.failure(Type.hello, u32(2), u32(0))).toBe(93);
});

test("the program is found in the PATH of the request; failures carry their errno and start nothing", async () => {
  const agent = await startAgent();
  const fail = (folder: string, parameters: string[], environment: string[], flags = 0, key = "") =>
    agent.failure(Type.spawn, ...spawnPayload(flags, key, folder, parameters, environment));
  expect(await fail("/", ["true"], ["PATH=/nowhere"])).toBe(2);
  expect(await fail("/", ["no-such-program"], ["PATH=/usr/bin:/bin"])).toBe(2);
  expect(await fail("/", [""], ["PATH=/usr/bin"])).toBe(2);
  expect(await fail("/", ["/etc/passwd"], ["PATH=/usr/bin"])).toBe(13);
  expect(await fail("/nowhere", ["true"], ["PATH=/usr/bin"])).toBe(2);
  expect(await fail("/etc/passwd", ["true"], ["PATH=/usr/bin"])).toBe(20);
  expect(await fail("/", [], ["PATH=/usr/bin"])).toBe(22);
  expect(await fail("/", ["true"], ["NOTAVARIABLE"])).toBe(22);
  expect(await fail("/", ["true"], [], 16)).toBe(22);
  expect(await fail("/", ["true"], [], 0, "k".repeat(257))).toBe(36);
  await expect(agent.spawn(["no-such-program"])).rejects.toThrow("no-such-program");
  expect(await agent.processes()).toEqual([]);
  const { id } = await agent.spawn(["env"], { environment: ["A=1", "PATH=/usr/bin", "B=x y"] });
  await agent.exit(id);
  expect(agent.text(id)).toBe("A=1\nPATH=/usr/bin\nB=x y\n");
});

test("a process has its own session and group, default signals and no descriptors of the agent", async () => {
  const agent = await startAgent();
  const { id, pid } = await agent.shell(
    "ps -o pid=,pgid=,sid= -p $$; grep -E 'SigIgn|SigBlk|NoNewPrivs|CapEff|^Uid|^Groups' /proc/self/status; ls /proc/self/fd; umask; pwd",
    { folder: "/usr" },
  );
  await agent.exit(id);
  const text = agent.text(id);
  expect(text.trim().split("\n")[0]?.trim().split(/\s+/)).toEqual([`${pid}`, `${pid}`, `${pid}`]);
  expect(text).toMatch(/SigBlk:\s+0{16}/);
  expect(text).toMatch(/SigIgn:\s+0{16}/);
  expect(text).toMatch(/NoNewPrivs:\s+1/);
  if (isRoot) expect(text).toMatch(/Uid:\s+1000\s+1000\s+1000\s+1000/);
  if (isRoot) expect(text).toMatch(/Groups:\s*\n/);
  expect(text).toMatch(/\n0\n1\n2\n3\n0022\n\/usr\n/);
});

test("a known key starts nothing", async () => {
  const agent = await startAgent();
  const first = await agent.shell("echo once; sleep 60", { key: "job" });
  const second = await agent.shell("echo twice", { key: "job" });
  expect(second).toEqual({ ...first, existed: true });
  const others = await Promise.all([agent.shell("true"), agent.shell("true")]);
  expect(new Set(others.map((other) => other.id)).size).toBe(2);
  await agent.signal(first.id, 9);
  await agent.exit(first.id);
  expect((await agent.shell("echo twice", { key: "job" })).existed).toBe(true);
  await agent.call(Type.forget, u32(first.id));
  expect((await agent.shell("true", { key: "job" })).existed).toBe(false);
});

test("FORGET needs an exited process", async () => {
  const agent = await startAgent();
  const { id } = await agent.spawn(["cat"]);
  expect(await agent.failure(Type.forget, u32(id))).toBe(16);
  expect(await agent.failure(Type.forget, u32(77))).toBe(3);
  await agent.call(Type.stdinClose, u32(id));
  await agent.exit(id);
  await agent.call(Type.forget, u32(id));
  expect(await agent.processes()).toEqual([]);
});

test("256 processes are kept; acknowledged ones make room", async () => {
  const agent = await startAgent();
  const first = await agent.spawn(["true"], { input: false });
  const second = await agent.spawn(["echo", "unread"], { input: false, open: false });
  await Promise.all([agent.exit(first.id), agent.exit(second.id)]);
  await Promise.all(Array.from({ length: 254 }, () => agent.spawn(["cat"], { open: false })));
  expect((await agent.processes()).length).toBe(256);
  await agent.spawn(["cat"]);
  const kept = await agent.processes();
  expect(kept.length).toBe(256);
  expect(kept[0]?.id).toBe(second.id);
  await expect(agent.spawn(["cat"])).rejects.toThrow("11:");
  await agent.window(second.id, { acknowledged: 7, limit: 7 });
  await agent.spawn(["cat"]);
});

test("the exit does not wait for a child that holds the pipe, and the child keeps running unblocked", async () => {
  const agent = await startAgent();
  const folder = mkdtempSync(join(tmpdir(), "agent-"));
  chmodSync(folder, 0o777);
  const { id } = await agent.shell(
    `(sleep 0.3; yes | head -c 300000; echo late >&2; echo done > ${folder}/done) & printf early`,
  );
  expect(await agent.exit(id)).toEqual({ code: 0, signal: 0, end: 5 });
  await agent.call(Type.forget, u32(id));
  await agent.until(
    "the child's file",
    () => existsSync(`${folder}/done`) && readFileSync(`${folder}/done`, "utf8") === "done\n",
  );
  expect(agent.text(id)).toBe("early");
  rmSync(folder, { recursive: true });
});

test("everything that was in the pipe at the exit is logged", async () => {
  const agent = await startAgent();
  for (let round = 0; round < 20; round++) {
    const { id } = await agent.shell("head -c 60000 /dev/zero; head -c 60000 /dev/zero >&2");
    expect((await agent.exit(id)).end).toBe(120_000);
  }
});

test("orphans are reaped", async () => {
  const agent = await startAgent();
  const { id } = await agent.shell("for i in 1 2 3 4 5; do (setsid sh -c 'sleep 0.1' &) ; done; echo started");
  await agent.exit(id);
  await expect.poll(() => agent.processTable()).toEqual([]);
});

test("signals reach the leader or the group, also the rest of a group", async () => {
  const agent = await startAgent();
  const leader = await agent.shell("trap 'echo got; exit 3' USR1; echo ready; while :; do sleep 0.02; done");
  await agent.untilText(leader.id, "ready");
  await agent.signal(leader.id, 0);
  await agent.signal(leader.id, 10);
  expect(await agent.exit(leader.id)).toMatchObject({ code: 3, signal: 0 });
  expect(await agent.failure(Type.signal, u32(leader.id), u32(9), u8(0))).toBe(3);
  const group = await agent.shell("sleep 61 & echo $!; wait");
  await agent.untilText(group.id, "\n");
  const inner = Number(agent.text(group.id));
  await agent.signal(group.id, 9, 1);
  expect(await agent.exit(group.id)).toMatchObject({ code: -1, signal: 9 });
  await agent.until("the group's end", () => !alive(inner));
  const left = await agent.shell("sleep 62 & echo $!");
  await agent.exit(left.id);
  expect(alive(Number(agent.text(left.id)))).toBe(true);
  await agent.signal(left.id, 9, 1);
  await agent.until("the rest's end", () => !alive(Number(agent.text(left.id))));
  expect(await agent.failure(Type.signal, u32(left.id), u32(99), u8(0))).toBe(22);
  expect(await agent.failure(Type.signal, u32(left.id), u32(9), u8(3))).toBe(22);
  expect(await agent.failure(Type.signal, u32(12345), u32(9), u8(0))).toBe(3);
});

test("scope 2 reaches all processes except the agent", async () => {
  const agent = await startAgent();
  const one = await agent.shell("setsid sleep 63 & sleep 64");
  const two = await agent.spawn(["cat"]);
  await agent.signal(0, 9, 2);
  expect(await agent.exit(one.id)).toMatchObject({ signal: 9 });
  expect(await agent.exit(two.id)).toMatchObject({ signal: 9 });
  await agent.ping();
});

test("the process table shows running processes", async () => {
  const agent = await startAgent();
  const { pid } = await agent.spawn(["sleep", "65"]);
  const [entry] = await agent.processTable();
  expect(entry).toMatchObject({ pid, parent: agent.child.pid, command: "sleep 65" });
  expect("SRD").toContain(entry?.state);
  if (isRoot) expect(entry?.uid).toBe(1000);
  // A process that has just started may have no memory yet, or none that the kernel has counted.
  await expect.poll(async () => (await agent.processTable())[0]?.resident).toBeGreaterThan(10_000);
});
