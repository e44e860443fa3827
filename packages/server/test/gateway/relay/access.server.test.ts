import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { KeyFile, keyFilePath } from "../../../src/gateway/access/key-file.ts";
import { systemClock } from "../../../src/support/clock.ts";
import { eventually } from "../../../../../test/kit/eventually.ts";
import { temporaryFolder } from "../../../../../test/kit/temporary-folder.ts";
import { startTestServer } from "../../../../../test/kit/server/test-server.ts";
import { ProcessSocket } from "../http/processes/process-socket.ts";
import { ticking } from "../http/processes/support.ts";
import { bearer, call, pair, RELAY } from "./support.ts";

const KEY = { apiKeys: ["the-key"] };

async function login(url: string, key: string): Promise<{ cookie: string; origin: string }> {
  const response = await fetch(`${url}/v1/login`, { method: "POST", headers: { ...bearer(key), origin: url } });
  const cookie = response.headers.get("set-cookie")?.split(";")[0] ?? "";
  return { cookie, origin: url };
}

test("the other server gets the caller's key, from whichever header", async () => {
  const { url } = await pair(KEY);
  const run = { shell: "echo ran" };
  for (const key of [bearer("the-key"), { "x-api-key": "the-key" }]) {
    expect((await call("POST", `${url}/exec`, run, { ...RELAY, ...key })).body["stdout"]).toBe("ran\n");
  }
  expect((await call("POST", `${url}/exec`, run, RELAY)).status).toBe(401);
  expect((await call("POST", `${url}/exec`, run, { ...RELAY, ...bearer("wrong") })).status).toBe(401);
});

test("a session's cookie is valid for the sandboxes of other servers too, and for handing one off", async () => {
  const { asked, owner, box, url } = await pair(KEY);
  const page = await login(asked.httpUrl, "the-key");
  const run = await call("POST", `${url}/exec`, { shell: "echo ran" }, { ...RELAY, ...page });
  expect(run.body["stdout"]).toBe("ran\n");
  const started = await call("POST", `${url}/exec`, { shell: "echo seen; read x", wait: false }, { ...RELAY, ...page });
  const socket = new ProcessSocket(`${url}/processes/${started.body.id}/attach?relay=allow`, { headers: page });
  await socket.when(() => socket.text === "seen\n", "output");
  // Through the owner, which sends the key along that it was shown.
  const here = await call("POST", `${url}/handoff`, { to: asked.httpUrl }, { ...RELAY, ...page });
  expect(here).toMatchObject({ status: 200, body: { sandbox: { owner: { url: asked.httpUrl } } } });
  const back = await call("POST", `${url}/handoff`, { to: owner.httpUrl }, page);
  expect(back).toMatchObject({ status: 200, body: { sandbox: { owner: { url: owner.httpUrl } } } });
  const without = await call("POST", `${url}/exec`, { shell: "true" }, { ...RELAY, cookie: page.cookie });
  expect(without.status).toBe(403);
  expect(box.id).not.toBe("");
});

test("a call that the scope of a key does not allow is not passed on", async () => {
  const folder = await temporaryFolder();
  const auditFile = join(await temporaryFolder(), "audit");
  const file = new KeyFile(folder, systemClock);
  const reader = (await file.create({ name: "reader", scope: "read" })).text;
  const user = (await file.create({ name: "user", scope: "use" })).text;
  const owner = await startTestServer({ access: { keyFile: keyFilePath(folder), auditFile } });
  const asked = await startTestServer({ store: owner.storeFolder ?? null, access: { keyFile: keyFilePath(folder) } });
  const made = await call("POST", `${owner.httpUrl}/v1/sandboxes`, {}, bearer(user));
  const url = `${asked.httpUrl}/v1/sandboxes/${made.body.id}`;
  const lookedAt = await call("GET", `${url}/stats`, undefined, { ...RELAY, ...bearer(reader) });
  expect(lookedAt.status).toBe(200);
  for (const shown of [bearer(reader), await login(asked.httpUrl, reader)]) {
    const refused = await call("POST", `${url}/exec`, { shell: "true" }, { ...RELAY, ...shown });
    expect([refused.status, refused.body.error.code]).toEqual([403, "permission_denied"]);
  }
  expect(await readFile(auditFile, "utf8")).not.toContain("refused");
  const started = await call("POST", `${url}/exec`, { shell: ticking, wait: false }, { ...RELAY, ...bearer(user) });
  const attach = `${url}/processes/${started.body.id}/attach?relay=allow`;
  await expect(new ProcessSocket(attach, { headers: bearer(reader) }).opened).rejects.toThrow("403");
  const socket = new ProcessSocket(attach, { headers: bearer(user) });
  await socket.event("attached");
  await file.revoke(user.split("_")[1] ?? "");
  await socket.closed;
  await eventually("its key is refused", async () => {
    const again = await call("POST", `${url}/exec`, { shell: "true" }, { ...RELAY, ...bearer(user) });
    return again.status === 401;
  });
});

test("a key that the other server does not have is distinguished from none", async () => {
  const owner = await startTestServer({ apiKeys: ["theirs"] });
  const asked = await startTestServer({ store: owner.storeFolder ?? null, apiKeys: ["ours"] });
  const { id } = (await call("POST", `${owner.httpUrl}/v1/sandboxes`, {}, bearer("theirs"))).body;
  const url = `${asked.httpUrl}/v1/sandboxes/${id}`;
  const answer = await call("GET", `${url}/stats`, undefined, { ...RELAY, ...bearer("ours") });
  expect([answer.status, answer.body.error.code]).toEqual([403, "permission_denied"]);
  expect(answer.body.error.details).toEqual({ url: owner.httpUrl, owner: owner.instances.instanceId });
});

test("a relayed caller is in the audit log of both servers", async () => {
  const folder = await temporaryFolder();
  const [here, there] = [join(folder, "here"), join(folder, "there")];
  const owner = await startTestServer({ ...KEY, access: { auditFile: there } });
  const asked = await startTestServer({
    ...KEY,
    store: owner.storeFolder ?? null,
    access: { auditFile: here },
  });
  const { id } = (await call("POST", `${owner.httpUrl}/v1/sandboxes`, {}, bearer("the-key"))).body;
  const url = `${asked.httpUrl}/v1/sandboxes/${id}`;
  await call("POST", `${url}/exec`, { shell: "true" }, { ...RELAY, ...bearer("the-key") });
  await call("DELETE", `${url}/files?path=%2Fnone`, undefined, { ...RELAY, ...bearer("the-key") });
  const linesOf = async (file: string) =>
    (await readFile(file, "utf8"))
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as Record<string, unknown>)
      .filter(({ what }) => what !== "createSandbox");
  const expected = [
    { who: "environment:1", what: "exec", sandbox_id: id, outcome: "ok" },
    { who: "environment:1", what: "removeFile", sandbox_id: id, outcome: "failed" },
  ];
  expect(await linesOf(here)).toMatchObject(expected);
  expect(await linesOf(there)).toMatchObject(expected);
  expect(await readFile(here, "utf8")).not.toContain("the-key");
});
