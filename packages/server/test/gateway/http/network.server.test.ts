import { once } from "node:events";
import { createServer, type AddressInfo } from "node:net";
import { type ExecResult, profileSchema, type SandboxNetworkRecord, type SandboxRecord } from "@sandboxer/protocol";
import { describe, expect, onTestFinished, test } from "vitest";
import { ProfileCatalog } from "../../../src/profiles/profile-catalog.ts";
import { FakeBackend } from "../../../src/backends/fake/index.ts";
import { startTestServer, type TestServer } from "../../../../../test/kit/server/test-server.ts";
import { type ErrorAnswer, HttpClient } from "./support.ts";

const PROXY = 3128;
const outside = { allowed: ["127.0.0.0/8"], resolve: async () => ["127.0.0.1"] };

async function webServer(): Promise<number> {
  const server = createServer((socket) => {
    socket.on("error", () => {}).once("data", () => socket.end("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"));
  }).listen(0, "127.0.0.1");
  onTestFinished(() => void server.close());
  await once(server, "listening");
  return (server.address() as AddressInfo).port;
}

/** The first line of what a program in the sandbox gets for a URL. */
async function get({ backend }: TestServer, id: string, name: string, port: number): Promise<string> {
  const program = backend.dial(id, PROXY);
  program.write(`GET http://${name}:${port}/ HTTP/1.1\r\nHost: ${name}\r\n\r\n`);
  const [first] = (await once(program, "data")) as [Buffer];
  program.destroy();
  return first.toString().split("\r\n")[0] ?? "";
}

const network = async (http: HttpClient, id: string): Promise<SandboxNetworkRecord> =>
  (await http.call<SandboxNetworkRecord>("GET", `/v1/sandboxes/${id}/network`)).body;
const exec = async (http: HttpClient, id: string, shell: string): Promise<ExecResult> =>
  (await http.call<ExecResult>("POST", `/v1/sandboxes/${id}/exec`, { shell })).body;
const set = (http: HttpClient, id: string, policy: unknown) =>
  http.call<SandboxRecord & ErrorAnswer>("PATCH", `/v1/sandboxes/${id}`, { network: policy });

