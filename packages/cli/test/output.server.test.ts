import type { SandboxRecord, SnapshotInfo } from "@sandboxer/protocol";
import { describe, expect, test } from "vitest";
import { painter } from "../src/output/colour.ts";
import { formatLineage } from "../src/output/lineage.ts";
import { formatProgress, ProgressLine } from "../src/output/progress.ts";
import { formatRemovedBytes } from "../src/output/removed-bytes.ts";
import { formatTable, visible } from "../src/output/table.ts";
import { formatAge, formatSeconds } from "../src/output/time.ts";
import { exitCodeOf } from "../src/process/exit-code.ts";
import { DetachKeys, parseDetachKeys } from "../src/terminal/detach-keys.ts";
import { fakeIo } from "./support/fake-io.ts";
import { meanwhile } from "../../../test/kit/meanwhile.ts";

test("a removal shows the freed bytes, and the bytes that others still use", () => {
  expect(formatRemovedBytes({ removed_bytes: 2 * 1024 ** 2, shared_bytes: 0 })).toBe("2.0 MiB freed.");
  expect(formatRemovedBytes({ removed_bytes: 0, shared_bytes: 5 * 1024 ** 2 })).toMatch(
    /^0 B freed\. 5\.0 MiB are shared with /,
  );
});

describe("tables", () => {
  test("are aligned, even with colours", () => {
    const paint = painter({ stdoutIsTerminal: true, env: {} });
    const rows = [
      ["A", "B", "C"],
      [paint("long", "red"), "x", "end"],
    ];
    expect(formatTable(rows)).toBe("A     B  C\n\u001B[31mlong\u001B[0m  x  end\n");
  });

  test.each([
    [{ stdoutIsTerminal: false, env: {} }],
    [{ stdoutIsTerminal: true, env: { NO_COLOR: "1" } }],
    [{ stdoutIsTerminal: true, env: { TERM: "dumb" } }],
  ])("have no colours with %j", (io) => expect(painter(io)("x", "red")).toBe("x"));

  test("contain nothing that moves the cursor", () => expect(visible("a\u001B[2Jb\nc")).toBe("a�[2Jb�c"));
});

test("times are short", () => {
  expect([0, 59, 60, 3599, 7200, 86_400 * 3].map(formatSeconds)).toEqual([
    "0 s",
    "59 s",
    "1 min",
    "59 min",
    "2 h",
    "3 d",
  ]);
  const nowMs = Date.parse("2026-01-01T00:01:00Z");
  expect(formatAge("2026-01-01T00:00:00Z", nowMs)).toBe("1 min ago");
  expect(formatAge("2026-01-01T01:01:00Z", nowMs)).toBe("in 1 h");
});

describe("progress", () => {
  test("shows bytes, rate and time left", () => {
    const MIB = 1024 * 1024;
    const shown = formatProgress({
      what: "checkpoint: pack",
      doneBytes: 10 * MIB,
      totalBytes: 40 * MIB,
      elapsedMs: 2000,
    });
    expect(shown).toBe("checkpoint: pack [#####...............] 25%  10.0 MiB of 40.0 MiB  5.0 MiB/s  6 s left");
  });

  test("without a total shows bytes and rate", () => {
    expect(formatProgress({ what: "upload", doneBytes: 2048, totalBytes: null, elapsedMs: 1000 })).toBe(
      "upload  2.0 KiB  2.0 KiB/s",
    );
  });

  test.each([
    [false, false],
    [true, true],
  ])("is not shown where nobody watches (terminal %s, json %s)", async (interactive, json) => {
    const io = fakeIo({}, { interactive });
    const line = new ProgressLine(io, json);
    await meanwhile(350);
    line.show({ what: "x", doneBytes: 1, totalBytes: 2, elapsedMs: 1 });
    line.end();
    expect(io.err()).toBe("");
  });

  test("is one line that is cleared at the end", async () => {
    const io = fakeIo({}, { interactive: true });
    const line = new ProgressLine(io, false);
    await expect
      .poll(() => {
        line.show({ what: "x", doneBytes: 1, totalBytes: 2, elapsedMs: 1000 });
        return io.err();
      })
      .toContain("50%");
    line.end();
    const clear = "\r\u001B[K";
    expect(io.err().startsWith(clear) && io.err().endsWith(clear)).toBe(true);
    expect(io.err()).not.toContain("\n");
  });
});

