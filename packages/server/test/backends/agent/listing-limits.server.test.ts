import { Buffer } from "node:buffer";
import { expect, test } from "vitest";
import { PayloadWriter } from "../../../src/backends/agent/payload.ts";
import { ScriptedAgent } from "./scripted-agent.ts";

function page(more: boolean, entries: readonly { readonly name: string; readonly target: string }[]): Buffer {
  const payload = new PayloadWriter().u8(more ? 1 : 0).u32(entries.length);
  for (const { name, target } of entries) {
    payload.bytes(Buffer.from("l")).u32(0o777).u32(0).u32(0).u64(0).i64(0n).u64(1).u64(1).u32(1);
    payload.string(name).string(target);
  }
  return payload.finish();
}

async function listed(entry: { readonly name: string; readonly target: string }): Promise<unknown> {
  const agent = new ScriptedAgent();
  const listing = agent.client.rawFiles.list("/folder");
  await agent.untilAsked(1);
  agent.answer(0, page(false, [entry]));
  return await listing;
}

test("a name or a target that is longer than the system inside allows is refused", async () => {
  const [name, target] = ["n".repeat(255), "t".repeat(4096)];
  expect(await listed({ name, target })).toMatchObject([{ name, linkTarget: target }]);
  await expect(listed({ name: `${name}n`, target })).rejects.toThrow();
  await expect(listed({ name, target: `${target}t` })).rejects.toThrow();
});

test("a folder of long links is refused long before it reaches the maximum number of entries", async () => {
  const agent = new ScriptedAgent();
  const listing = agent.client.rawFiles.list("/folder");
  const ended = listing.then(
    () => "listed",
    (error: unknown) => error,
  );
  const links = Array.from({ length: 200 }, (_, index) => ({ name: `link${index}`, target: "t".repeat(4000) }));
  const pages = 100;
  let last: unknown;
  for (let number = 0; number < pages && last === undefined; number++) {
    last = await Promise.race([ended, agent.untilAsked(number + 1).then(() => undefined)]);
    if (last === undefined) agent.answer(number, page(number < pages - 1, links));
  }
  expect(await ended).toMatchObject({ code: "limit_reached", message: expect.stringContaining("/folder") });
  expect(agent.asked.length).toBeLessThan(50);
});
