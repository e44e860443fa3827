import { startTestServer, type TestServer } from "@sandboxer/client/testing";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { connect, type McpClient } from "./support/clients.ts";

let server: TestServer;
let client: McpClient;
let sandbox_id: string;

beforeAll(async () => {
  server = await startTestServer();
});
afterAll(() => server.close());
beforeEach(async () => {
  client = await connect("2026-07-28", { url: server.url });
  ({ sandbox_id } = await client.done<{ sandbox_id: string }>("sandbox_open", { key: "shared" }));
});

const run = (command: string, more: object = {}) => client.done("run", { sandbox_id, command, ...more });

describe("run", () => {
  test("returns the output of both streams, the exit code, and a summary line", async () => {
    const { structured, text } = await client.call("run", { sandbox_id, command: "echo out; exit 3" });
    expect(structured).toMatchObject({ output: "out\n", exit_code: 3, state: "exited", left_out: null });
    expect(text).toBe("out\n[exit code 3]");
  });

  test("the stdin of a command is empty", async () => {
    expect(await run("cat")).toMatchObject({ exit_code: 0, output: "" });
    expect(await run("cat", { stdin: "given" })).toMatchObject({ output: "given" });
  });

  test("output beyond the budget keeps its beginning and its end, and the middle can be read by offset", async () => {
    const content = Array.from({ length: 2000 }, (_, index) => `${index + 1}\n`).join("");
    await client.done("file_write", { sandbox_id, path: "/tmp/numbers", content });
    const answer = await run("cat /tmp/numbers", { max_output_bytes: 512 });
    const { output, left_out, process_id } = answer as {
      output: string;
      left_out: { from: number };
      process_id: string;
    };
    expect(output).toMatch(/^1\n2\n/);
    expect(output).toMatch(/\n1999\n2000\n$/);
    expect(output.length).toBeLessThan(700);
    const read = { sandbox_id, process_id, offset: left_out.from, max_output_bytes: 256 };
    const middle = await client.done<{ output: string; next_offset: number; more: boolean }>("process_read", read);
    expect(middle).toMatchObject({ more: true, next_offset: left_out.from + 256 });
    expect(content.slice(left_out.from)).toMatch(new RegExp(`^${middle.output}`));
  });

  test("a long command is returned as a process, which can be read, written to and stopped", async () => {
    const started = await run("read line; echo got $line; sleep 600", { background: true });
    expect(started).toMatchObject({ state: "running", exit_code: null });
    const { process_id } = started;
    await client.done("process_write", { sandbox_id, process_id, text: "a line\n" });
    const read = { sandbox_id, process_id, wait_seconds: 60 };
    expect(await client.done("process_read", read)).toMatchObject({ output: "got a line\n", state: "running" });
    const info = await client.done("sandbox_info", { sandbox_id });
    expect(info["processes"]).toContainEqual(expect.objectContaining({ process_id, state: "running" }));
    await client.done("process_stop", { sandbox_id, process_id });
    const end = { ...read, offset: "got a line\n".length };
    expect(await client.done("process_read", end)).toMatchObject({ state: "exited", signal: "SIGTERM", more: false });
  });

  test("returns after the wait, and the command keeps running", async () => {
    const { text, structured } = await client.call("run", { sandbox_id, command: "sleep 600", wait_seconds: 0.05 });
    expect(text).toContain("still running as process");
    await client.done("process_stop", { sandbox_id, process_id: structured["process_id"], signal: "SIGKILL" });
  });

  test("the same request_id finds the first process, and another command under it is refused", async () => {
    const request = { sandbox_id, command: "echo once >> /tmp/count; cat /tmp/count", request_id: "r1" };
    const first = await client.done("run", request);
    expect(first).toMatchObject({ output: "once\n" });
    expect(await client.done("run", request)).toMatchObject({ process_id: first["process_id"], output: "once\n" });
    const other = await client.call("run", { ...request, command: "echo other" });
    expect(other).toMatchObject({ isError: true, meta: { "sandboxer/error": { code: "bad_request" } } });
  });

  test("needs a command, or code with its language", async () => {
    for (const wrong of [{}, { command: "ls", code: "x", language: "python" }, { code: "x" }, { language: "python" }]) {
      const { isError, text } = await client.call("run", { sandbox_id, ...wrong });
      expect([isError, text]).toEqual([
        true,
        expect.stringContaining("Give either command, or code with its language."),
      ]);
    }
  });
});

