import { randomUUID } from "node:crypto";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { runProgram } from "../../src/program.ts";
import { fakeIo } from "../support/fake-io.ts";

let store: string;
let folder: string;

beforeEach(() => {
  store = mkdtempSync(join(tmpdir(), "gc-"));
  const sandbox = join(store, randomUUID());
  folder = join(sandbox, "checkpoints");
  mkdirSync(folder, { recursive: true });
  for (const number of [1, 2, 3, 4]) writeFileSync(join(folder, `checkpoint_${number}.img`), "x".repeat(1024 * number));
  writeFileSync(join(sandbox, "metadata.json"), JSON.stringify(parkedHead("checkpoint_3.img")));
});
afterEach(() => rmSync(store, { recursive: true }));

function parkedHead(name: string): object {
  const now = "2026-11-15T05:00:00.000Z";
  return {
    format: 1,
    epoch: 2,
    owner: null,
    state: "parked",
    want: null,
    checkpoint: { name, sha256: "0".repeat(64), size_bytes: 3072, created_at: now, kind: "fake-state", parent: null },
    history: [],
    nonce: "n",
    status: "checkpointed",
    createdAt: now,
    lastCheckpointedAt: now,
    idle_timeout: 300,
    backend: "fake",
    spec: {},
    flags: {
      enable_checkpoint: true,
      enable_idle_timeout_auto_checkpoint: false,
      enable_sandbox_handoff: false,
      on_disconnect: "keep",
    },
    token_hash: null,
    lineage: { sandbox_id: null, checkpoint: null, filesystem_snapshot: null },
    timestamps: { updated_at: now, claimed_at: now, deleted_at: null },
  };
}

test("lists the garbage and changes nothing", async () => {
  const io = fakeIo();
  expect(await runProgram(["gc", "--store", store, "--keep", "2"], io)).toBe(0);
  expect(io.out()).toBe(
    [
      "what                          count  size",
      "unpublished checkpoints       1      4.0 KiB",
      "checkpoints beyond retention  1      1.0 KiB",
      "",
      "5.0 KiB can be freed. Nothing was changed. Run the command again with --apply to remove this.",
      "",
    ].join("\n"),
  );
  expect(readdirSync(folder)).toHaveLength(4);
});

test("--apply removes the garbage, and the next run finds none", async () => {
  const io = fakeIo();
  expect(await runProgram(["gc", "--store", store, "--keep", "2", "--apply"], io)).toBe(0);
  expect(io.out()).toContain("5.0 KiB freed.\n");
  expect(readdirSync(folder).toSorted()).toEqual(["checkpoint_2.img", "checkpoint_3.img", "checkpoint_4.removed"]);
  const again = fakeIo();
  expect(await runProgram(["gc", "--store", store, "--keep", "2"], again)).toBe(0);
  expect(again.out()).toBe("Nothing to remove.\n");
});

test("without --keep no published checkpoint is removed; the environment may set it too", async () => {
  const io = fakeIo();
  expect(await runProgram(["gc", "--store", store, "--json"], io)).toBe(0);
  const report = JSON.parse(io.out()) as { garbage: { key: string }[] };
  expect(report).toMatchObject({ applied: false, keep: {}, total: { count: 1, bytes: 4096 }, left: [] });
  expect(report.garbage.map(({ key }) => key.split("/").at(-1))).toEqual(["checkpoint_4.img"]);
  const told = fakeIo({ SANDBOXER_KEEP_CHECKPOINTS: "1" });
  expect(await runProgram(["gc", "--store", store, "--json"], told)).toBe(0);
  expect(JSON.parse(told.out())).toMatchObject({
    keep: { checkpoints: { keep_last: 1 } },
    kinds: { "past-retention": { count: 2 } },
  });
});

test("a folder without a head is left alone, and reported", async () => {
  mkdirSync(join(store, randomUUID(), "checkpoints"), { recursive: true });
  const io = fakeIo();
  expect(await runProgram(["gc", "--store", store], io)).toBe(0);
  expect(io.out()).toContain("Not removed:\n  1  without a head\n");
});

test("a store that is missing or not given is an error, and is not created", async () => {
  const io = fakeIo();
  expect(await runProgram(["gc"], io)).toBe(2);
  expect(io.err()).toContain("No store was given");
  const missing = join(store, "missing");
  expect(await runProgram(["gc", "--store", missing], io)).toBe(10);
  expect(existsSync(missing)).toBe(false);
  expect(await runProgram(["gc", "--store", store, "--keep", "0"], io)).toBe(2);
});
