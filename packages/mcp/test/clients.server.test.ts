import { startTestServer, type TestServer } from "@sandboxer/client/testing";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { connect, type Generation, type McpClient } from "./support/clients.ts";

const KEY = "a-key-for-tests";
const GENERATIONS: readonly Generation[] = ["2026-07-28", "2025-11-25", "former SDK"];
const CORE = ["sandbox_open", "run", "process_read", "file_read", "file_write", "file_edit", "file_list"];
const CORE_STATES = ["checkpoint", "diff", "rewind", "fork", "promote"];

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({ apiKeys: [KEY] });
});
afterAll(() => server.close());

/** The steps of an agent: it breaks something, sees the changes, and rewinds. */
async function expectRewind(client: McpClient, key: string): Promise<void> {
  const { sandbox_id } = await client.done<{ sandbox_id: string }>("sandbox_open", { key });
  await client.done("file_write", { sandbox_id, path: "/tmp/app/main.py", content: "print('good')\n" });
  await client.done("checkpoint", { sandbox_id, name: key, note: "works" });
  await client.done("file_edit", { sandbox_id, path: "/tmp/app/main.py", old_text: "good", new_text: "very bad" });
  expect(await client.done("diff", { sandbox_id, from: key })).toMatchObject({
    changes: [{ path: "/tmp/app/main.py", change: "changed" }],
  });
  await client.done("rewind", { sandbox_id, to: key });
  expect(await client.done("run", { sandbox_id, command: "cat /tmp/app/main.py" })).toMatchObject({
    output: "print('good')\n",
    exit_code: 0,
  });
  expect(await client.done("sandbox_open", { key })).toMatchObject({ sandbox_id, found: "existing" });
}

describe.each(GENERATIONS)("the official client (%s)", (generation) => {
  const revision = generation === "former SDK" ? "2025-11-25" : generation;

  test("rewinds a bad change over HTTP", async () => {
    const client = await connect(generation, { url: server.url, key: KEY });
    expect(client.revision).toBe(revision);
    expect(client.instructions).toContain("sandbox_open");
    await expectRewind(client, `http-${generation.replace(" ", "-")}`);
  });

  test("rewinds a bad change over stdio", async () => {
    const client = await connect(generation, { argv: ["--url", server.url], key: KEY });
    await expectRewind(client, `stdio-${generation.replace(" ", "-")}`);
  });
});

test("`--tools core` and /mcp?tools=core offer a part of the tools", async () => {
  const stdio = await connect("2026-07-28", { argv: ["--url", server.url, "--tools", "core"], key: KEY });
  const http = await connect("2026-07-28", { url: server.url, key: KEY, query: "?tools=core" });
  const names = async (client: McpClient) => (await client.tools()).map(({ name }) => name);
  expect(await names(stdio)).toEqual([...CORE, ...CORE_STATES]);
  expect(await names(http)).toEqual([...CORE, ...CORE_STATES]);
});

test("every tool has a schema of its answer and declares whether it changes anything", async () => {
  const client = await connect("2026-07-28", { url: server.url, key: KEY });
  const tools = await client.tools();
  expect(tools.length).toBeGreaterThan(15);
  for (const { name, outputSchema, annotations } of tools) {
    expect([name, outputSchema]).toEqual([name, expect.objectContaining({ type: "object" })]);
    const { readOnlyHint, destructiveHint } = annotations as Record<string, unknown>;
    expect([name, readOnlyHint === true || typeof destructiveHint === "boolean"]).toEqual([name, true]);
  }
});
