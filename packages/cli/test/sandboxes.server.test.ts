import type { SandboxRecord } from "@sandboxer/protocol";
import { readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { startCli } from "./support/run-cli.ts";

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

test("create prints only the id on stdout; messages go to stderr", async () => {
  const cli = await startCli();
  const { code, out, err } = await cli(["create", "--name", "web", "--label", "team=ml", "--ttl", "1h"]);
  expect(code).toBe(0);
  expect(out).toMatch(/^[0-9a-f-]{36}\n$/);
  expect(err).toBe("web is running (fake).\n");
  const record = await cli.json<SandboxRecord>(["get", "web"]);
  expect(record).toMatchObject({ id: out.trim(), name: "web", labels: { team: "ml" }, state: "running" });
  expect(record.expires_at).not.toBeNull();
});

test("create --json prints the complete record with its token, and nothing else", async () => {
  const cli = await startCli();
  const { out, err } = await cli(["create", "--json", "--memory", "64"]);
  expect(err).toBe("");
  expect(JSON.parse(out)).toMatchObject({
    id: expect.stringMatching(UUID),
    token: expect.any(String),
    resources: { memory_mb: 64 },
  });
});

test("ls prints a table for people, ids for scripts and items for programs; filters apply", async () => {
  const cli = await startCli();
  const web = await cli.id(["create", "--name", "web", "--label", "team=ml"]);
  const other = await cli.id(["create"]);
  const { out } = await cli(["list"]);
  expect(out.split("\n")[0]).toMatch(/^ID +NAME +STATE +BACKEND +CREATED +EXPIRES +SERVER$/);
  expect(out).toMatch(new RegExp(`^${web.slice(0, 8)} +web +running +fake `, "m"));
  expect((await cli(["ls", "-q"])).out.trim().split("\n").toSorted()).toEqual([web, other].toSorted());
  expect((await cli(["ls", "--quiet", "--label", "team=ml"])).out).toBe(`${web}\n`);
  expect((await cli(["ls", "--quiet", "--limit", "1"])).out.trim().split("\n")).toHaveLength(1);
  const empty = await cli(["ls", "--state", "stored"]);
  expect(empty).toMatchObject({ code: 0, err: expect.stringContaining("No sandboxes found") });
  expect(await cli.json(["ls"])).toMatchObject({ items: [{ id: expect.any(String) }, { id: expect.any(String) }] });
});

test("ls lists damaged sandboxes with the unreadable file, and gc counts them", async () => {
  const cli = await startCli();
  const [web, other] = [await cli.id(["create", "--name", "web"]), await cli.id(["create"])];
  await cli(["checkpoint", web]);
  const versions = join(cli.server.store, web, ".head");
  const file = join(versions, readdirSync(versions).toSorted().at(-1) ?? "");
  writeFileSync(file, "");
  const listed = await cli(["ls"]);
  expect(listed).toMatchObject({ code: 0, err: expect.stringMatching(/is damaged.*Restore it from a backup/) });
  expect(listed.err).toContain(file);
  expect(listed.out).toMatch(new RegExp(`^${web.slice(0, 8)} +- +damaged `, "m"));
  expect((await cli(["ls", "-q"])).out).toBe(`${other}\n`);
  expect(await cli.json(["ls"])).toMatchObject({ items: [{ id: other }], damaged: [{ id: web, object: file }] });
  const got = await cli(["get", web]);
  expect(got).toMatchObject({ code: 7, err: expect.stringContaining(`The stored record ${file} is damaged`) });
  const collected = await cli(["gc", "--store", cli.server.store, "--data-directory", cli.folder]);
  expect(collected).toMatchObject({ code: 0, out: expect.stringContaining("  1  its head cannot be read\n") });
  expect(collected.out).toContain(
    `Damaged; restore these from a backup (docs/guides/damaged-records.md):\n  ${file}\n`,
  );
});

test("a target is a name, an id or a unique prefix; nothing is guessed", async () => {
  const cli = await startCli();
  const web = await cli.id(["create", "--name", "web-1"]);
  await cli.id(["create", "--name", "web-2"]);
  for (const given of ["web-1", web, web.slice(0, 12)]) {
    expect((await cli.json<SandboxRecord>(["get", given])).id).toBe(web);
  }
  const ambiguous = await cli(["rm", "web"]);
  expect(ambiguous.code).toBe(2);
  expect(ambiguous.out).toBe("");
  expect(ambiguous.err).toMatch(
    /^sandboxer: "web" is ambiguous: 2 match\.\n {2}Choose one sandbox: web-[12] .*web-[12]/,
  );
  const missing = await cli(["rm", "web-1", "wbe-2"]);
  expect(missing).toMatchObject({ code: 4, out: "" });
  expect(missing.err).toBe('sandboxer: There is no sandbox "wbe-2".\n  Did you mean web-2, web-1?\n');
  expect((await cli(["ls", "-q"])).out.trim().split("\n")).toHaveLength(2);
  const unknown = await cli.json(["get", "00000000-0000-4000-8000-000000000000"]);
  expect(unknown).toMatchObject({ error: { code: "sandbox_not_found" } });
});

test("update, extend-ttl, stats, reachability, expire, recreate and rm work", async () => {
  const cli = await startCli();
  const web = await cli.id(["create", "--name", "web", "--label", "a=1", "--label", "b=2"]);
  await cli.id(["update", "web", "--name", "site", "--label", "c=3", "--remove-label", "a", "--idle-timeout", "10m"]);
  expect(await cli.json(["get", "site"])).toMatchObject({ id: web, labels: { b: "2", c: "3" }, idle_timeout: 600 });
  expect((await cli(["update", "site"])).code).toBe(2);
  await cli.id(["update", "site", "--no-name"]);
  expect(await cli.json(["get", web])).toMatchObject({ name: null });

  expect(await cli.id(["extend-ttl", web, "--duration", "2h"])).toMatch(/^\d{4}-\d\d-\d\dT/);
  await cli.id(["update", web, "--ttl", "3h", "--on-expiry", "delete"]);
  expect((await cli(["get", web])).out).toMatch(/^expires +\S+ \(in .*\), then delete$/m);
  await cli.id(["update", web, "--no-ttl", "--on-expiry", "pause"]);
  expect(await cli.json(["get", web])).toMatchObject({ expires_at: null, on_expiry: "pause" });
  const wrong = await cli(["extend-ttl", web, "--duration", "4hours"]);
  expect(wrong).toMatchObject({ code: 2, out: "", err: expect.stringContaining("Write a positive integer") });

  expect((await cli(["stats"])).out).toMatch(/^ID +NAME +MEMORY +DISK +CPU\n/);
  const reached = await cli(["reachability", web]);
  expect(reached).toMatchObject({ code: 0, out: expect.stringMatching(/^reachable +yes\n/) });

  expect(await cli(["expire"])).toEqual({ code: 0, out: "", err: "No sandbox has expired.\n" });
  expect(await cli.id(["recreate", web])).toBe(web);
  expect(await cli(["destroy", web])).toEqual({ code: 0, out: `${web}\n`, err: "" });
  expect(await cli.json(["get", web])).toMatchObject({ state: "destroyed" });
  expect((await cli(["get", web.slice(0, 8)])).code).toBe(4);
  expect((await cli(["rm", web])).code).toBe(4);
});

test("checkpoint, attach and wait work", async () => {
  const cli = await startCli();
  const web = await cli.id(["create", "--name", "web"]);
  expect(await cli(["wait", "web"])).toEqual({ code: 0, out: "running\n", err: "" });
  expect(await cli.id(["checkpoint", "web"])).toBe(web);
  expect((await cli(["wait", "web", "--for", "paused"])).out).toBe("paused\n");
  expect((await cli(["ls"])).out).toMatch(/ web +paused /);
  expect((await cli(["get", "web"])).out).toMatch(/^state +paused$/m);
  for (const word of ["paused", "stored"]) {
    expect(await cli.json(["ls", "--state", word])).toMatchObject({ items: [{ id: web, state: "stored" }] });
  }
  const waiting = cli(["wait", "web", "--for", "running", "--timeout", "30s"]);
  const woken = await cli(["attach", "web"]);
  expect(woken).toMatchObject({ code: 0, out: `${web}\n` });
  expect((await waiting).out).toBe("running\n");
  expect((await cli(["wait", "web", "--for", "paused", "--timeout", "1s"])).code).toBe(11);
  const destroyed = cli(["wait", "web", "--for", "destroyed", "--timeout", "30s"]);
  const removed = await cli(["rm", "web"]);
  expect(removed).toMatchObject({ code: 0, out: `${web}\n`, err: expect.stringMatching(/^[\d.]+ (KiB|B) freed\.\n$/) });
  expect(await destroyed).toMatchObject({ code: 0, out: "destroyed\n" });
});

test("operations, events, timeline, wait and server show their records", async () => {
  const cli = await startCli();
  const web = await cli.id(["create", "--name", "web"]);
  const { items } = await cli.json<{ items: { id: string; kind: string }[] }>(["operations", "web"]);
  expect(items.map(({ kind }) => kind)).toEqual(["create"]);
  expect(await cli(["wait", "--operation", items[0]?.id ?? ""])).toEqual({ code: 0, out: "done\n", err: "" });
  expect((await cli(["wait", "--operation", "nothing"])).code).not.toBe(0);
  expect((await cli(["operations"])).out).toMatch(new RegExp(`${web.slice(0, 8)} +create done; `));
  expect((await cli(["timeline", "web"])).out).toMatch(
    /operation +create done;[\s\S]*sandbox\.state +from=creating to=running/,
  );
  const lines = (await cli(["events", "--json"])).out.trim().split("\n");
  const events = lines.map((line) => JSON.parse(line) as { type: string; cursor: string; sandbox_id: string | null });
  expect(events.map(({ type }) => type)).toContain("sandbox.state");
  expect((await cli(["events", "--since", events.at(-1)?.cursor ?? ""])).out).toBe("");
  expect((await cli(["backends"])).out).toMatch(/^fake \(default\) +ok /m);
  expect((await cli(["instances"])).out).toMatch(/alive \(this one\)/);
  expect((await cli(["server"])).out).toMatch(/^backend +fake\nstate +open\nsandboxes +1 of \d+\ndozing +0$/m);
  // The fake backend has no warm pool.
  expect(await cli.json(["server"])).toMatchObject({ sandboxes: 1, dozing: 0, warm_pool: null });
  expect((await cli(["version"])).out).toMatch(/^client +\d.*\nserver +\S+ at http:/);
});

test("events -f continues where the page ended, in the same form", async () => {
  const cli = await startCli();
  await cli.id(["create", "--name", "web"]);
  const before = (await cli(["events", "--json"])).out.trim().split("\n");
  const following = cli(["events", "--json", "-f", "--limit", String(before.length + 2)]);
  await cli.id(["create", "--name", "later"]);
  const lines = (await following).out.trim().split("\n");
  expect(lines.slice(0, before.length)).toEqual(before);
  expect(lines).toHaveLength(before.length + 2);
  expect(Object.keys(JSON.parse(lines.at(-1) ?? "") as object).toSorted()).toEqual(
    Object.keys(JSON.parse(lines[0] ?? "") as object).toSorted(),
  );
});

test("handoff moves a sandbox to another server of the store", async () => {
  const one = await startCli();
  const two = await startCli({ store: one.server.store });
  const web = await one.id(["create", "--name", "web"]);
  const moved = await one(["handoff", "web", "--to", two.server.url]);
  expect(moved).toMatchObject({ code: 0, out: `${web}\n` });
  expect(await two.json(["get", "web"])).toMatchObject({ state: "running", owner: { here: true } });
  expect(await one.json(["get", "web"])).toMatchObject({ owner: { here: false, url: two.server.url } });
  const nowhere = await one(["handoff", "web", "--to", "http://127.0.0.1:1"]);
  expect(nowhere.code).not.toBe(0);
});

test("api sends any request; failures are reported like all others", async () => {
  const cli = await startCli();
  const made = await cli(["api", "POST", "/v1/sandboxes", "--body", '{"name":"web"}']);
  expect(JSON.parse(made.out)).toMatchObject({ name: "web" });
  expect(JSON.parse((await cli(["api", "get", "/v1/sandboxes"])).out)).toMatchObject({ items: [{ name: "web" }] });
  expect(await cli(["api", "GET", "/v1/sandboxes/none"])).toMatchObject({ code: 4, out: "" });
  expect(await cli(["api", "GET", "/v1/nothing"])).toMatchObject({ code: 4, out: "" });
  expect(await cli(["api", "FETCH", "/v1/sandboxes"])).toMatchObject({ code: 2 });
});
