import { expect, test } from "vitest";
import type { FolderWatch } from "../../../src/backends/backend.ts";
import { Request } from "../../../src/backends/agent/frame-types.ts";
import { PayloadWriter } from "../../../src/backends/agent/payload.ts";
import { ScriptedAgent } from "./scripted-agent.ts";

const ENOSYS = 38;

async function watched(agent: ScriptedAgent, question: number, number: number) {
  const told: string[] = [];
  const opening: Promise<FolderWatch> = agent.client.files.watch("/w", {
    onChange: ({ kind, name, isFolder }) => void told.push(`${kind} ${name}${isFolder ? "/" : ""}`),
    onEnd: (why) => void told.push(`end: ${why}`),
  });
  await agent.untilAsked(question + 1);
  agent.answer(question, new PayloadWriter().u32(number).finish());
  return { told, watch: await opening };
}

test("all watchers of a folder are informed, and each is closed separately", async () => {
  const agent = new ScriptedAgent();
  const [first, second] = [await watched(agent, 0, 7), await watched(agent, 1, 7)];
  agent.tellChange(7, 1 | 32, "new");
  first.watch.close();
  first.watch.close();
  agent.tellChange(7, 2, "a");
  agent.tellChange(8, 2, "of nobody");
  expect(first.told).toEqual(["created new/"]);
  expect(second.told).toEqual(["created new/", "written a"]);
  await agent.untilAsked(3);
  expect(agent.asked.filter(({ type }) => type === Request.unwatch)).toHaveLength(1);
});

test("the end of a folder ends its watches, and closing one then sends nothing", async () => {
  const agent = new ScriptedAgent();
  const { told, watch } = await watched(agent, 0, 7);
  agent.tellChange(7, 4, "");
  agent.tellChange(7, 64, "");
  watch.close();
  expect(told).toEqual(["end: folder"]);
  expect(agent.asked).toHaveLength(1);
});

test("a moved folder, lost changes and the end of the sandbox end watches", async () => {
  const agent = new ScriptedAgent();
  const moved = await watched(agent, 0, 1);
  agent.tellChange(1, 8, "");
  expect(moved.told).toEqual(["end: folder"]);
  const lost = await watched(agent, 2, 2);
  agent.tellChange(0, 128, "");
  expect(lost.told).toEqual(["end: lost"]);
  const ended = await watched(agent, 4, 3);
  // A frame that breaks the protocol ends the sandbox.
  agent.tellChange(3, 3, "two kinds at once");
  expect(ended.told).toEqual(["end: sandbox"]);
  expect(agent.client.failure?.code).toBe("sandbox_failed");
});

test("a name with a slash, or one that is too long, ends the connection", async () => {
  for (const name of ["a/b", "x".repeat(256)]) {
    const agent = new ScriptedAgent();
    await watched(agent, 0, 1);
    agent.tellChange(1, 1, name);
    expect(agent.client.failure?.message).toContain("broke its protocol");
  }
});

test("an agent of an earlier release cannot watch, and the error explains it", async () => {
  const agent = new ScriptedAgent();
  const opening = agent.client.files.watch("/w", { onChange: () => {}, onEnd: () => {} });
  await agent.untilAsked(1);
  agent.refuse(0, ENOSYS);
  await expect(opening).rejects.toMatchObject({
    code: "not_supported",
    message: expect.stringContaining("earlier release"),
    hint: expect.stringContaining("Create a new sandbox"),
  });
});