test("exit codes are those of shells", () => {
  expect(exitCodeOf({ exitCode: 0, signal: null })).toBe(0);
  expect(exitCodeOf({ exitCode: 255, signal: null })).toBe(255);
  expect(exitCodeOf({ exitCode: null, signal: "SIGKILL" })).toBe(137);
  expect(exitCodeOf({ exitCode: null, signal: "TERM" })).toBe(143);
});

describe("detach keys", () => {
  const filter = (...typed: string[]): { pass: string; detach: boolean } => {
    const keys = new DetachKeys(parseDetachKeys("ctrl-p,ctrl-q"));
    let pass = "";
    for (const text of typed) {
      const result = keys.filter(Buffer.from(text));
      pass += Buffer.from(result.pass).toString();
      if (result.detach) return { pass, detach: true };
    }
    return { pass, detach: false };
  };

  test.each([
    [["abc"], { pass: "abc", detach: false }],
    [["ab\u0010\u0011cd"], { pass: "ab", detach: true }],
    [["\u0010", "\u0011"], { pass: "", detach: true }],
    [["\u0010", "x"], { pass: "\u0010x", detach: false }],
    [["\u0010\u0010\u0011"], { pass: "\u0010", detach: true }],
    [["\u0011\u0010"], { pass: "\u0011", detach: false }],
  ])("%j", (typed, expected) => expect(filter(...typed)).toEqual(expected));

  test("are configurable, and may be turned off", () => {
    expect([...parseDetachKeys("ctrl-a,d")]).toEqual([1, 100]);
    expect(new DetachKeys(parseDetachKeys("")).filter(Buffer.from("\u0010\u0011")).detach).toBe(false);
    expect(() => parseDetachKeys("ctrl-pp")).toThrow(/not a detach key/);
  });
});

describe("lineage", () => {
  const created_at = (minute: number): string => new Date(Date.UTC(2026, 0, 1, 0, minute)).toISOString();
  const sandbox = (id: string, minute: number, from: string | null): SandboxRecord =>
    ({
      id,
      name: id,
      state: "running",
      created_at: created_at(minute),
      origin: { snapshot_id: from, sandbox_id: null },
    }) as unknown as SandboxRecord;
  const snapshot = (id: string, minute: number, of: string): SnapshotInfo =>
    ({
      id,
      name: id,
      mode: "full",
      state: "ready",
      size_bytes: 1,
      created_at: created_at(minute),
      sandbox_id: of,
      parent: null,
    }) as unknown as SnapshotInfo;
  const shape = (drawn: string): string[] => drawn.replaceAll(/ (full|running).*/g, "").split("\n");

  test("is drawn as a tree, oldest first", () => {
    const drawn = formatLineage(
      [
        sandbox("fork-2", 3, "snap"),
        sandbox("web", 0, null),
        sandbox("fork-1", 2, "snap"),
        sandbox("other", 9, "gone"),
      ],
      [snapshot("snap", 1, "web"), snapshot("late", 5, "web")],
      (text) => text,
    );
    expect(shape(drawn)).toEqual([
      "web (web)",
      "├─ snapshot snap (snap)",
      "│  ├─ fork-1 (fork-1)",
      "│  └─ fork-2 (fork-2)",
      "└─ snapshot late (late)",
      "other (other)",
      "",
    ]);
  });

  test("keeps a sandbox that was rewound to a snapshot of its own", () => {
    const drawn = formatLineage([sandbox("web", 0, "snap")], [snapshot("snap", 1, "web")], (text) => text);
    expect(shape(drawn)).toEqual(["web (web)", "└─ snapshot snap (snap)", ""]);
  });
});
