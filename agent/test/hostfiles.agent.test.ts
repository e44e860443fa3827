import { spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync, readFileSync, writeFileSync } from "node:fs";
import { connect, createServer } from "node:net";
import { join } from "node:path";
import { expect, test } from "vitest";
import { temporaryFolder } from "../../test/kit/temporary-folder.ts";
import { agentBinary } from "./support/build.ts";

async function fill(path: string, bytes: string, page: Buffer): Promise<number> {
  const file = openSync(path, "w");
  const child = spawn(agentBinary, ["fill-file", bytes], { env: {}, stdio: ["pipe", "ignore", "inherit", file] });
  closeSync(file);
  child.stdin?.on("error", () => {}).end(page);
  const [code] = (await once(child, "exit")) as [number];
  return code;
}

const page = Buffer.from(Array.from({ length: 4096 }, (_, index) => (index * 7) % 256));

test.each([0, 4096, 5000, 1 << 20, (1 << 20) + 4096])("a file of %i bytes is filled with one page", async (bytes) => {
  const path = join(await temporaryFolder(), "file");
  expect(await fill(path, String(bytes), page)).toBe(0);
  const expected = Buffer.alloc(bytes);
  for (let at = 0; at < bytes; at += page.length) page.copy(expected, at);
  expect(readFileSync(path).equals(expected)).toBe(true);
});

test("half a page fills nothing", async () => {
  const path = join(await temporaryFolder(), "file");
  expect(await fill(path, "8192", page.subarray(1))).toBe(2);
  expect(readFileSync(path).length).toBe(0);
});

test("the first byte of a message carries open files; the sender's own end of the socket still works", async () => {
  const path = join(await temporaryFolder(), "socket");
  const server = createServer((socket) => socket.pipe(socket)).listen(path);
  await once(server, "listening");
  const socket = connect(path);
  await once(socket, "connect");
  const file = openSync(path + ".file", "w+");
  const stdio = ["ignore" as const, "ignore" as const, "inherit" as const, socket, file];
  const send = async (count: string): Promise<unknown[]> =>
    once(spawn(agentBinary, ["send-files", count], { env: {}, stdio }), "exit");
  expect(await send("1")).toEqual([0, null]);
  socket.end("rest");
  let echo = "";
  for await (const chunk of socket as AsyncIterable<Buffer>) echo += chunk.toString();
  expect(echo).toBe("{rest");
  closeSync(file);
  server.close();
});

test("without files or a socket, nothing is sent", async () => {
  writeFileSync(join(await temporaryFolder(), "file"), "");
  for (const count of ["0", "-1", "many", "9"]) {
    const child = spawn(agentBinary, ["send-files", count], { env: {}, stdio: "ignore" });
    expect(await once(child, "exit")).toEqual([2, null]);
  }
  const child = spawn(agentBinary, ["send-files", "1"], { env: {}, stdio: "ignore" });
  expect(await once(child, "exit")).toEqual([1, null]);
});