describe("files", () => {
  test("a long file is read in parts that do not cut characters", async () => {
    const content = "häßlich ".repeat(100);
    await client.done("file_write", { sandbox_id, path: "/tmp/long", content });
    let text = "";
    for (let offset: number | null = 0; offset !== null;) {
      const input = { sandbox_id, path: "/tmp/long", offset, max_bytes: 257 };
      const part: { content: string; next_offset: number | null; encoding: string } = await client.done(
        "file_read",
        input,
      );
      expect(part.encoding).toBe("utf8");
      text += part.content;
      offset = part.next_offset;
    }
    expect(text).toBe(content);
  });

  test("bytes that are not text are read and written in base64", async () => {
    const content = Buffer.from([0, 255, 128, 7]).toString("base64");
    await client.done("file_write", { sandbox_id, path: "/tmp/bytes", content, encoding: "base64" });
    expect(await client.done("file_read", { sandbox_id, path: "/tmp/bytes" })).toMatchObject({
      content,
      encoding: "base64",
      next_offset: null,
    });
  });

  test("an edit that does not match exactly once changes nothing, and returns the next step", async () => {
    const path = "/tmp/edited";
    await client.done("file_write", { sandbox_id, path, content: "a b a" });
    const edit = (old_text: string, more = {}) =>
      client.call("file_edit", { sandbox_id, path, old_text, new_text: "$&", ...more });
    expect((await edit("a")).text).toContain("old_text occurs 2 times in /tmp/edited.\nNext step: Include more");
    expect((await edit("c")).text).toContain("Next step: Read the file with file_read");
    expect(await edit("b")).toMatchObject({ isError: false, structured: { replaced: 1 } });
    expect(await edit("a", { replace_all: true })).toMatchObject({ structured: { replaced: 2 } });
    expect(await client.done("file_read", { sandbox_id, path })).toMatchObject({ content: "$& $& $&" });
  });

  test("a folder is listed in parts", async () => {
    for (const name of ["a", "b", "c"]) {
      await client.done("file_write", { sandbox_id, path: `/tmp/folder/${name}`, content: name });
    }
    const list = { sandbox_id, path: "/tmp/folder", limit: 2 };
    const first = await client.done("file_list", list);
    expect(first).toMatchObject({ entries: [{ name: "a" }, { name: "b" }], total: 3, next_offset: 2 });
    expect(await client.done("file_list", { ...list, offset: 2 })).toMatchObject({
      entries: [{ name: "c" }],
      next_offset: null,
    });
  });
});

