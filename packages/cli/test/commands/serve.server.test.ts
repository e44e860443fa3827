import { SandboxerError } from "@sandboxer/protocol";
import { beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { runProgram } from "../../src/program.ts";
import { fakeIo } from "../support/fake-io.ts";

const startServer = vi.fn();
vi.mock("@sandboxer/server", () => ({ startServer }));

/** A server that ends only when it is drained, and reports when. */
function fakeServer() {
  const closed = Promise.withResolvers<void>();
  const drain = vi.fn(async () => closed.resolve());
  return {
    url: "http://127.0.0.1:4321",
    store: "/srv/store" as string | undefined,
    engine: "runsc 20240729.0, systrap",
    closed: closed.promise,
    drain,
  };
}

beforeEach(() => {
  startServer.mockReset();
});

async function started(argv: string[], server = fakeServer()) {
  const io = fakeIo();
  startServer.mockImplementation(async (_config: unknown, hooks: { report: (step: object) => void }) => {
    hooks.report({ name: "agent", state: "done", message: "Agent at /x", elapsedMs: 1 });
    return server;
  });
  const exitCode = runProgram(argv, io);
  await expect.poll(() => io.out()).not.toBe("");
  return { io, server, exitCode };
}

test("prints the address, the store, the engine, and one line to try", async () => {
  const { io, exitCode } = await started(["serve", "--port", "0"]);
  expect(io.out()).toContain("http://127.0.0.1:4321");
  expect(io.out()).toContain("/srv/store");
  expect(io.out()).toContain("runsc 20240729.0, systrap");
  expect(io.out()).toMatch(/node \S*examples\/hello\.mjs ws:\/\/127\.0\.0\.1:4321/);
  expect(io.err()).toContain("Agent at /x");
  io.signal("SIGTERM");
  expect(await exitCode).toBe(0);
});

test("a signal right after the address is printed lets it save and stop", async () => {
  const [io, server] = [fakeIo(), fakeServer()];
  startServer.mockResolvedValue(server);
  const atOnce = { ...io, stdout: (text: string) => (io.stdout(text), io.signal("SIGTERM")) };
  const exitCode = runProgram(["serve", "--json"], atOnce);
  await expect.poll(() => server.drain.mock.calls.length).toBe(1);
  expect(await exitCode).toBe(0);
  expect(io.exits).toEqual([]);
});

test("without a store it prints the consequences", async () => {
  const { io, exitCode } = await started(["serve"], { ...fakeServer(), store: undefined });
  expect(io.out()).toMatch(/none: sandboxes cannot be checkpointed/);
  io.signal("SIGTERM");
  await exitCode;
});

test("with --json the first and only line on stdout is the address", async () => {
  const { io, exitCode } = await started(["serve", "--json"]);
  expect(io.out()).toBe(`{"event":"listening","url":"http://127.0.0.1:4321"}\n`);
  io.signal("SIGTERM");
  await exitCode;
  expect(io.out().split("\n")).toHaveLength(2);
});

test("flags reach the server's configuration", async () => {
  const argv = ["serve", "--store", "/srv", "--lease-ttl", "20s", "--max-sandboxes", "7", "--runsc", "/x/runsc"];
  const { io, exitCode } = await started([...argv, "--backend", "fake"]);
  expect(startServer.mock.calls[0]?.[0]).toMatchObject({
    store: "/srv",
    leaseTtlMs: 20_000,
    maxSandboxes: 7,
    runscPath: "/x/runsc",
    backend: "fake",
  });
  io.signal("SIGINT");
  expect(await exitCode).toBe(0);
});

describe("signals", () => {
  /** A server whose drain takes forever, and the clock of the command. */
  async function draining(first: string) {
    const server = { ...fakeServer(), drain: vi.fn(() => new Promise<void>(() => {})) };
    const { io } = await started(["serve"], server);
    let nowMs = 0;
    const clock = vi.spyOn(performance, "now").mockImplementation(() => nowMs);
    onTestFinished(() => clock.mockRestore());
    io.signal(first);
    return { server, io, passMs: (ms: number) => void (nowMs += ms) };
  }

  test.each(["SIGTERM", "SIGHUP", "npm has exited"])("%s drains, and repeating it changes nothing", async (signal) => {
    const { server, io, passMs } = await draining(signal);
    for (const again of [signal, "SIGTERM", "SIGHUP", "npm has exited", signal]) {
      passMs(60_000);
      io.signal(again);
    }
    expect(server.drain).toHaveBeenCalledTimes(1);
    expect(io.exits).toEqual([]);
  });

  test("a second SIGINT ends at once, if it comes a second after the first", async () => {
    const { server, io, passMs } = await draining("SIGINT");
    for (const ms of [0, 300, 699]) {
      passMs(ms);
      io.signal("SIGINT");
    }
    expect(io.exits).toEqual([]);
    passMs(1);
    io.signal("SIGINT");
    expect(io.exits).toEqual([130]);
    expect(server.drain).toHaveBeenCalledTimes(1);
  });

  test("the first SIGINT does not shorten a drain that something else began", async () => {
    const { io, passMs } = await draining("SIGTERM");
    passMs(60_000);
    io.signal("SIGINT");
    expect(io.exits).toEqual([]);
    passMs(1_000);
    io.signal("SIGINT");
    expect(io.exits).toEqual([130]);
  });

  test("a drain that fails is an error", async () => {
    const drain = () => Promise.reject(new SandboxerError("store_unavailable", "The store is away."));
    const { io, exitCode } = await started(["serve"], { ...fakeServer(), drain: vi.fn(drain) });
    io.signal("SIGTERM");
    expect(await exitCode).toBe(10);
    expect(io.err()).toContain("The store is away.");
  });

  test("during set-up there is nothing to drain", async () => {
    const io = fakeIo();
    startServer.mockImplementation(() => new Promise(() => {}));
    void runProgram(["serve"], io);
    await expect.poll(() => startServer).toHaveBeenCalled();
    io.signal("SIGINT");
    expect(io.exits).toEqual([130]);
  });
});
