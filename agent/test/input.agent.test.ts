import { expect, test } from "vitest";
import { startAgent } from "./support/agent.ts";
import { Type, u32 } from "./support/wire.ts";
import { meanwhile } from "../../test/kit/meanwhile.ts";

test("input arrives, and closing it ends the reader", async () => {
  const agent = await startAgent();
  const { id } = await agent.spawn(["cat"]);
  await agent.stdin(id, "");
  await agent.stdin(id, "one ");
  await agent.stdin(id, "two");
  await agent.call(Type.stdinClose, u32(id));
  await agent.call(Type.stdinClose, u32(id));
  expect(await agent.exit(id)).toMatchObject({ code: 0, end: 7 });
  expect(agent.text(id)).toBe("one two");
  expect(await agent.failure(Type.stdin, u32(id), Buffer.from("x"))).toBe(32);
  expect(await agent.failure(Type.stdin, u32(55), Buffer.from("x"))).toBe(3);
});

test("a large input to a slow reader is acknowledged when it is in the pipe; a second one meanwhile is EBUSY", async () => {
  const agent = await startAgent();
  const { id } = await agent.spawn(["md5sum"]);
  await agent.signal(id, 19);
  const bytes = Buffer.alloc(1_000_000, "abc");
  let done = false;
  const sent = agent.stdin(id, bytes).then(() => (done = true));
  await agent.ping();
  expect(await agent.failure(Type.stdin, u32(id), Buffer.from("x"))).toBe(16);
  await agent.call(Type.stdinClose, u32(id));
  await meanwhile(100);
  expect(done).toBe(false);
  await agent.signal(id, 18);
  await sent;
  await agent.exit(id);
  const { createHash } = await import("node:crypto");
  expect(agent.text(id)).toContain(createHash("md5").update(bytes).digest("hex"));
});

test("EPIPE when the reader closes, when the process exits, and when there is no stdin", async () => {
  const agent = await startAgent();
  const closes = await agent.shell("exec <&-; echo closed; sleep 60");
  await agent.untilText(closes.id, "closed");
  expect(await agent.failure(Type.stdin, u32(closes.id), Buffer.from("x"))).toBe(32);
  const exits = await agent.shell("sleep 0.2");
  expect(await agent.failure(Type.stdin, u32(exits.id), Buffer.alloc(900_000))).toBe(32);
  const none = await agent.shell("cat; echo end", { input: false });
  expect(await agent.failure(Type.stdin, u32(none.id), Buffer.from("x"))).toBe(32);
  await agent.exit(none.id);
  expect(agent.text(none.id)).toBe("end\n");
});