describe("states", () => {
  test("a rewind saves the current state first, so that it can be undone", async () => {
    const { checkpoint_id } = await client.done("checkpoint", { sandbox_id, name: "early", note: "nothing yet" });
    await run("echo later > /tmp/later");
    const { before } = await client.done<{ before: { checkpoint_id: string } }>("rewind", { sandbox_id, to: "early" });
    expect(await run("ls /tmp/later")).not.toMatchObject({ exit_code: 0 });
    const { structured, text } = await client.call("history", { sandbox_id });
    expect(structured).toMatchObject({ based_on: checkpoint_id });
    expect(text).toMatch(/^early \(.*\) .* bytes: nothing yet {2}<- the sandbox continues from here$/m);
    expect(text).toContain("before the rewind to early");
    await client.done("rewind", { sandbox_id, to: before.checkpoint_id, keep_present: false });
    expect(await run("cat /tmp/later")).toMatchObject({ output: "later\n" });
  });

  test("forks start from a sandbox or a checkpoint, and record their origin", async () => {
    await run("echo base > /tmp/base");
    const forked = await client.done<{ sandbox_ids: string[]; checkpoint_id: string }>("fork", {
      sandbox_id,
      count: 2,
    });
    const {
      sandbox_ids: [one = ""],
    } = forked;
    expect(forked.sandbox_ids).toHaveLength(2);
    expect(await client.done("run", { sandbox_id: one, command: "cat /tmp/base" })).toMatchObject({ output: "base\n" });
    const again = await client.done<{ sandbox_ids: string[] }>("fork", { from: forked.checkpoint_id });
    const { checkpoints } = await client.done<{ checkpoints: object[] }>("history", {
      sandbox_id: again.sandbox_ids[0],
    });
    expect(checkpoints).toContainEqual(expect.objectContaining({ checkpoint_id: forked.checkpoint_id, sandbox_id }));
    for (const id of [...forked.sandbox_ids, ...again.sandbox_ids]) {
      expect(await client.done("sandbox_destroy", { sandbox_id: id })).toEqual({ deleted: id });
    }
  });

  test("a promoted fork gives its state to the original, and the others can be deleted", async () => {
    const { sandbox_id: original } = await client.done<{ sandbox_id: string }>("sandbox_open", { max_loss: "30s" });
    const { sandbox_ids } = await client.done<{ sandbox_ids: string[] }>("fork", { sandbox_id: original, count: 2 });
    const [winner = "", loser = ""] = sandbox_ids;
    await client.done("file_write", { sandbox_id: winner, path: "/tmp/winner", content: "won" });
    const promoted = await client.done<{ before: string; deleted: string[] }>("promote", {
      winner,
      discard_others: true,
    });
    expect(promoted).toMatchObject({ sandbox_id: original, not_deleted: [] });
    expect(promoted.deleted.toSorted()).toEqual([winner, loser].toSorted());
    expect(await client.done("file_read", { sandbox_id: original, path: "/tmp/winner" })).toMatchObject({
      content: "won",
    });
    await client.done("rewind", { sandbox_id: original, to: promoted.before, keep_present: false });
    expect(await client.call("file_read", { sandbox_id: original, path: "/tmp/winner" })).toMatchObject({
      isError: true,
    });
    const { text } = await client.call("promote", { winner: original });
    expect(text).toContain("Next step: Promote a sandbox that fork has created.");
    await client.done("sandbox_destroy", { sandbox_id: original });
  });

  test("a diff is truncated to its limit, and continues from an offset", async () => {
    await client.done("checkpoint", { sandbox_id, name: "before-many" });
    await run("for i in 1 2 3; do echo $i > /tmp/many-$i; done");
    const first = await client.done("diff", { sandbox_id, from: "before-many", limit: 2 });
    expect(first).toMatchObject({
      added: 3,
      changes: [{ path: "/tmp/many-1" }, { path: "/tmp/many-2" }],
      next_offset: 2,
    });
    const rest = await client.done("diff", { sandbox_id, from: "before-many", limit: 2, offset: 2 });
    expect(rest).toMatchObject({ changes: [{ path: "/tmp/many-3" }], next_offset: null });
  });

  test("a paused sandbox is shown without resuming it, and resumes when it is used", async () => {
    await run("echo kept > /tmp/kept");
    expect(await client.done("sandbox_pause", { sandbox_id })).toMatchObject({ state: "stored" });
    expect(await client.done("sandbox_pause", { sandbox_id })).toMatchObject({ state: "stored" });
    expect(await client.done("sandbox_info", { sandbox_id })).toMatchObject({ state: "stored" });
    expect(await run("cat /tmp/kept")).toMatchObject({ output: "kept\n" });
  });

  test("a sandbox never shows its token", async () => {
    const { text } = await client.call("sandbox_open", { request_id: "new" });
    expect(text).not.toContain("token");
    const { sandbox_id: id } = JSON.parse(text) as { sandbox_id: string };
    expect(await client.done("sandbox_open", { request_id: "new" })).toMatchObject({ sandbox_id: id, found: "new" });
    await client.done("sandbox_destroy", { sandbox_id: id });
  });
});

test("a port has a URL that opens it without a key", async () => {
  const { url } = await client.done<{ url: string }>("preview_url", { sandbox_id, port: 8000 });
  expect(url).toContain(`8000-${sandbox_id}.localhost`);
});

test("files and histories are resources", async () => {
  await client.done("file_write", { sandbox_id, path: "/tmp/a folder/ä.txt", content: "text" });
  const uri = `sandbox://${sandbox_id}/files/tmp/a%20folder/${encodeURIComponent("ä.txt")}`;
  expect(await client.read(uri)).toMatchObject({ mimeType: "text/plain", text: "text" });
  await expect(client.read(`sandbox://${sandbox_id}/files/tmp/missing`)).rejects.toThrow("Check the path inside");
  const history = `sandbox://${sandbox_id}/history`;
  expect(await client.resources()).toContainEqual(expect.objectContaining({ uri: history }));
  expect(JSON.parse((await client.read(history))["text"] as string)).toHaveProperty("checkpoints");
});

test("errors name the next step in the words of the tools", async () => {
  expect((await client.call("run", { sandbox_id: "missing", command: "ls" })).text).toBe(
    'There is no sandbox "missing".\nNext step: Open one with sandbox_open, and use its sandbox_id.',
  );
  const { text, meta } = await client.call("rewind", { sandbox_id, to: "missing" });
  expect(text).toContain("Next step: Take a checkpoint first, or use the id or name of one that history lists.");
  expect(meta).toMatchObject({ "sandboxer/error": { code: "snapshot_not_found" } });
});
