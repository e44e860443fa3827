import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { startAgent } from "./support/agent.ts";
import { Type, u32, u64, u8 } from "./support/wire.ts";
import { meanwhile } from "../../test/kit/meanwhile.ts";

const residentKb = (pid: number): number =>
  Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]);

test("both streams share one log with offsets, and EXIT reports its end", async () => {
  const agent = await startAgent();
  const { id } = await agent.shell("printf out; sleep 0.05; printf err >&2; sleep 0.05; printf more; exit 7");
  expect(await agent.exit(id)).toEqual({ code: 7, signal: 0, end: 10 });
  expect(agent.outputs(id).map(({ stream, offset, bytes }) => [stream, offset, bytes.toString()])).toEqual([
    [1, 0, "out"],
    [2, 3, "err"],
    [1, 6, "more"],
  ]);
});

test("nothing is sent beyond the limit, and each byte is sent once", async () => {
  const agent = await startAgent();
  const { id } = await agent.shell("printf 0123456789", { open: false });
  expect((await agent.exit(id)).end).toBe(10);
  expect(agent.text(id)).toBe("");
  await agent.window(id, { limit: 4 });
  await agent.untilText(id, "0123");
  await agent.ping();
  expect(agent.text(id)).toBe("0123");
  await agent.window(id, { limit: 100 });
  await agent.untilText(id, "0123456789");
});

test("a seek goes back, stops at the oldest byte, and refuses offsets that do not exist yet", async () => {
  const agent = await startAgent();
  const { id } = await agent.spawn(["head", "-c", "600000", "/dev/zero"]);
  const { end } = await agent.exit(id);
  await agent.until("all output", () => agent.text(id).length === end);
  agent.events.length = 0;
  await agent.window(id, { acknowledged: end });
  const [entry] = await agent.processes();
  expect(entry).toMatchObject({ start: end - 262_144, acknowledged: end, end, exited: true });
  await agent.window(id, { seek: 0 });
  await agent.until("history", () => agent.text(id).length === 262_144);
  expect(agent.outputs(id)[0]?.offset).toBe(end - 262_144);
  const failure = (from: number, acknowledged: number) =>
    agent.failure(Type.window, u32(id), u8(1), u64(from), u64(acknowledged), u64(0));
  expect(await failure(end + 1, 0)).toBe(22);
  expect(await failure(0, end + 1)).toBe(22);
  expect(await agent.failure(Type.window, u32(id), u8(2), u64(0), u64(0), u64(0))).toBe(22);
  expect(await agent.failure(Type.window, u32(99), u8(0), u64(0), u64(0), u64(0))).toBe(3);
});

test("a program that prints a gigabyte without a reader blocks and costs the agent no memory", async () => {
  const agent = await startAgent();
  const before = residentKb(agent.child.pid as number);
  const { id } = await agent.shell("yes | head -c 1000000000", { open: false });
  const full = async () => (await agent.processes())[0]?.end;
  await expect.poll(full).toBe(1_048_576);
  await meanwhile(150);
  expect(await full()).toBe(1_048_576);
  expect(residentKb(agent.child.pid as number) - before).toBeLessThan(8192);
  await agent.window(id, { acknowledged: 500_000, limit: 0 });
  await expect.poll(full).toBe(1_548_576);
  await agent.signal(id, 9, 1);
  expect(await Promise.race([agent.exit(id), meanwhile(200)])).toBeUndefined();
  for (let acknowledged = 1_000_000; agent.exits(id).length === 0; acknowledged += 100_000) {
    await agent.window(id, { acknowledged: Math.min(acknowledged, (await full()) as number), limit: 0 });
  }
  expect(await agent.exit(id)).toMatchObject({ code: -1, signal: 9 });
});

test("a host that does not read costs the agent no memory", async () => {
  const agent = await startAgent();
  const before = residentKb(agent.child.pid as number);
  const { id } = await agent.shell("yes | head -c 100000000");
  agent.child.stdout?.pause();
  for (let count = 0; count < 300; count++) void agent.send(Type.ping, Buffer.alloc(100_000));
  await meanwhile(300);
  expect(residentKb(agent.child.pid as number) - before).toBeLessThan(16_384);
  agent.child.stdout?.resume();
  await agent.ping();
  await agent.signal(id, 9, 1);
});

test("characters are not split between chunks, and invalid ones do not delay output", async () => {
  const agent = await startAgent();
  const script = String.raw`printf 'a\342'; sleep 0.1; printf E >&2; sleep 0.1; printf '\202\254b\360\237'; sleep 0.1; printf '\230\200'; sleep 0.1; printf '\377\300x'; sleep 0.1; printf '\342\202'`;
  const { id } = await agent.shell(script);
  await agent.exit(id);
  const chunks = agent.outputs(id).map(({ stream, bytes }) => [stream, bytes.toString("hex")]);
  expect(chunks).toEqual([
    [1, "61"],
    [2, "45"],
    [1, "e282ac62"],
    [1, "f09f9880"],
    [1, "ffc078"],
    [1, "e282"],
  ]);
  agent.events.length = 0;
  await agent.window(id, { seek: 2, limit: 4 });
  await agent.ping();
  expect(agent.outputs(id)).toEqual([]);
  await agent.window(id, { limit: 6 });
  await agent.until("the character", () => agent.outputs(id).length > 0);
  expect(agent.text(id)).toBe("€b");
});

test("a long text of wide characters arrives complete, in chunks of complete characters", async () => {
  const agent = await startAgent();
  const { id } = await agent.shell(`yes "€uro 😀" | head -c 2000000`, { open: false });
  let limit = 0;
  let done = false;
  while (!done) {
    limit += 77_777;
    const received =
      agent.text(id).length === 0 ? 0 : agent.outputs(id).reduce((sum, output) => sum + output.bytes.length, 0);
    await agent.window(id, { acknowledged: received, limit });
    await meanwhile(2);
    done = agent.exits(id).length > 0 && received === (await agent.exit(id)).end;
  }
  const chunks = agent.outputs(id);
  for (const { bytes } of chunks.slice(0, -1)) expect(bytes.toString()).not.toContain("\uFFFD");
  expect(
    chunks.every(
      (chunk, index) =>
        index === 0 || chunk.offset === (chunks[index - 1]?.offset ?? 0) + (chunks[index - 1]?.bytes.length ?? 0),
    ),
  ).toBe(true);
  expect(
    Buffer.concat(chunks.map((chunk) => chunk.bytes)).equals(
      Buffer.from("€uro 😀\n".repeat(200_000)).subarray(0, 2_000_000),
    ),
  ).toBe(true);
});

test("streams that alternate byte by byte are bounded too, and continue when acknowledged", async () => {
  const agent = await startAgent();
  const script =
    "$|=1; for (1..9000) { syswrite(STDOUT,'a'); syswrite(STDERR,'b'); select(undef,undef,undef,0.0001) if $_%50==0 }";
  const { id } = await agent.spawn(["perl", "-e", script]);
  while (agent.exits(id).length === 0) {
    await agent.window(id, { acknowledged: agent.text(id).length });
    await meanwhile(5);
  }
  expect((await agent.exit(id)).end).toBe(18_000);
  await agent.until("all output", () => agent.text(id).length === 18_000);
  expect([agent.text(id, 1), agent.text(id, 2)]).toEqual(["a".repeat(9000), "b".repeat(9000)]);
});
