import type { OperationRecord } from "@sandboxer/client";
import { expect, test } from "vitest";
import { operationTitle, transferOf } from "../../src/format/operation.ts";

function operation(changes: Partial<OperationRecord>): OperationRecord {
  return { elapsedMs: 0, phases: {}, doneBytes: null, totalBytes: null, ...changes } as OperationRecord;
}

test("the rate is that of the current phase", () => {
  const shown = transferOf(operation({ elapsedMs: 3000, phases: { save: 2000 }, doneBytes: 500, totalBytes: 2000 }));
  expect(shown).toEqual({ doneBytes: 500, totalBytes: 2000, bytesPerSecond: 500, secondsLeft: 3 });
});

test("unknown facts are left out", () => {
  expect(transferOf(operation({ elapsedMs: 1000 }))).toBeUndefined();
  const shown = transferOf(operation({ elapsedMs: 1000, doneBytes: 0, totalBytes: null }));
  expect(shown).toMatchObject({ totalBytes: undefined, secondsLeft: undefined });
  expect(transferOf(operation({ elapsedMs: 1000, doneBytes: 30, totalBytes: 20 }))?.secondsLeft).toBe(0);
  expect(operationTitle("of a newer server")).toBe("of a newer server");
});
