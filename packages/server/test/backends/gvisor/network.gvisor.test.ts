import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:net";
import { createInterface } from "node:readline";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { NetworkPolicy } from "@sandboxer/protocol";
import type { SandboxHandle } from "../../../src/backends/backend.ts";
import { probeNetwork, type NetworkSupport } from "../../../src/backends/gvisor/network/network-support.ts";
import { recoverRunDirectories, type RunDirectory } from "../../../src/backends/gvisor/run-directory.ts";
import { Egress, type Refusal } from "../../../src/egress/egress.ts";
import { guardOf } from "../../../src/egress/guard.ts";
import { Outside, type OutsideOptions } from "../../../src/egress/outside.ts";
import { newRequest } from "../contract/context.ts";
import { eventually, python, readText, run, start } from "../contract/programs.ts";
import { copyImage } from "./support/copy-image.ts";
import { describeGvisor } from "./support/describe-gvisor.ts";
import { testEngine, type TestEngine } from "./support/engine.ts";
import { GvisorFixture } from "./support/fixture.ts";
import { NOTHING, processesWith, serverLeftovers } from "./support/leftovers.ts";
import { openGvisor } from "./support/open-backend.ts";
import {
  client,
  clients,
  datagram,
  FORBIDDEN,
  HOST_SIDE,
  listener,
  networkLeftovers,
  OUTSIDE,
  PATIENCE_MS,
  OutsideWorld,
  PORT,
  reachFromHost,
} from "./support/outside-world.ts";
import { meanwhile } from "../../../../../test/kit/meanwhile.ts";

const SEARCH_PATH = process.env["PATH"] ?? "";
const DOOMED_SERVER = new URL("support/doomed-server.ts", import.meta.url).pathname;
const OWN_ADDRESS =
  "import socket\ns = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\ns.connect(('203.0.113.2', 9))\nprint(s.getsockname()[0])";

const tested = testEngine();
const network: NetworkSupport =
  "missing" in tested
    ? { ok: false, reason: "no engine", remedy: "" }
    : await probeNetwork(tested.version, SEARCH_PATH);

/** Links are removed a moment after their sandboxes end. */
async function expectNoNetwork(instanceId: string): Promise<void> {
  expect(networkLeftovers(instanceId)).toMatchObject({ namespaces: [], tables: [] });
  await eventually(() => networkLeftovers(instanceId).links.length === 0, "the end of all links");
}

/** A program that holds two connections, and uses them again when a file appears. */
const holder = (address: string): string => `
import os, socket, time
s = socket.create_connection(("${address}", ${PORT}), timeout=5)
s.recv(100)
inner = socket.create_server(("127.0.0.1", 0))
near = socket.create_connection(inner.getsockname(), timeout=5)
far = inner.accept()[0]
def say(text):
    open("/workspace/new", "w").write(text)
    os.rename("/workspace/new", "/workspace/said")
say("held")
while not os.path.exists("/workspace/go"): time.sleep(0.05)
near.sendall(b"inside")
inside = far.recv(100).decode()
try:
    s.sendall(b"x")
    say(inside + " goes on, outside: " + repr(s.recv(1)))
except OSError as error:
    say(inside + " goes on, outside: " + type(error).__name__)
`;

const isTooOld = ({ version }: TestEngine): boolean => version.includes("20240729");

describeGvisor("network", (engine) => {
  if (!network.ok) refusal(engine, network);
  if (isTooOld(engine)) return;
  const why = network.ok ? "" : `, skipped: ${network.reason}`;
  describe.skipIf(!network.ok)(`that can be had${why}`, () => working(engine));
});

function refusal(engine: TestEngine, missing: NetworkSupport & { readonly ok: false }): void {
  describe(`that cannot be had: ${missing.reason}`, () => {
    const fixture = new GvisorFixture(engine, async () => ({ network: missing, networkMode: "namespace" }));

    test("a request is refused with the reason and the next step", async () => {
      expect(fixture.backend.capabilities.network).toBe(false);
      await expect(fixture.acquire({ network: "open" })).rejects.toMatchObject({
        code: "not_supported",
        message: expect.stringContaining(missing.reason),
        hint: expect.stringContaining(missing.remedy),
      });
    });

    if (!isTooOld(engine)) return;
    test("the reason is the engine's age", () => {
      expect(missing.reason).toContain(engine.version);
      expect(missing.remedy).toContain("setup --newest");
    });
  });
}

