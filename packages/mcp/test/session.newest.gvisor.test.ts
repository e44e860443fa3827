import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { describe, expect, onTestFinished, test } from "vitest";
import { ServerProcess, whyNoEngine } from "../../../test/kit/server/server-process.ts";
import { temporaryFolder } from "../../../test/kit/temporary-folder.ts";
import { connect } from "./support/clients.ts";

const missing = whyNoEngine();
if (missing !== undefined) console.warn(`The test of MCP on gVisor is skipped: ${missing}`);

const AGENT = fileURLToPath(new URL("../../../examples/agent-that-rewinds/agent-over-mcp.ts", import.meta.url));

/** A program that counts in memory, one line at a time. */
const COUNTER = "import sys\nn = 0\nfor line in sys.stdin:\n  n += int(line)\n  print('total', n, flush=True)\n";

describe.skipIf(missing !== undefined)("MCP on gVisor", () => {
  test("an agent rewinds and returns with a variable in the memory of a program", async () => {
    const server = await ServerProcess.start({ store: await temporaryFolder() });
    const agent = await connect("2026-07-28", { url: server.url.replace("ws", "http") });
    const { sandbox_id } = await agent.done<{ sandbox_id: string }>("sandbox_open", { key: "counter" });
    await agent.done("file_write", { sandbox_id, path: "/tmp/counter.py", content: COUNTER });
    const started = { sandbox_id, command: "exec python3 -u /tmp/counter.py", background: true };
    const { process_id } = await agent.done<{ process_id: string }>("run", started);

    const offsets = new Map<string, number>([[sandbox_id, 0]]);
    const add = async (id: string, text: string): Promise<string> => {
      await agent.done("process_write", { sandbox_id: id, process_id, text: `${text}\n` });
      const read = { sandbox_id: id, process_id, offset: offsets.get(id) ?? 0, wait_seconds: 120 };
      const { output, next_offset } = await agent.done<{ output: string; next_offset: number }>("process_read", read);
      offsets.set(id, next_offset);
      return output;
    };
    expect(await add(sandbox_id, "7")).toBe("total 7\n");
    const afterSeven = offsets.get(sandbox_id) ?? 0;
    await agent.done("checkpoint", { sandbox_id, name: "seven", note: "the counter is at 7" });

    expect(await add(sandbox_id, "100")).toBe("total 107\n");
    await agent.done("run", { sandbox_id, command: "rm /tmp/counter.py; echo oops > /tmp/oops" });
    expect(await agent.done("diff", { sandbox_id, from: "seven" })).toMatchObject({
      changes: expect.arrayContaining([
        expect.objectContaining({ path: "/tmp/counter.py", change: "removed" }),
        expect.objectContaining({ path: "/tmp/oops", change: "added" }),
      ]),
    });

    const { before } = await agent.done<{ before: { checkpoint_id: string } }>("rewind", { sandbox_id, to: "seven" });
    offsets.set(sandbox_id, afterSeven);
    expect(await add(sandbox_id, "1")).toBe("total 8\n");
    expect(await agent.done("file_list", { sandbox_id, path: "/tmp" })).not.toMatchObject({
      entries: expect.arrayContaining([expect.objectContaining({ name: "oops" })]),
    });

    const forks = await agent.done<{ sandbox_ids: string[] }>("fork", { sandbox_id, count: 2 });
    const late = await agent.done<{ sandbox_ids: string[] }>("fork", { from: before.checkpoint_id });
    const [one = "", other = ""] = forks.sandbox_ids;
    for (const id of [one, other]) offsets.set(id, offsets.get(sandbox_id) ?? 0);
    const [back = ""] = late.sandbox_ids;
    offsets.set(back, afterSeven + "total 107\n".length);
    expect(await add(one, "10")).toBe("total 18\n");
    expect(await add(other, "20")).toBe("total 28\n");
    expect(await add(sandbox_id, "2")).toBe("total 10\n");
    expect(await add(back, "1000")).toBe("total 1107\n");

    await agent.done("sandbox_pause", { sandbox_id: one });
    expect(await add(one, "5")).toBe("total 23\n");
    const { text } = await agent.call("history", { sandbox_id });
    expect(text).toMatch(/^seven .*the counter is at 7 {2}<- the sandbox continues from here$/m);
  });

  test("examples/agent-that-rewinds promotes the passing fix, although its server is killed with -9", async () => {
    const place = { store: await temporaryFolder(), dataHome: await temporaryFolder() };
    let server = await ServerProcess.start(place);
    const url = server.url.replace(/^ws/, "http");
    const agent = spawn(process.execPath, [AGENT], {
      env: { ...process.env, SANDBOXER_URL: url },
      stdio: ["ignore", "pipe", "inherit"],
    });
    onTestFinished(() => void agent.kill("SIGKILL"));
    const ended = once(agent, "close");
    const said: string[] = [];
    for await (const line of createInterface(agent.stdout)) {
      said.push(line);
      if (!line.startsWith("forked")) continue;
      await server.killHard();
      server = await ServerProcess.start({ ...place, flags: ["--port", new URL(url).port] });
    }
    expect(await ended).toEqual([0, null]);
    const id = /^prepared {2}(\S+):/.exec(said[0] ?? "")?.[1];
    expect(said).toContain("fix 2     exit 0: 3 tests passed");
    expect(said.slice(-2)).toEqual([
      `kept      ${id}: 3 tests passed`,
      `rewound   ${id}: 200 minus 10 % is 180, not -1800`,
    ]);
  });
});
