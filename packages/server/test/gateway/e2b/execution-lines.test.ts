import type { Readable } from "node:stream";
import { expect, onTestFinished, test, vi } from "vitest";
import { executionLines } from "../../../src/gateway/e2b/interpreter/execution-lines.ts";
import type { CellEvent } from "../../../src/manager/interpreter/run-cell.ts";

const STARTED = { event: "started", executionCount: 3 } as CellEvent;
const END = { event: "end", status: "ok" } as CellEvent;
const COUNT = { type: "number_of_executions", execution_count: 3 };

/** The lines so far. */
function linesOf(body: Readable): object[] {
  const lines: object[] = [];
  body.on("data", (text: Buffer) => {
    for (const line of text.toString().trimEnd().split("\n")) lines.push(JSON.parse(line) as object);
  });
  return lines;
}

function start(events: AsyncIterable<CellEvent>, gone = new AbortController()) {
  const ended = Promise.withResolvers<void>();
  const body = executionLines(events, { signal: gone.signal, onClose: ended.resolve });
  return { lines: linesOf(body), ended: ended.promise };
}

test("a cell that says nothing keeps its connection alive", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  onTestFinished(() => void vi.useRealTimers());
  const quiet = Promise.withResolvers<void>();
  const cell = start(
    (async function* () {
      yield STARTED;
      await quiet.promise;
      yield END;
    })(),
  );
  await vi.waitFor(() => expect(cell.lines).toHaveLength(1));
  await vi.advanceTimersByTimeAsync(11_000);
  await vi.waitFor(() => expect(cell.lines).toEqual([COUNT, { type: "keepalive" }, { type: "keepalive" }]));
  quiet.resolve();
  await cell.ended;
  expect(cell.lines.at(-1)).toEqual({ type: "end_of_execution" });
});

test.each([
  ["its interpreter dies", [STARTED, { ...END, status: "died" } as CellEvent]],
  ["its sandbox is paused or moved", [STARTED]],
])("a cell ends unexpectedly when %s", async (_, events) => {
  const cell = start(each(events));
  await cell.ended;
  expect(cell.lines).toEqual([COUNT, { type: "unexpected_end_of_execution" }]);
});

test("a cell whose server fails ends unexpectedly, and a client that leaves is noticed", async () => {
  const failing = start(
    (async function* () {
      yield STARTED;
      throw new Error("lost");
    })(),
  );
  await failing.ended;
  expect(failing.lines.at(-1)).toEqual({ type: "unexpected_end_of_execution" });
  const gone = new AbortController();
  const endless = start(
    (async function* () {
      yield STARTED;
      await new Promise((_, reject) => gone.signal.addEventListener("abort", reject));
    })(),
    gone,
  );
  await vi.waitFor(() => expect(endless.lines).toEqual([COUNT]));
  gone.abort();
  await endless.ended;
});

async function* each(events: readonly CellEvent[]): AsyncGenerator<CellEvent> {
  yield* events;
}