function working(engine: TestEngine): void {
  const outside = new OutsideWorld();
  beforeAll(() => outside.open());
  const fixture = new GvisorFixture(engine, async () => ({ network, networkMode: "namespace" }));
  afterAll(() => outside.close());

  const refused: Refusal[] = [];
  const egresses: Egress[] = [];
  afterAll(() => egresses.forEach((egress) => egress.close()));
  /** As the manager does. */
  const guard = async (handle: SandboxHandle, policy: NetworkPolicy, options: OutsideOptions = {}): Promise<Egress> => {
    const egress = new Egress({ outside: new Outside(options), policy, onRefused: (each) => refused.push(each) });
    egresses.push(egress);
    await handle.setNetwork?.(policy, guardOf(egress));
    return egress;
  };

  const reach = async (handle: SandboxHandle, address: string, port = PORT): Promise<string> =>
    (await run(handle, python(client(address, port, PATIENCE_MS)))).stdout.trim();
  const reachAll = async (handle: SandboxHandle, addresses: readonly string[], port = PORT): Promise<string[]> =>
    (await run(handle, python(clients(addresses, port)))).stdout.trim().split("\n");
  const allFailed = (addresses: readonly string[]): unknown[] => addresses.map(() => expect.stringMatching(/^failed/));
  const addressOf = async (handle: SandboxHandle): Promise<string> =>
    (await run(handle, python(OWN_ADDRESS))).stdout.trim();
  const said = (handle: SandboxHandle): Promise<string> => readText(handle, "/workspace/said").catch(() => "");
  const heardDatagram = async (handle: SandboxHandle): Promise<string> =>
    (await run(handle, python(datagram(OUTSIDE)))).stdout.trim();
  const listen = async (handle: SandboxHandle): Promise<void> => {
    await start(handle, python(listener(9000, "from inside")));
    await eventually(async () => (await reach(handle, "127.0.0.1", 9000)) === "from inside", "the listener");
  };

  test("a sandbox with a network reaches the outside, hidden behind the host; others do not", async () => {
    expect(fixture.backend.capabilities.network).toBe(true);
    const connected = await fixture.acquire({ network: "open" });
    const alone = await fixture.acquire();
    expect(await reach(connected, OUTSIDE)).toBe(`outside sees ${HOST_SIDE}`);
    expect(await reach(alone, OUTSIDE)).toMatch(/^failed/);
    await Promise.all([connected.destroy(), alone.destroy()]);
  });

  test("a server that does not allow networks refuses them", async () => {
    const { backend, close } = await openGvisor(engine, { networkMode: "off" });
    expect(backend.capabilities.network).toBe(false);
    await expect(backend.acquire(newRequest({ network: "open" }))).rejects.toMatchObject({
      code: "not_supported",
      hint: expect.stringContaining("--network-mode off"),
    });
    await close();
    expect(await probeNetwork(engine.version, "/nowhere")).toMatchObject({ ok: false, remedy: /iproute2/ });
  });

  test("the host, private networks and other sandboxes are unreachable", async () => {
    const [handle, other] = [await fixture.acquire({ network: "open" }), await fixture.acquire({ network: "open" })];
    await guard(handle, "open");
    const host = createServer((socket) => socket.end("from the host")).listen(0, "0.0.0.0");
    await once(host, "listening");
    const hostPort = (host.address() as { port: number }).port;
    const [own, others] = [await addressOf(handle), await addressOf(other)];
    const gateway = own.replace(/\d+$/, (last) => String(Number(last) - 1));
    await listen(other);

    expect(await reachFromHost(HOST_SIDE, hostPort, PATIENCE_MS)).toBe("from the host");
    const here = [HOST_SIDE, gateway];
    expect(await reachAll(handle, here, hostPort)).toEqual(allFailed(here));
    expect(await reachAll(handle, [others], 9000)).toEqual(allFailed([others]));
    for (const address of FORBIDDEN) expect(await reachFromHost(address, PORT, PATIENCE_MS)).toMatch(/^outside sees/);
    expect(await reachAll(handle, FORBIDDEN)).toEqual(allFailed(FORBIDDEN));
    expect(refused).toContainEqual({ name: FORBIDDEN[0], port: PORT, rule: "private address", address: FORBIDDEN[0] });
    expect(refused).toContainEqual(expect.objectContaining({ name: HOST_SIDE, rule: "address of the server" }));
    expect(await reach(handle, OUTSIDE)).toMatch(/^outside sees/);
    host.close();
    await Promise.all([handle.destroy(), other.destroy()]);
  });

  test("nobody reaches a sandbox, neither from outside nor from the host", async () => {
    const handle = await fixture.acquire({ network: "open" });
    await listen(handle);
    const own = await addressOf(handle);
    expect(await reach(handle, own, 9000)).toBe("from inside");
    expect(outside.reach(own, 9000)).toMatch(/^failed/);
    expect(await reachFromHost(own, 9000)).toMatch(/^failed/);
    await handle.destroy();
  });

  test("after a restore, also on another server, listeners and new connections work", async () => {
    const handle = await fixture.acquire({ network: "open" });
    await listen(handle);
    const image = await copyImage(await fixture.folder(), await fixture.save(handle));
    expect(await reach(handle, OUTSIDE)).toBe(`outside sees ${HOST_SIDE}`);
    await handle.destroy();

    const another = await openGvisor(engine, { network });
    for (const backend of [fixture.backend, another.backend]) {
      const restored = await backend.acquireFromSnapshot(newRequest({ network: "open" }), image);
      expect(await reach(restored, OUTSIDE)).toBe(`outside sees ${HOST_SIDE}`);
      expect(await reach(restored, "127.0.0.1", 9000)).toBe("from inside");
      expect(await reach(restored, await addressOf(restored), 9000)).toBe("from inside");
      expect(await reachAll(restored, FORBIDDEN)).toEqual(allFailed(FORBIDDEN));
      const again = await copyImage(await fixture.folder(), await fixture.save(restored, false));
      await restored.destroy();
      const second = await backend.acquireFromSnapshot(newRequest({ network: "open" }), again);
      expect(await reach(second, OUTSIDE)).toBe(`outside sees ${HOST_SIDE}`);
      await second.destroy();
    }
    await another.close();
    await expectNoNetwork(another.runDirectory.instanceId);
  });

  test("an open connection to the outside ends after a restore, and its program sees that; one inside continues", async () => {
    const handle = await fixture.acquire({ network: "open" });
    await start(handle, python(holder(OUTSIDE)));
    await eventually(async () => (await said(handle)) === "held", "the connection");
    const image = await copyImage(await fixture.folder(), await fixture.save(handle, false));
    await handle.destroy();
    const restored = await fixture.restore(image, { network: "open" });
    expect(await reach(restored, OUTSIDE)).toBe(`outside sees ${HOST_SIDE}`);
    await restored.files.write("/workspace/go", Buffer.from(""));
    await eventually(async () => (await said(restored)) !== "held", "the end of the connection");
    expect(await said(restored)).toBe("inside goes on, outside: BrokenPipeError");
    await restored.destroy();
  });

  test("a server that has only the proxy restores it without a network, for the proxy", async () => {
    const handle = await fixture.acquire({ network: "open" });
    expect(handle.ownNetwork).toBe(true);
    await listen(handle);
    const image = await copyImage(await fixture.folder(), await fixture.save(handle));
    await handle.destroy();
    const { backend, runDirectory, close } = await openGvisor(engine);
    for (const policy of ["open", "none"] as const) {
      const restored = await backend.acquireFromSnapshot(newRequest({ network: policy }), image);
      expect(restored.ownNetwork).toBe(false);
      expect(await reach(restored, OUTSIDE)).toMatch(/^failed/);
      expect(await reach(restored, "127.0.0.1", 9000)).toBe("from inside");
      const port = await restored.listen?.(0, (connection) => {
        void connection.write(Buffer.from("from the server")).then(() => connection.close());
      });
      expect(await reach(restored, "127.0.0.1", port)).toBe("from the server");
      const again = await copyImage(await fixture.folder(), await fixture.save(restored, false));
      await restored.destroy();
      const second = await fixture.restore(again, { network: "open" });
      expect(await reach(second, OUTSIDE)).toBe(`outside sees ${HOST_SIDE}`);
      await second.destroy();
    }
    await close();
    await expectNoNetwork(runDirectory.instanceId);
  });

  test("lists apply to names and addresses, change while it runs, and apply after a restore", async () => {
    const found: Record<string, string> = {
      "web.test": OUTSIDE,
      "evil.test": OUTSIDE,
      "inner.web.test": FORBIDDEN[0]!,
    };
    const resolve = async (name: string): Promise<string[]> => [found[name] ?? ""];
    const policy = { allow: [`web.test:${PORT}`, "*.web.test"] };
    const handle = await fixture.acquire({ network: policy });
    const egress = await guard(handle, policy, { resolve });
    expect(await readText(handle, "/etc/resolv.conf")).toBe("nameserver 10.213.255.253\n");
    expect(await reach(handle, OUTSIDE)).toBe("failed: ConnectionResetError");
    expect(await reachAll(handle, ["web.test", "evil.test", "inner.web.test"])).toEqual([
      `outside sees ${HOST_SIDE}`,
      "failed: gaierror",
      "failed: gaierror",
    ]);
    expect(await reach(handle, "web.test", 9)).toBe("failed: ConnectionResetError");
    const reported = [
      { name: OUTSIDE, port: PORT, rule: "not in allow" },
      { name: "evil.test", port: 53, rule: "not in allow (name lookup)" },
      { name: "inner.web.test", port: 53, rule: "private address (name lookup)", address: FORBIDDEN[0] },
      { name: "web.test", port: 9, rule: "not in allow" },
    ];
    expect(refused).toEqual(expect.arrayContaining(reported.map((each) => expect.objectContaining(each))));
    expect(await heardDatagram(handle)).toBe("failed: TimeoutError");

    // The helper is killed: another one replaces it.
    const helpers = (): string[] => processesWith(`divert sandboxer-${fixture.opened.runDirectory.instanceId}`);
    const [helper = ""] = helpers();
    process.kill(Number.parseInt(helper), "SIGKILL");
    await eventually(() => helpers().some((each) => each !== helper), "another helper");
    await eventually(async () => (await reach(handle, "web.test")) === `outside sees ${HOST_SIDE}`, "its connections");

    const change = async (next: NetworkPolicy): Promise<void> => {
      egress.setPolicy(next);
      await handle.setNetwork?.(next, guardOf(egress));
    };
    await change({ allow: [`${OUTSIDE}/32:${PORT}`] });
    expect(await heardDatagram(handle)).toBe("outside heard you");
    expect(await reach(handle, "evil.test")).toBe(`outside sees ${HOST_SIDE}`);
    await change("open");
    await start(handle, python(holder(OUTSIDE)));
    await eventually(async () => (await said(handle)) === "held", "the connection");
    await change("none");
    await handle.files.write("/workspace/go", Buffer.from(""));
    await eventually(async () => (await said(handle)) !== "held", "the end of the connection");
    expect(await said(handle)).toBe("inside goes on, outside: ConnectionResetError");
    expect(await reach(handle, OUTSIDE)).toBe("failed: ConnectionResetError");

    const image = await copyImage(await fixture.folder(), await fixture.save(handle, false));
    await handle.destroy();
    const restored = await fixture.restore(image, { network: policy });
    await guard(restored, policy, { resolve });
    expect(await reachAll(restored, ["web.test", "evil.test"])).toEqual([
      `outside sees ${HOST_SIDE}`,
      "failed: gaierror",
    ]);
    await restored.destroy();
  });

  test("nothing is left of ended sandboxes, nor of a closed server", async () => {
    const { backend, runDirectory, close } = await openGvisor(engine, { network });
    await backend.acquire(newRequest());
    await expectNoNetwork(runDirectory.instanceId);
    const handle = await backend.acquire(newRequest({ network: "open" }));
    expect(networkLeftovers(runDirectory.instanceId)).toMatchObject({
      namespaces: [expect.any(String)],
      links: [expect.any(String)],
      tables: [expect.any(String)],
    });
    await handle.destroy();
    const { tables } = networkLeftovers(runDirectory.instanceId);
    await eventually(() => {
      const { namespaces, links } = networkLeftovers(runDirectory.instanceId);
      return namespaces.length + links.length === 0;
    }, "the end of the link");
    expect(tables).toHaveLength(1);
    await backend.acquire(newRequest({ network: "open" }));
    await close();
    await expectNoNetwork(runDirectory.instanceId);
  });

  test.each([5, 40, 150, 400])("a server that is killed %i ms into a start leaves nothing either", async (afterMs) => {
    const [runParent, cacheDirectory] = [await fixture.folder(), await fixture.folder()];
    const living = await fixture.acquire({ network: "open" });
    const child = spawn(process.execPath, [DOOMED_SERVER, runParent, cacheDirectory, "network"], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
    const server = JSON.parse((await lines.next()).value ?? "{}") as RunDirectory;
    await lines.next();
    await meanwhile(afterMs);
    child.kill("SIGKILL");
    await once(child, "exit");

    expect(await recoverRunDirectories(runParent)).toEqual([server.instanceId]);
    expect(serverLeftovers(server)).toEqual(NOTHING);
    await expectNoNetwork(server.instanceId);
    expect(await reach(living, OUTSIDE)).toBe(`outside sees ${HOST_SIDE}`);
    await living.destroy();
  });
}
