import type { EventRecord, OperationRecord, SandboxRecord } from "@sandboxer/client";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { bandsOf } from "../../../../src/pages/sandbox/timeline/bands.ts";
import { marksOf, type Mark } from "../../../../src/pages/sandbox/timeline/marks.ts";
import { rowsOf } from "../../../../src/pages/sandbox/timeline/rows.ts";
import { pan, tickText, ticks, zoom } from "../../../../src/pages/sandbox/timeline/scale.ts";

const START_MS = Date.parse("2026-01-01T00:00:00Z");

/** Seconds after the start. */
function event(seconds: number, type: string, data: Record<string, unknown> = {}): EventRecord {
  const time = new Date(START_MS + seconds * 1000).toISOString();
  return { cursor: `cursor-${seconds}-${type}`, time, type, sandboxId: "a", data };
}

function state(seconds: number, from: string | null, to: string): EventRecord {
  return event(seconds, "sandbox.state", { from, to });
}

function record(changes: Partial<SandboxRecord> = {}): SandboxRecord {
  const owner = { instanceId: "here", url: null, here: true };
  return {
    state: "running",
    frozen: false,
    owner,
    createdAt: new Date(START_MS).toISOString(),
    ...changes,
  } as SandboxRecord;
}

/** `creating 0-1, running 1-`: seconds. */
function draw(events: readonly EventRecord[], changes: Partial<SandboxRecord> = {}, nowSeconds = 100): string {
  return bandsOf(events, record(changes), START_MS + nowSeconds * 1000)
    .map((band) => {
      const [from, to] = [band.startMs, band.endMs].map((timeMs) => (timeMs - START_MS) / 1000);
      return `${band.state} ${from}-${band.now ? "" : to}`;
    })
    .join(", ");
}

describe("states", () => {
  const alive = [state(0, null, "creating"), state(1, "creating", "running")];

  test("follow one another until now", () => {
    expect(draw(alive)).toBe("creating 0-1, running 1-");
  });

  test("a sandbox that was saved and ended is paused, and can be resumed", () => {
    const saved = [...alive, state(5, "running", "saving"), event(6, "checkpoint.created"), state(7, "saving", "gone")];
    expect(draw(saved, { state: "stored", owner: null })).toBe("creating 0-1, running 1-5, saving 5-7, stored 7-");
    const back = [...saved, state(9, null, "restoring"), state(10, "restoring", "running")];
    expect(draw(back)).toContain("stored 7-9, restoring 9-10, running 10-");
  });

  test("a sandbox that was handed off is on the other server, even if that is reported a moment later", () => {
    const gone = [...alive, event(6, "checkpoint.created"), state(7, "saving", "gone")];
    const over = event(7.1, "sandbox.handed_over", { from: "here", to: "there" });
    const owner = { instanceId: "there", url: null, here: false };
    expect(draw([...gone, over], { owner })).toBe("creating 0-1, running 1-7, at there 7-");
    expect(draw([...gone, over, state(9, null, "restoring"), state(10, "restoring", "running")])).toContain(
      "at there 7-9",
    );
  });

  test("the record decides the current state", () => {
    const gone = [...alive, event(6, "checkpoint.created"), state(7, "saving", "gone")];
    expect(draw(gone, { owner: { instanceId: "third", url: null, here: false } })).toContain("at third 7-");
    expect(draw([], { state: "stored", owner: null })).toBe("stored 0-");
    expect(draw([state(7, "running", "saving")])).toBe("running 0-7, saving 7-100, running 100-");
  });

  test("a freeze interrupts the running time", () => {
    const frozen = [...alive, event(4, "sandbox.frozen"), event(6, "sandbox.thawed", { frozen_ms: 2000 })];
    expect(draw(frozen)).toBe("creating 0-1, running 1-4, frozen 4-6, running 6-");
    expect(draw(frozen.slice(0, 3), { frozen: true })).toBe("creating 0-1, running 1-4, frozen 4-");
  });
});

