import type { CellAnswer } from "@sandboxer/protocol";
import { expect, test } from "vitest";
import { collectedCell } from "../../../src/gateway/http/cell-answer.ts";
import { StreamAnswer } from "../../../src/gateway/http/handler.ts";
import type { Cell, CellEvent } from "../../../src/manager/interpreter/run-cell.ts";
import { OutputBudget } from "../../../src/manager/processes/output-budget.ts";

const MIB = 1024 * 1024;

type Step = CellEvent extends infer Event ? (Event extends CellEvent ? Omit<Event, "offset"> : never) : never;

async function answerTo(steps: readonly Step[], options: { maxBytes?: number; signal?: AbortSignal } = {}) {
  const budget = new OutputBudget(64 * MIB);
  async function* events(): AsyncGenerator<CellEvent> {
    for (const step of [...steps, { event: "end", status: "ok", executionCount: 1 } as const]) {
      yield { ...step, offset: 0 };
    }
  }
  const cell: Cell = { id: "cell", interpreter: { id: "python" } as never, timedOut: false, events: events() };
  const { signal = new AbortController().signal, maxBytes = 64 * MIB } = options;
  const answer = collectedCell(cell, { maxBytes, signal, share: budget.open(), isWanted: () => false });
  return { budget, answer: await answer };
}

async function textOf({ body }: StreamAnswer): Promise<string> {
  return Buffer.concat((await body.toArray()).map((piece) => Buffer.from(piece as Buffer))).toString();
}

test("a large answer is sent in pieces, and counts until it was sent", async () => {
  const zeros = "\u0000".repeat(4000);
  const result = { main: true, text: "x".repeat(1000) };
  const exception = { name: "Error", value: "v", traceback: "t".repeat(MIB) };
  const steps: Step[] = [
    ...Array.from({ length: 100 }, () => ({ event: "stdout", text: zeros }) as const),
    { event: "stderr", text: 'grüße "1"\n' },
    { event: "result", result },
    { event: "result", result },
    { event: "exception", exception },
  ];
  const { budget, answer } = await answerTo(steps);
  if (!(answer instanceof StreamAnswer)) throw new Error("It is whole in memory.");
  expect(budget.heldBytes).toBeGreaterThan(400_000 + MIB);
  const told = JSON.parse(await textOf(answer)) as CellAnswer;
  expect(told).toMatchObject({ cell_id: "cell", context_id: "python", status: "ok", truncated: false, exception });
  expect([told.stdout === zeros.repeat(100), told.stderr, told.results]).toEqual([
    true,
    'grüße "1"\n',
    [result, result],
  ]);
  expect(budget.heldBytes).toBe(0);
});

test("many short texts use memory for their content, and only the first exception is kept", async () => {
  const { answer, budget } = await answerTo([
    ...Array.from({ length: 2000 }, () => ({ event: "stdout", text: "x" }) as const),
    { event: "exception", exception: { name: "First", value: "", traceback: "" } },
    { event: "exception", exception: { name: "Second", value: "", traceback: "" } },
  ]);
  if (!(answer instanceof StreamAnswer)) throw new Error("It is whole in memory.");
  expect(budget.heldBytes).toBeGreaterThan(100_000);
  expect(JSON.parse(await textOf(answer))).toMatchObject({ stdout: "x".repeat(2000), exception: { name: "First" } });
});

test("a small answer, and an abandoned one, hold no memory", async () => {
  const small = await answerTo([{ event: "stdout", text: "hello\n" }], { maxBytes: 3 });
  expect(small.answer).toMatchObject({ stdout: "hel", stderr: "", results: [], exception: null, truncated: true });
  expect(small.budget.heldBytes).toBe(0);
  const big = [{ event: "stdout", text: "x".repeat(MIB) } as const];
  const gone = new AbortController();
  const left = await answerTo(big, { signal: gone.signal });
  gone.abort();
  if (left.answer instanceof StreamAnswer) await left.answer.body.toArray().catch(() => {});
  expect(left.budget.heldBytes).toBe(0);
});
