import { connect, type Socket } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { eventually } from "../../../../test/kit/eventually.ts";
import { startTestServer } from "../../../../test/kit/server/test-server.ts";
import { runProgram } from "../../src/program.ts";
import { type FakeIo, fakeIo } from "../support/fake-io.ts";

const KEY = "a-key-that-is-long-enough-not-to-be-guessed";
/** The only server that a fake sandbox can run: an echo. */
const ECHO = 'require("net").createServer((c) => c.pipe(c)).listen(7001, "127.0.0.1", () => console.log("listening"))';

interface Started {
  readonly io: FakeIo;
  readonly ended: Promise<number>;
}

async function startCli(): Promise<(...argv: string[]) => Started> {
  const { httpUrl } = await startTestServer({ apiKeys: [KEY] });
  return (...argv) => {
    const io = fakeIo({ SANDBOXER_URL: httpUrl, SANDBOXER_API_KEY: KEY, XDG_CONFIG_HOME: "/nonexistent" });
    return { io, ended: runProgram(argv, io) };
  };
}

/** Sends a text, and reads the same number of bytes. */
async function echoed(port: number, text: string): Promise<string> {
  const socket: Socket = connect(port, "127.0.0.1");
  onTestFinished(() => void socket.destroy());
  socket.write(text);
  let heard = "";
  for await (const chunk of socket) {
    heard += String(chunk);
    if (heard.length >= text.length) break;
  }
  return heard;
}

test("ports lists listening programs, url prints links, and forward passes bytes on and resumes a paused sandbox", async () => {
  const cli = await startCli();
  const done = async (...argv: string[]): Promise<string> => {
    const { io, ended } = cli(...argv);
    expect({ code: await ended, err: argv.includes("--json") ? io.err() : "" }).toEqual({ code: 0, err: "" });
    return io.out();
  };
  const id = (await done("create", "--name", "web")).trim();
  await done("exec", "-d", "web", "--", "node", "-e", ECHO);
  await eventually("it listens", async () => (await done("ports", "web")).includes("7001"));
  expect(await done("ports", "web")).toMatch(
    new RegExp(`^7001 +127.0.0.1 +- +private +http://7001-${id}.localhost:\\d+/$`, "m"),
  );

  const link = JSON.parse(await done("url", "web", "7001", "--expires", "10m", "--json")) as { expires_at: string };
  expect(Date.parse(link.expires_at) - Date.now()).toBeLessThanOrEqual(601_000);
  expect(await done("url", "web", "7001")).toContain("?sandboxer_signature=");
  expect(await done("url", "web", "7001", "--public")).not.toContain("?");
  expect(await done("ports", "web")).toContain("public");
  expect(await done("url", "web", "7001", "--private")).toContain("?sandboxer_signature=");

  const forward = cli("forward", "web", "7001:0");
  await eventually("it forwards", () => forward.io.out() !== "");
  const port = Number(forward.io.out().trim().split(":")[1]);
  expect(await echoed(port, "hello")).toBe("hello");
  await done("checkpoint", "web");
  expect(await echoed(port, "again")).toBe("again");
  const large = "0123456789".repeat(100_000);
  expect(await echoed(port, large)).toBe(large);
  forward.io.signal("SIGINT");
  expect(await forward.ended).toBe(0);
});

test("forward reports why a connection cannot be opened, and invalid ports are usage errors", async () => {
  const cli = await startCli();
  await cli("create", "--name", "web").ended;
  const forward = cli("forward", "web", "7002:0");
  await eventually("it forwards", () => forward.io.out() !== "");
  const port = Number(forward.io.out().trim().split(":")[1]);
  expect(await echoed(port, "hello").catch(() => "")).toBe("");
  await eventually("it says why", () => forward.io.err().includes("Nothing listens on port 7002"));
  forward.io.signal("SIGINT");
  await forward.ended;
  for (const given of ["0", "65536", "8000:1:2", "x"]) expect(await cli("forward", "web", given).ended).toBe(2);
  expect(await cli("url", "web", "80x").ended).toBe(2);
});
