import { existsSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { type TestAgent, startAgent } from "./support/agent.ts";
import { Type, str, u32, u64, u8 } from "./support/wire.ts";
import { meanwhile } from "../../test/kit/meanwhile.ts";

const restored = (agent: TestAgent, generation: number) =>
  agent.call(Type.restored, u64(generation), str("name"), str("id"), Buffer.from("entropy"));
const loop = "i=0; while :; do i=$((i+1)); echo $i; sleep 0.01; done";

/** Until nothing has changed for many turns of the loop: data in flight arrives before. */
async function untilStill(read: () => string): Promise<void> {
  for (let before: string | undefined; before !== read(); await meanwhile(300)) before = read();
}

test("when quiesced, the agent is silent while processes keep running; RESUME continues where it was", async () => {
  const agent = await startAgent();
  const { id } = await agent.shell(loop);
  const short = await agent.shell("sleep 0.15; echo bye");
  await agent.untilText(id, "\n3\n");
  await agent.call(Type.quiesce);
  const count = agent.events.length;
  const ping = agent.send(Type.ping, Buffer.from("late"));
  const listed = agent.processes();
  const spawned = agent.shell("echo later");
  await meanwhile(300);
  expect(agent.events.length).toBe(count);
  await agent.call(Type.resume);
  expect((await ping).payload.toString()).toBe("late");
  expect((await listed).length).toBe(2);
  await agent.untilText((await spawned).id, "later");
  expect(await agent.exit(short.id)).toMatchObject({ code: 0 });
  await agent.until("the backlog", () => agent.text(id).split("\n").length > 20);
  const numbers = agent.text(id).trim().split("\n").map(Number);
  expect(numbers).toEqual(numbers.map((_, index) => index + 1));
});

test("too many requests while quiesced are refused, and windows that were opened meanwhile are kept", async () => {
  const agent = await startAgent();
  const { id } = await agent.shell("printf 0123456789", { open: false });
  await agent.exit(id);
  await agent.call(Type.quiesce);
  const opened = agent.window(id, { limit: 5 });
  const many = Array.from({ length: 6 }, () => agent.send(Type.fileStat, Buffer.alloc(1_000_000)));
  await agent.call(Type.resume);
  await opened;
  await agent.untilText(id, "01234");
  const errors = (await Promise.all(many)).map((reply) => reply.payload.readUInt32LE());
  expect(errors).toEqual([74, 74, 74, 74, 16, 16]);
});

test("RESTORED closes windows, drops pending replies and changes the reported generation", async () => {
  const agent = await startAgent();
  const { id } = await agent.shell(loop);
  const slow = await agent.shell("sleep 0.4; cat | wc -c", { key: "slow" });
  await agent.untilText(id, "\n5\n");
  await agent.window(id, { acknowledged: 4 });
  let answered = false;
  void agent.stdin(slow.id, Buffer.alloc(500_000)).then(() => (answered = true));
  await agent.call(Type.quiesce);
  void agent.send(Type.ping).then(() => (answered = true));
  void agent.send(Type.signal, u32(id), u32(9), u8(0)).then(() => (answered = true));
  await restored(agent, 42);
  agent.events.length = 0;
  expect((await agent.hello()).readBigUInt64LE(4)).toBe(42n);
  await meanwhile(100);
  expect(agent.events).toEqual([]);
  await agent.window(id, { limit: 2 ** 40 });
  await agent.untilText(id, "\n");
  expect(agent.outputs(id)[0]?.offset).toBe(4);
  await agent.window(slow.id, { limit: 2 ** 40 });
  await meanwhile(500);
  await agent.call(Type.stdinClose, u32(slow.id));
  await agent.untilText(slow.id, "500000");
  expect(answered).toBe(false);
});

test("FREEZE stops running processes and THAW continues them, except those that their user had stopped", async () => {
  const agent = await startAgent();
  const running = await agent.shell(loop);
  await agent.untilText(running.id, "3\n");
  // A single process: a shell that is stopped while it starts another one is in state D, like a running one.
  const stopped = await agent.spawn(["sleep", "600"]);
  await agent.signal(stopped.id, 19, 1);
  const stateOf = async (pid: number) => (await agent.processTable()).find((entry) => entry.pid === pid)?.state;
  await expect.poll(() => stateOf(stopped.pid)).toBe("T");
  const counted = (await agent.call(Type.freeze)).readUInt32LE();
  expect(counted).toBeGreaterThanOrEqual(1);
  await untilStill(() => agent.text(running.id));
  const before = agent.text(running.id);
  await expect(agent.spawn(["true"])).rejects.toThrow("16:");
  await agent.call(Type.thaw);
  await agent.until("progress", () => agent.text(running.id) !== before);
  expect(await stateOf(stopped.pid)).toBe("T");
  await agent.call(Type.thaw);
});

test("an interactive shell does not notice a freeze", async () => {
  const agent = await startAgent();
  const { id } = await agent.spawn(["bash", "--norc", "-i"], {
    terminal: true,
    environment: ["PATH=/usr/bin:/bin", "PS1=> "],
  });
  await agent.untilText(id, "> ");
  await agent.stdin(id, "sleep 0.3; echo sl''ept\n");
  await meanwhile(50);
  for (let round = 0; round < 8; round++) {
    await agent.call(Type.freeze);
    await agent.call(Type.thaw);
  }
  await agent.untilText(id, "slept\r\n");
  expect(agent.text(id)).not.toContain("Stopped");
});

test("the dead man's switch stops everything until the next frame", async () => {
  const agent = await startAgent();
  const { id, pid } = await agent.shell(loop);
  // Its first lines may take longer than the switch waits.
  await agent.untilText(id, "3\n");
  await agent.hello(200);
  await agent.until("the switch", () => agent.stderr.includes("stopping every process"));
  await untilStill(() => agent.text(id));
  const before = agent.text(id);
  // Any frame turns the switch off.
  await agent.hello(0);
  await agent.until("progress", () => agent.text(id) !== before);
  expect((await agent.processTable()).find((entry) => entry.pid === pid)?.state).not.toBe("T");
  await meanwhile(400);
  expect(agent.stderr.match(/stopping every/g)?.length).toBe(1);
});

test("a freeze by the host outlasts the dead man's switch", async () => {
  const agent = await startAgent();
  const { id } = await agent.shell(loop);
  await agent.untilText(id, "3\n");
  await agent.call(Type.freeze);
  await agent.hello(100);
  await meanwhile(250);
  await agent.hello(0);
  await untilStill(() => agent.text(id));
  const before = agent.text(id);
  await agent.call(Type.thaw);
  await agent.until("progress", () => agent.text(id) !== before);
});

test("end of file ends the agent and its processes", async () => {
  const agent = await startAgent();
  const { id } = await agent.shell("setsid sleep 71 & echo $!; sleep 72");
  await agent.untilText(id, "\n");
  const pid = Number(agent.text(id));
  await agent.end();
  // It may stay a zombie for a while: init decides.
  await expect
    .poll(() => (existsSync(`/proc/${pid}/stat`) ? readFileSync(`/proc/${pid}/stat`, "utf8").split(" ")[2] : "Z"))
    .toBe("Z");
});

test("requests with number 0 are served without a reply", async () => {
  const agent = await startAgent();
  const { id } = await agent.spawn(["cat"]);
  const count = agent.events.length;
  const payload = Buffer.concat([u32(id), u32(15), u8(0)]);
  agent.raw(Buffer.concat([u32(payload.length + 5), u8(Type.signal), u32(0), payload]));
  expect(await agent.exit(id)).toMatchObject({ signal: 15 });
  expect(agent.events.length).toBe(count + 1);
});
