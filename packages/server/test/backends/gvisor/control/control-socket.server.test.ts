import { writeFile } from "node:fs/promises";
import type { Socket } from "node:net";
import { join } from "node:path";
import { expect, test } from "vitest";
import {
  ControlFailure,
  NotDelivered,
  NotTaken,
  sendControlMessage,
} from "../../../../src/backends/gvisor/control/control-socket.ts";
import { temporaryFolder } from "../../../../../../test/kit/temporary-folder.ts";
import { fakeKernel } from "./fake-kernel.ts";

const PAUSE = { method: "containerManager.Pause", argument: null };
const PATIENCE = { timeoutMs: 60_000 };

test("a message is one JSON object, and the result is the answer's", async () => {
  const { path, got } = await fakeKernel((socket) => socket.end('{"success":true,"err":"","result":{"status":2}}\n'));
  expect(await sendControlMessage(path, PAUSE, PATIENCE)).toEqual({ status: 2 });
  expect(got).toEqual(['{"method":"containerManager.Pause","arg":null}']);
});

test.each([
  ["unknown method", NotTaken],
  ["json: cannot unmarshal string into Go value of type struct {}", NotTaken],
  ["sandbox is not being restored", ControlFailure],
])("the kernel's error %j is told from a refusal of the message", async (err, kind) => {
  const { path } = await fakeKernel((socket) => socket.end(JSON.stringify({ success: false, err, result: null })));
  const failure = await sendControlMessage(path, PAUSE, PATIENCE).catch((error: unknown) => error);
  expect(failure).toBeInstanceOf(kind);
  expect(failure).not.toBeInstanceOf(NotDelivered);
  expect((failure as Error).message).toBe(err);
});

test.each([
  ["nothing", (socket: Socket) => socket.end()],
  ["no JSON", (socket: Socket) => socket.end("success")],
  ["half an answer", (socket: Socket) => socket.end('{"success":true,"err":"')],
  ["two answers", (socket: Socket) => socket.end('{"success":true}{"success":true}')],
  ["another type", (socket: Socket) => socket.end('{"success":"true","err":""}')],
  ["an error that is no text", (socket: Socket) => socket.end('{"success":false,"err":{"a":1}}')],
  ["a closed connection", (socket: Socket) => socket.destroy()],
  ["an endless answer", (socket: Socket) => pour(socket)],
])("a kernel that answers with %s has failed", async (_, answer) => {
  const { path } = await fakeKernel(answer);
  await expect(sendControlMessage(path, PAUSE, PATIENCE)).rejects.toThrow(ControlFailure);
});

test("a kernel that never answers is not waited for longer than allowed", async () => {
  const { path } = await fakeKernel(() => {});
  await expect(sendControlMessage(path, PAUSE, { timeoutMs: 20 })).rejects.toThrow(ControlFailure);
  const calledOff = new AbortController();
  const waiting = sendControlMessage(path, PAUSE, { ...PATIENCE, signal: calledOff.signal });
  calledOff.abort(new Error("called off"));
  await expect(waiting).rejects.toThrow("called off");
});

test("without a socket the message is not delivered", async () => {
  const path = join(await temporaryFolder(), "runsc-test.sock");
  await expect(sendControlMessage(path, PAUSE, PATIENCE)).rejects.toThrow(NotDelivered);
  const { path: closed, server } = await fakeKernel(() => {});
  server.close();
  await expect(sendControlMessage(closed, PAUSE, PATIENCE)).rejects.toThrow(NotDelivered);
});

test("files that cannot be sent are not delivered, nor is their message", async () => {
  const { path, got } = await fakeKernel((socket) => socket.end('{"success":true}'));
  const message = { ...PAUSE, files: { descriptors: [0], sender: "/bin/false" } };
  await expect(sendControlMessage(path, message, PATIENCE)).rejects.toThrow(NotDelivered);
  await expect.poll(() => got).toEqual([""]);
});

test("a kernel that closes its socket while files are sent has failed, and one that is waited for too long", async () => {
  const closing = await fakeKernel(() => {});
  closing.server.on("connection", (socket: Socket) => socket.destroy());
  const slow = join(closing.folder, "slow");
  await writeFile(slow, "#!/bin/sh\nsleep 0.2\n", { mode: 0o755 });
  const message = { ...PAUSE, files: { descriptors: [0], sender: slow } };
  await expect(sendControlMessage(closing.path, message, PATIENCE)).rejects.toThrow(ControlFailure);
  const { path, folder } = await fakeKernel(() => {});
  const stuck = join(folder, "stuck");
  await writeFile(stuck, "#!/bin/sh\nexec sleep 1000\n", { mode: 0o755 });
  const endless = { ...PAUSE, files: { descriptors: [0], sender: stuck } };
  await expect(sendControlMessage(path, endless, { timeoutMs: 50 })).rejects.toThrow(NotDelivered);
});

/** Writes as long as anybody reads. */
function pour(socket: Socket): void {
  const text = "x".repeat(16_384);
  const more = (error?: Error | null): void => void (error ?? socket.write(text, more));
  more();
}