describe("the network of a sandbox", () => {
  test("is that of the request, else the profile, else the server; the earlier name means open", async () => {
    const profile = profileSchema.parse({ name: "some", backends: ["fake"], network: { allow: ["PyPI.org"] } });
    const profiles = new ProfileCatalog([{ profile, file: "test", bundled: false, overrides: undefined }]);
    const http = new HttpClient(await startTestServer({ profiles, defaultNetwork: { deny: ["bad.example"] } }));
    const of = async (body: object) => (await http.create(body)).network;
    expect(await of({})).toEqual({ deny: ["bad.example"] });
    expect(await of({ profile: "some" })).toEqual({ allow: ["pypi.org"] });
    expect(await of({ profile: "some", network: "none" })).toBe("none");
    expect(await of({ network: "sandbox" })).toBe("open");
    expect(await of({ network: {} })).toBe("open");
    const refused = await http.call<ErrorAnswer>("POST", "/v1/sandboxes", { network: { allow: ["http://x"] } });
    expect(refused.status).toBe(400);
    expect(refused.body.error.message).toContain("*.domain");
    const word = await http.call<ErrorAnswer>("POST", "/v1/sandboxes", { network: "all" });
    expect(word.body.error.message).toContain('"none", "open"');
  });

  test("is the proxy, which new programs find in their environment, unless they set it themselves", async () => {
    const http = new HttpClient(await startTestServer());
    const show = "echo $HTTP_PROXY $https_proxy $NO_PROXY";
    const { id } = await http.create({ network: "open" });
    expect((await exec(http, id, show)).stdout).toBe(
      "http://127.0.0.1:3128 http://127.0.0.1:3128 localhost,127.0.0.1,::1\n",
    );
    const { id: own } = await http.create({ network: "open", env: { HTTP_PROXY: "mine" } });
    expect((await exec(http, own, show)).stdout).toMatch(/^mine http/);
    const { id: none } = await http.create();
    expect((await exec(http, none, show)).stdout.trim()).toBe("");
    expect(await network(http, none)).toMatchObject({ policy: "none", way: "none", sent_bytes: null });
  });

  test("changes while the sandbox runs, and applies after a pause, a fork, a rewind and on another server", async () => {
    const port = await webServer();
    const first = await startTestServer({ outside });
    const second = await startTestServer({ outside, store: first.storeFolder ?? null });
    const [here, there] = [new HttpClient(first), new HttpClient(second)];
    const { id } = await here.create();
    expect((await set(here, id, { allow: ["a.example"] })).body.network).toEqual({ allow: ["a.example"] });
    expect((await exec(here, id, "echo $HTTP_PROXY")).stdout).toContain("3128");
    expect(await get(first, id, "a.example", port)).toBe("HTTP/1.1 200 OK");
    expect(await get(first, id, "b.example", port)).toContain("403 Blocked");

    await here.call("POST", `/v1/sandboxes/${id}/snapshot`, { name: "before" });
    const fork = await here.call<{ items: SandboxRecord[] }>("POST", `/v1/sandboxes/${id}/fork`, { count: 1 });
    const child = fork.body.items[0]?.id ?? "";
    expect(await get(first, child, "a.example", port)).toBe("HTTP/1.1 200 OK");
    expect(await get(first, child, "b.example", port)).toContain("403 Blocked");
    const rewound = await here.call("POST", `/v1/sandboxes/${id}/rewind`, { snapshot_id: "before" });
    expect(rewound.status).toBe(200);
    expect(await get(first, id, "b.example", port)).toContain("403 Blocked");

    await here.call("POST", `/v1/sandboxes/${id}/checkpoint`);
    expect(await network(here, id)).toMatchObject({ policy: { allow: ["a.example"] }, way: null });
    expect((await set(here, id, { allow: ["b.example"] })).body.network).toEqual({ allow: ["b.example"] });
    await there.call("POST", `/v1/sandboxes/${id}/resume`);
    expect(await get(second, id, "b.example", port)).toBe("HTTP/1.1 200 OK");
    expect(await get(second, id, "a.example", port)).toContain("403 Blocked");
    expect((await set(there, id, "none")).body.network).toBe("none");
    expect(await get(second, id, "b.example", port)).toContain("403 Blocked by the network policy (network none)");
    expect((await exec(there, id, "echo $HTTP_PROXY")).stdout).toBe("\n");
  });

  test("counts bytes, and records refused connections once each, as events too", async () => {
    const port = await webServer();
    const server = await startTestServer({ outside });
    const http = new HttpClient(server);
    const { id } = await http.create({ network: { allow: ["a.example"] } });
    await get(server, id, "a.example", port);
    for (let count = 0; count < 3; count++) await get(server, id, "b.example", port);
    const seen = await network(http, id);
    expect(seen).toMatchObject({ way: "proxy", refused_total: 3 });
    expect(seen.refused).toMatchObject([{ name: "b.example", port, address: null, rule: "not in allow", count: 3 }]);
    expect(seen.sent_bytes).toBeGreaterThan(50);
    expect(seen.received_bytes).toBeGreaterThan(30);
    const events = await http.call<{ items: { type: string; data: object }[] }>("GET", `/v1/events?sandbox_id=${id}`);
    const refused = events.body.items.filter(({ type }) => type === "network.refused");
    expect(refused).toMatchObject([{ data: { name: "b.example", port, rule: "not in allow", count: 1 } }]);
  });

  test("is a hint for a failed program: a refused connection, or none at all", async () => {
    const server = await startTestServer({ outside });
    const http = new HttpClient(server);
    const { id } = await http.create();
    const failed = await exec(http, id, "echo curl: Could not resolve host: pypi.org >&2; exit 6");
    expect(failed.hint).toBe(
      `This sandbox has no network. Give it one with \`sandboxer network set ${id} open\`, or create it with --network open.`,
    );
    expect((await exec(http, id, "echo something else; exit 1")).hint).toBeNull();
    expect((await exec(http, id, "echo Could not resolve host")).hint).toBeNull();
    await set(http, id, { allow: ["a.example"] });
    const running = exec(http, id, "sleep 0.3; exit 1");
    await expect
      .poll(async () => (await network(http, id)).refused_total + (await get(server, id, "b.example", 80)).length)
      .toBeGreaterThan(1);
    expect((await running).hint).toContain("(a.example) refused b.example:80: not in allow.");
    expect((await exec(http, id, "exit 1")).hint).toBeNull();
  });

  test("is refused by name on a backend without networks, and is none there by default", async () => {
    const backend = new FakeBackend({ capabilities: { network: false } });
    const http = new HttpClient(await startTestServer({ backend, defaultNetwork: "open" }));
    expect((await http.create()).network).toBe("none");
    const refused = await http.call<ErrorAnswer>("POST", "/v1/sandboxes", { network: "open" });
    expect(refused.body.error.code).toBe("not_supported");
  });
});
