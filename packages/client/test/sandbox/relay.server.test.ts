import { describe, expect, onTestFinished, test, vi } from "vitest";
import { Sandbox, Sandboxer, type ConnectionState, type OutputChunk } from "../../src/index.ts";
import { failure, scriptedServer, type ScriptedAnswer } from "../support/scripted-server.ts";
import { server } from "../support/server.ts";

/** A client that talks to one server, and records every requested address. */
function watched(url: string): { client: Sandboxer; addresses: string[] } {
  const addresses: string[] = [];
  vi.stubGlobal(
    "WebSocket",
    class extends globalThis.WebSocket {
      constructor(address: string | URL, protocols?: string | string[]) {
        super(address, protocols);
        addresses.push(String(address));
      }
    },
  );
  onTestFinished(() => void vi.unstubAllGlobals());
  const fetch: typeof globalThis.fetch = (input, init) => {
    addresses.push(String(input));
    return globalThis.fetch(input, init);
  };
  return { client: new Sandboxer({ url, relay: true, fetch, retry: { firstDelayMs: 1 } }), addresses };
}

describe("a client of one server works with the sandboxes of another", () => {
  test("commands, files and long calls work", async () => {
    const owner = await server();
    const here = await server({ store: owner.store });
    const { client, addresses } = watched(here.url);
    const { id } = await Sandbox.create({ url: owner.url });
    const sandbox = await Sandbox.attach(id, { client });
    expect((await sandbox.exec("echo $((6*7))")).stdout).toBe("42\n");
    const content = new Uint8Array(3_000_000).map((_, index) => index);
    await sandbox.files.write("/workspace/data", new Blob([content]).stream());
    expect(Buffer.compare(await sandbox.files.read("/workspace/data"), content)).toBe(0);
    const states: string[] = [];
    const snapshot = await sandbox.snapshot({ onProgress: ({ state }) => states.push(state) });
    expect([snapshot.sandboxId, states.at(-1)]).toEqual([id, "done"]);
    expect(await sandbox.refresh()).toMatchObject({ owner: { url: owner.url } });
    expect(addresses.filter((address) => !address.replace(/^ws/, "http").startsWith(here.url))).toEqual([]);
  });

  test("a terminal survives handoffs with every byte of both directions", async () => {
    const owner = await server();
    const here = await server({ store: owner.store });
    const { client, addresses } = watched(here.url);
    const sandbox = await Sandbox.create({ client });
    const states: ConnectionState[] = [];
    const terminal = await sandbox.pty({
      command: "while read x; do echo got $x; done",
      onConnection: (state) => states.push(state),
    });
    const seen: OutputChunk[] = [];
    const text = (): string => Buffer.concat(seen.map(({ data }) => data)).toString();
    const reading = (async () => {
      for await (const chunk of terminal.chunks()) {
        expect(chunk.offset - chunk.data.length).toBe(seen.at(-1)?.offset ?? 0);
        seen.push(chunk);
      }
    })();
    const count = (wanted: ConnectionState): number => states.filter((state) => state === wanted).length;
    let moves = 0;
    let line = 0;
    const type = async (count: number): Promise<void> => {
      for (const end = line + count; line < end; line += 1) await terminal.write(`line ${line}\n`);
    };
    await type(20);
    for (const to of [owner.url, here.url, owner.url]) {
      const typing = type(40);
      await sandbox.handoff(to);
      await typing;
      await vi.waitFor(() => expect(text()).toContain(`got line ${line - 1}\r\n`), 10_000);
      moves += 1;
      await vi.waitFor(() => expect([count("moving"), states.at(-1)]).toEqual([moves, "attached"]), 60_000);
      expect(await sandbox.refresh()).toMatchObject({ owner: { url: to } });
    }
    terminal.closeStdin();
    await reading;
    const answers = text()
      .split("\r\n")
      .filter((each) => each.startsWith("got "));
    expect(answers).toEqual(Array.from({ length: line }, (_, index) => `got line ${index}`));
    expect([states[0], count("lost")]).toEqual(["attached", 0]);
    expect(addresses.filter((address) => !address.replace(/^ws/, "http").startsWith(here.url))).toEqual([]);
  });

  test("if an owner ends in the middle, the sandbox is resumed here, and its process keeps running", async () => {
    const owner = await server();
    const here = await server({ store: owner.store });
    const { client } = watched(here.url);
    const { id } = await Sandbox.create({ url: owner.url });
    const sandbox = await Sandbox.attach(id, { client });
    const process = await sandbox.spawn("i=0; while [ $i -lt 300 ]; do i=$((i+1)); echo tick $i; sleep 0.01; done");
    const lines: string[] = [];
    let draining: Promise<void> | undefined;
    for await (const each of process.lines()) {
      lines.push(each);
      if (lines.length === 20) draining = owner.drain();
    }
    expect(lines).toEqual(Array.from({ length: 300 }, (_, index) => `tick ${index + 1}`));
    expect(await sandbox.refresh()).toMatchObject({ owner: { url: here.url } });
    await draining;
  });
});

const RECORD = { status: 200, body: { id: "s", state: "running" } } satisfies ScriptedAnswer;
const STATS = { status: 200, body: { memory_bytes: 1, disk_bytes: 2, cpu_ms: 3 } } satisfies ScriptedAnswer;
const HELD = failure(409, "lease_held", { url: "http://127.0.0.1:9" });

/** The requests after the handle was created. */
async function asked(script: ScriptedAnswer[], options = {}): Promise<{ outcome: unknown; paths: string[] }> {
  const scripted = await scriptedServer(RECORD, ...script);
  const client = new Sandboxer({ url: scripted.url, relay: true, retry: { firstDelayMs: 1, attempts: 2 } });
  const sandbox = await Sandbox.attach("s", { client, ...options });
  const outcome = await sandbox.stats().catch((error: unknown) => error);
  expect(scripted.requests.map(({ headers }) => headers["sandboxer-relay"])).not.toContain(undefined);
  return { outcome, paths: scripted.requests.slice(1).map(({ path }) => path.replace("/v1/sandboxes/s/", "")) };
}

describe("a relaying server's error about the owner", () => {
  test("if it had the sandbox a moment ago, the call is repeated", async () => {
    expect((await asked([HELD, HELD, STATS])).paths).toEqual(["stats", "stats", "stats"]);
  });

  test("if it has no address, or the server cannot relay, the sandbox is requested", async () => {
    expect((await asked([failure(409, "lease_held", { url: null }), RECORD, STATS])).paths).toEqual([
      "stats",
      "resume",
      "stats",
    ]);
    expect((await asked([HELD, HELD, HELD, HELD, HELD, RECORD, STATS])).paths.slice(-2)).toEqual(["resume", "stats"]);
  });

  test("if it is unreachable, or refuses the key, the sandbox is requested", async () => {
    const away = failure(503, "server_unreachable", { owner: "x", url: "http://127.0.0.1:9", reached: false });
    expect((await asked([away, away, RECORD, STATS])).paths).toEqual(["stats", "stats", "resume", "stats"]);
    const refused = failure(403, "permission_denied", { owner: "x", url: "http://127.0.0.1:9" });
    expect((await asked([refused, RECORD, STATS])).paths).toEqual(["stats", "resume", "stats"]);
    const stays = await asked([refused], { autoResume: false });
    expect(stays).toMatchObject({ outcome: { code: "permission_denied" }, paths: ["stats"] });
  });

  test("a missing scope is reported as such", async () => {
    expect(await asked([failure(403, "permission_denied", { needed: "use" })])).toMatchObject({
      outcome: { code: "permission_denied" },
      paths: ["stats"],
    });
  });
});