describe("marks", () => {
  const begun = event(1, "execution.started", { process_id: "p", command: "sleep 2", kind: "process" });
  const ended = event(3, "execution.ended", { process_id: "p", exit_code: 3, signal: null, outcome: "exited" });

  test("an execution lasts from its start to its end", () => {
    expect(marksOf([begun, ended], [])).toMatchObject([
      { kind: "execution", title: "sleep 2", outcome: "exit 3", failed: true, processId: "p" },
    ]);
    const [mark] = marksOf([begun, ended], []);
    expect((mark?.endMs ?? 0) - (mark?.startMs ?? 0)).toBe(2000);
    expect(mark?.data).toMatchObject({ command: "sleep 2", exit_code: 3 });
  });

  test("an operation in progress has no end; one whose start was dropped begins at its recorded time", () => {
    expect(marksOf([begun], [])).toMatchObject([{ endMs: undefined }]);
    const late = { ...ended, data: { ...ended.data, elapsed_ms: 500 } };
    const [mark] = marksOf([late], []);
    expect((mark?.endMs ?? 0) - (mark?.startMs ?? 0)).toBe(500);
  });

  test("an execution that has left this server has not failed", () => {
    const left = event(3, "execution.ended", { process_id: "p", exit_code: null, signal: null, outcome: "left" });
    expect(marksOf([begun, left], [])).toMatchObject([{ outcome: "left this server", failed: false }]);
  });

  test("a handoff and a freeze show how long nothing ran", () => {
    const events = [
      event(5, "sandbox.taken_over", { from: "there", to: "here", paused_ms: 400 }),
      event(6, "sandbox.frozen", { reason: "lease_not_renewed" }),
      event(8, "sandbox.thawed", { frozen_ms: 2000 }),
    ];
    expect(marksOf(events, []).map(({ title, startMs, endMs }) => [title, (endMs ?? 0) - startMs])).toEqual([
      ["Resumed from there", 400],
      ["Frozen", 2000],
    ]);
  });

  test("operations appear once, although events report them too", () => {
    const operation = {
      id: "o",
      kind: "checkpoint",
      state: "done",
      startedAt: new Date(START_MS).toISOString(),
      elapsedMs: 90,
      pausedMs: 50,
      error: null,
    } as OperationRecord;
    const marks = marksOf([event(0, "operation.started", { id: "o" }), event(1, "operation.ended")], [operation]);
    expect(marks).toMatchObject([{ title: "Checkpoint", outcome: "paused for 50 ms" }]);
  });

  test("a live checkpoint shows its pause, and an unmet max_loss its reason", () => {
    const events = [
      event(1, "checkpoint.created", { size_bytes: 2048, left_running: true, paused_ms: 120 }),
      event(2, "checkpoint.created", { size_bytes: 2048 }),
      event(3, "durability.at_risk", { reason: "the disk is full" }),
      event(4, "durability.restored"),
      event(5, "snapshot.unproven", { name: "one", reason: "no answer" }),
    ];
    expect(marksOf(events, [])).toMatchObject([
      { title: "Checkpoint while running", outcome: expect.stringMatching(/^2.* KiB, paused for 120/) as string },
      { title: "Checkpoint" },
      { title: "max_loss not met", outcome: "the disk is full", failed: true },
      { title: "max_loss met again", failed: false },
      { title: "Test restore of one failed", outcome: "no answer", failed: true },
    ]);
  });

  test("events of unknown kinds, and any data, are shown", () => {
    const odd = [event(1, "sandbox.sang", { song: { verses: 3 } }), event(2, "snapshot.created", { name: { a: 1 } })];
    expect(marksOf(odd, [])).toMatchObject([{ kind: "other", title: "sandbox.sang" }, { kind: "saved" }]);
  });
});

describe("rows", () => {
  const mark = (startMs: number, endMs: number): Mark =>
    ({ id: `${startMs}-${endMs}`, kind: "execution", startMs, endMs }) as Mark;

  test("every visible mark is drawn once, and none overlap", () => {
    const times = fc.array(fc.tuple(fc.nat(10_000), fc.nat(3_000)), { maxLength: 200 });
    fc.assert(
      fc.property(times, (pairs) => {
        const marks = pairs.map(([startMs, length]) => mark(startMs, startMs + length));
        marks.sort((a, b) => a.startMs - b.startMs);
        const drawn = rowsOf(marks, { startMs: 0, endMs: 13_000 }, 800, 13_000);
        expect(drawn.flatMap((one) => one.marks)).toHaveLength(marks.length);
        for (const row of Map.groupBy(drawn, (one) => one.row).values()) {
          for (const [index, { x }] of row.entries()) {
            const before = row[index - 1];
            if (before !== undefined) expect(x).toBeGreaterThanOrEqual(before.x + before.width);
          }
        }
        expect(drawn.every(({ row }) => row < 5)).toBe(true);
      }),
    );
  });

  test("invisible parts are not drawn", () => {
    const marks = [mark(0, 10), mark(500, 510), mark(2000, 2010)];
    expect(rowsOf(marks, { startMs: 100, endMs: 1000 }, 800, 3000).map(({ marks: [first] }) => first.startMs)).toEqual([
      500,
    ]);
  });
});

describe("the axis", () => {
  const whole = { startMs: START_MS, endMs: START_MS + 3_600_000 };

  test("zooming keeps the position under the pointer, and stops at the available range", () => {
    const near = zoom(whole, 2, 0.5, whole);
    expect(near).toEqual({ startMs: START_MS + 900_000, endMs: START_MS + 2_700_000 });
    const far = zoom(near, 1 / 100, 0.5, whole);
    expect(far.endMs - far.startMs).toBeLessThanOrEqual(3_600_000 * 1.1);
  });

  test("moving stops at the edges", () => {
    const near = zoom(whole, 4, 0.5, whole);
    const end = pan(near, 100, whole);
    expect(end.endMs - end.startMs).toBe(900_000);
    expect(end.endMs).toBeGreaterThanOrEqual(whole.endMs);
    expect(end.endMs).toBeLessThan(whole.endMs + 100_000);
  });

  test("ticks are round, and no more than fit", () => {
    fc.assert(
      fc.property(fc.integer({ min: 20, max: 1e11 }), fc.integer({ min: 2, max: 12 }), (length, most) => {
        const range = { startMs: START_MS, endMs: START_MS + length };
        const found = ticks(range, most);
        expect(found.length).toBeLessThanOrEqual(most + 1);
        for (const tick of found) expect(tickText(tick, range)).not.toBe("");
      }),
    );
  });
});
