import { randomBytes } from "node:crypto";
import { expect, test } from "vitest";
import { startTestServer } from "../../../../../../test/kit/server/test-server.ts";
import { FilesClient } from "./support.ts";
import { eventually } from "../../../../../../test/kit/eventually.ts";

test("a file is written, read completely and in part, described and removed", async () => {
  const box = await FilesClient.create(await startTestServer());
  const content = randomBytes(1_000_000);
  expect((await box.write("/workspace/a b/c.bin", content)).status).toBe(404);
  expect((await box.write("/workspace/a b/c.bin", content, "&parents=true&mode=0640")).status).toBe(204);
  const whole = await box.read("/workspace/a b/c.bin");
  expect(whole.headers.get("content-type")).toBe("application/octet-stream");
  expect(Buffer.from(await whole.arrayBuffer()).equals(content)).toBe(true);
  const part = await box.read("/workspace/a b/c.bin", "&offset=999990&length=5");
  expect(Buffer.from(await part.arrayBuffer())).toEqual(content.subarray(999_990, 999_995));
  expect((await (await box.read("/workspace/a b/c.bin", "&offset=2000000")).arrayBuffer()).byteLength).toBe(0);
  const entry = { name: "c.bin", kind: "file", mode: 0o640, size_bytes: 1_000_000, link_target: null };
  expect(await box.stat("/workspace/a b/c.bin")).toMatchObject(entry);
  expect((await box.write("/workspace/a b/c.bin", "", "&mode=0600")).status).toBe(204);
  expect(await box.stat("/workspace/a b/c.bin")).toMatchObject({ mode: 0o600, size_bytes: 0 });
  expect((await box.call("DELETE", "/files?path=/workspace/a%20b")).status).toBe(400);
  expect((await box.call("DELETE", "/files?path=/workspace/a%20b&recursive=true")).status).toBe(204);
  expect(await box.names("/workspace")).toEqual([]);
});

test("folders are created, renamed and listed by name", async () => {
  const box = await FilesClient.create(await startTestServer());
  for (const path of ["/workspace/z", "/workspace/a/b", "/workspace/B"]) {
    expect((await box.call("POST", "/files/folder", { path })).status).toBe(204);
  }
  expect((await box.call("POST", "/files/folder", { path: "/workspace/no/way", parents: false })).status).toBe(404);
  expect((await box.call("POST", "/files/rename", { from: "/workspace/z", to: "/workspace/a/y" })).status).toBe(204);
  expect(await box.names("/workspace")).toEqual(["B", "a"]);
  expect(await box.names("/workspace/a")).toEqual(["b", "y"]);
});

test("failures inside have their own errors", async () => {
  const box = await FilesClient.create(await startTestServer());
  const failures = [
    ["GET", "/files?path=/workspace/absent", 404, "file_not_found"],
    ["GET", "/files?path=/workspace", 400, "bad_request"],
    ["GET", "/files/stat?path=/workspace/absent", 404, "file_not_found"],
    ["GET", "/files/list?path=/workspace/absent", 404, "file_not_found"],
    ["GET", "/tree?path=/workspace/absent", 404, "file_not_found"],
    ["DELETE", "/files?path=/workspace/absent", 404, "file_not_found"],
    ["GET", "/files?path=relative", 400, "bad_request"],
    ["GET", "/files", 400, "bad_request"],
    ["GET", "/files?path=/workspace&offset=-1", 400, "bad_request"],
  ] as const;
  for (const [method, path, status, code] of failures) {
    const answer = await box.call(method, path);
    expect([method, path, answer.status, answer.body.error.code]).toEqual([method, path, status, code]);
  }
  const denied = await box.write("/etc/passwd", "x");
  expect([denied.status, ((await denied.json()) as { error: { code: string } }).error.code]).toEqual([
    403,
    "permission_denied",
  ]);
  const json = await fetch(`${box.url}/files?path=/workspace/x`, {
    method: "PUT",
    headers: { "content-type": "application/json" },
    body: "{}",
  });
  expect(json.status).toBe(400);
});

test("a sandbox is in use while something is transferred", async () => {
  const server = await startTestServer();
  const box = await FilesClient.create(server);
  const sandbox = await server.live(box.id);
  const gate = Promise.withResolvers<void>();
  const slow = new ReadableStream({
    async start(controller) {
      controller.enqueue(new TextEncoder().encode("begun "));
      await gate.promise;
      controller.enqueue(new TextEncoder().encode("done"));
      controller.close();
    },
  });
  const writing = box.write("/workspace/slow", slow);
  const never = Number.MAX_SAFE_INTEGER;
  await eventually("it is being written", () => !sandbox.isIdle(never));
  gate.resolve();
  expect((await writing).status).toBe(204);
  expect(sandbox.isIdle(never)).toBe(true);
  expect(await (await box.read("/workspace/slow")).text()).toBe("begun done");
  await eventually("it is idle again", () => sandbox.isIdle(never));
});
