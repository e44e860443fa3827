import { existsSync } from "node:fs";
import { mkdir, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { EngineControl, type Messages } from "../../../../src/backends/gvisor/control/engine-control.ts";
import type { AttachedRunsc } from "../../../../src/backends/gvisor/runsc.ts";
import { fakeKernel } from "./fake-kernel.ts";

const RUNNING = { child: { exitCode: null, signalCode: null } } as Pick<AttachedRunsc, "child">;
const PATIENCE = { timeoutMs: 60_000 };
const DONE = { success: true, err: "", result: {} };
const failure = (err: string) => ({ success: false, err, result: null });
const methodOf = (message: string): string => /"method":"containerManager\.(\w+)"/.exec(message)?.[1] ?? "";

/** A sandbox whose kernel answers methods like this, and the messages and commands that it got, in their order. */
async function sandbox(answers: Record<string, object[]>, more: Partial<Messages> | "no messages" = {}) {
  const steps: string[] = [];
  const kernel = await fakeKernel((socket, message) => {
    steps.push(`message ${methodOf(message)}`);
    const list = answers[methodOf(message)] ?? [failure("unknown method")];
    socket.end(JSON.stringify(list.length > 1 ? list.shift() : list[0]));
  });
  const pages = { take: async () => undefined, saved: () => {}, clear: async () => {} };
  // Sends nothing; the message is known without its first byte.
  const messages = { dialect: {}, sender: "/bin/true", pages, ...(more === "no messages" ? {} : more) };
  const image = join(kernel.folder, "image");
  const command = async (args: readonly string[]): Promise<string> => {
    steps.push(`command ${args[0]}`);
    if (args[0] === "state") return '{"status":"running"}';
    if (args[0] !== "checkpoint") return "";
    // runsc writes no file that exists.
    expect(existsSync(image)).toBe(false);
    await mkdir(image);
    for (const name of ["checkpoint.img", "pages_meta.img", "pages.img"])
      await writeFile(join(image, name), "by runsc");
    return "";
  };
  const control = new EngineControl({
    runsc: { command },
    containerId: "test",
    stateDirectory: kernel.folder,
    messages: more === "no messages" ? undefined : messages,
    pagesBytes: 0,
  });
  return { control, steps, image, kernel };
}

test("a sandbox is paused, saved and resumed by messages, without a command", async () => {
  const { control, steps, image, kernel } = await sandbox({ Pause: [DONE], Resume: [DONE], Checkpoint: [DONE] });
  await control.pause();
  await (
    await control.checkpoint(image, PATIENCE)
  )();
  await control.resume();
  expect(steps).toEqual(["message Pause", "message Checkpoint", "message Resume"]);
  expect(await readdir(image)).toEqual(["checkpoint.img", "pages.img", "pages_meta.img"]);
  expect(kernel.got[1]).toBe(
    '"method":"containerManager.Checkpoint","arg":{"metadata":{"compression":"none"},"have_pages_file":true,"Resume":true}}',
  );
});

test("a message that the kernel does not know is followed by the command, which also undoes it", async () => {
  const { control, steps, image } = await sandbox({ Resume: [DONE] });
  await control.pause();
  await (
    await control.checkpoint(image, PATIENCE)
  )();
  await control.resume();
  expect(steps).toEqual([
    "message Pause",
    "command pause",
    "message Checkpoint",
    "command checkpoint",
    "command resume",
  ]);
});

test("a step that failed in the kernel is not tried again as a command", async () => {
  const answers = { Pause: [failure("broken")], Checkpoint: [failure("write: no space left on device")] };
  const { control, steps, image } = await sandbox(answers);
  await expect(control.pause()).rejects.toMatchObject({ code: "internal", message: expect.stringContaining("broken") });
  await expect(control.checkpoint(image, PATIENCE)).rejects.toMatchObject({ code: "no_space" });
  expect(steps).toEqual(["message Pause", "message Checkpoint"]);
});

test("an engine that nobody knows is driven by commands only", async () => {
  const { control, steps, image } = await sandbox({ Pause: [DONE] }, "no messages");
  await control.pause();
  await (
    await control.checkpoint(image, PATIENCE)
  )();
  await control.resume();
  await control.untilLoaded(RUNNING, PATIENCE);
  expect(steps).toEqual(["command pause", "command checkpoint", "command resume", "command state"]);
});

test("the self-test sees a message that is not taken", async () => {
  const { control, steps, image } = await sandbox({}, { only: true });
  await expect(control.pause()).rejects.toThrow("unknown method");
  await expect(control.checkpoint(image, PATIENCE)).rejects.toThrow("unknown method");
  expect(steps).toEqual(["message Pause", "message Checkpoint"]);
});

test("the end of a restore is asked for until it has begun, and by a command where there is no such message", async () => {
  const dialect = { waitForRestore: "containerManager.WaitRestore" };
  const early = failure("sandbox is not being restored, cannot wait for restore: state=created");
  const { control, steps } = await sandbox({ WaitRestore: [early, early, DONE] }, { dialect });
  await control.untilLoaded(RUNNING, PATIENCE);
  expect(steps).toEqual(["message WaitRestore", "message WaitRestore", "message WaitRestore"]);
  const other = await sandbox({}, { dialect });
  await other.control.untilLoaded(RUNNING, PATIENCE);
  expect(other.steps).toEqual(["message WaitRestore", "command state"]);
  const ended = { child: { exitCode: 1, signalCode: null } } as Pick<AttachedRunsc, "child">;
  await expect(control.untilLoaded(ended, PATIENCE)).rejects.toMatchObject({ code: "backend_unavailable" });
});
