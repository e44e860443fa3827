import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { constants, tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { agentBinary } from "./support/build.ts";
import { startAgent, type TestAgent } from "./support/agent.ts";
import { frame, str, Type, u32, u64, u8 } from "./support/wire.ts";

const TOKEN = "0123456789abcdef0123456789abcdef";
const RESYNC = frame(Type.resync, 0, Buffer.from(TOKEN));
async function start(): Promise<TestAgent> {
  const agent = await startAgent();
  await agent.call(Type.resyncToken, Buffer.from(TOKEN));
  return agent;
}
const resynced = (agent: TestAgent): Promise<unknown> =>
  agent.until("RESYNCED", () => agent.events.find(({ type }) => type === Type.resynced));

test("a cut frame is dropped, processes keep running, and windows start again", async () => {
  const folder = await mkdtemp(join(tmpdir(), "agent-resync-"));
  const agent = await start();
  const { id } = await agent.shell("echo before; read line; echo got $line", { key: "kept" });
  await agent.untilText(id, "before\n");
  await agent.call(Type.quiesce);
  const path = join(folder, "half");
  const write = frame(
    Type.fileWrite,
    77,
    Buffer.concat([u8(1), u8(1), u32(0o644), u64(0), str(path), Buffer.alloc(900_000, "x")]),
  );
  agent.raw(write.subarray(0, 400_000));
  agent.raw(RESYNC.subarray(0, 20));
  agent.raw(RESYNC.subarray(20));
  await resynced(agent);
  await agent.hello();
  expect(existsSync(path)).toBe(false);
  expect(await agent.processes()).toMatchObject([{ id, key: "kept", exited: false, acknowledged: 0, end: 7 }]);
  agent.events.length = 0;
  await agent.stdin(id, "you\n");
  await agent.exit(id);
  expect(agent.outputs(id)).toEqual([]);
  await agent.window(id, {});
  await agent.untilText(id, "before\ngot you\n");
  await rm(folder, { recursive: true });
});

test("a malformed stream is followed again from RESYNC on", async () => {
  const agent = await start();
  const rubbish = [Buffer.alloc(4), u32(0xffff_ffff), Buffer.from("xy"), u32(2 ** 20 - 1)];
  for (const bytes of rubbish) {
    agent.events.length = 0;
    agent.raw(Buffer.concat([bytes, Buffer.alloc(300, 1)]));
    agent.raw(RESYNC);
    expect(await resynced(agent)).toBeDefined();
    await agent.ping();
  }
});

test("another token changes nothing, inside a frame or as a frame", async () => {
  const agent = await start();
  const wrong = frame(Type.resync, 0, Buffer.from(TOKEN.replace("0", "1")));
  expect(await agent.failure(Type.resync, Buffer.from(TOKEN.replace("0", "1")))).toBe(1);
  const ping = frame(Type.ping, 4000, Buffer.concat([wrong, Buffer.alloc(100_000)]));
  const answer = agent.until("the answer", () => agent.events.find(({ request }) => request === 4000));
  agent.raw(ping.subarray(0, 5000));
  agent.raw(ping.subarray(5000));
  expect((await answer).payload.equals(ping.subarray(9))).toBe(true);
  expect(agent.events.filter(({ type }) => type === Type.resynced)).toEqual([]);
});

test("without a token there is no resync", async () => {
  const agent = await startAgent();
  expect(await agent.failure(Type.resync, Buffer.from(TOKEN))).toBe(1);
  expect(await agent.failure(Type.resyncToken, Buffer.from("short"))).toBe(constants.errno.EINVAL);
  expect(await agent.failure(Type.resync, Buffer.from("short"))).toBe(1);
});

test("the token is sent once, and is not in the environment", async () => {
  const agent = await startAgent(["env", `SANDBOXER_RESYNC=${TOKEN}`, agentBinary]);
  expect(await agent.failure(Type.resync, Buffer.from(TOKEN))).toBe(1);
  await agent.call(Type.resyncToken, Buffer.from(TOKEN));
  expect(await agent.failure(Type.resyncToken, Buffer.from(TOKEN.replace("0", "1")))).toBe(constants.errno.EALREADY);
  agent.raw(RESYNC);
  await resynced(agent);
});
