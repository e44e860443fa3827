import { once } from "node:events";
import { expect, test } from "vitest";
import { sendOutput } from "../../../../src/gateway/http/output-answer.ts";
import { CollectedStream } from "../../../../src/manager/processes/collected-stream.ts";
import { OutputBudget } from "../../../../src/manager/processes/output-budget.ts";
import { eventually } from "../../../../../../test/kit/eventually.ts";

const KIB = 1024;
const never = new AbortController().signal;
const RESULT = {
  process_id: "p",
  exit_code: 0,
  signal: null,
  truncated: false,
  timed_out: false,
  hint: null,
  elapsed_ms: 1,
  stdout_encoding: "base64",
  stderr_encoding: "utf8",
} as const;

async function answerOf(options: { isWanted: () => boolean; signal?: AbortSignal }) {
  const budget = new OutputBudget(64 * 1024 * KIB);
  const share = budget.open();
  const [stdout, stderr] = [new CollectedStream(share, 0), new CollectedStream(share, 0)];
  await stdout.append(Buffer.alloc(4096 * KIB), never);
  const output = { stdout, stderr, truncated: false, release: () => share.release() };
  const { body } = sendOutput(RESULT, output, { signal: never, lookMs: 20, ...options });
  return { budget, body };
}

test("a client that reads none of its response is cut off when others wait for the memory", async () => {
  let isWanted = false;
  let looks = 0;
  const { budget, body } = await answerOf({ isWanted: () => (looks++, isWanted) });
  body.once("readable", () => {});
  await eventually("it was looked at several times", () => looks > 3);
  expect(body.destroyed).toBe(false);
  isWanted = true;
  const [error] = (await once(body, "error").catch((thrown: unknown) => [thrown])) as [unknown];
  expect(error).toMatchObject({ code: "timeout", message: expect.stringContaining("too slowly") as unknown });
  expect(budget.heldBytes).toBe(0);
});

test("memory is released while the response is read", async () => {
  const { budget, body } = await answerOf({ isWanted: () => false });
  let text = "";
  const held: number[] = [];
  for await (const piece of body) {
    text += String(piece);
    held.push(budget.heldBytes);
  }
  expect(JSON.parse(text)).toMatchObject({ process_id: "p", stderr: "" });
  expect(held[held.length >> 1]).toBeLessThan(3000 * KIB);
  expect(budget.heldBytes).toBe(0);
});

test("a response whose client disconnected before it begins holds nothing", async () => {
  const { budget, body } = await answerOf({ isWanted: () => false, signal: AbortSignal.abort() });
  if (!body.closed) await once(body, "close");
  expect(budget.heldBytes).toBe(0);
});

test("output of single bytes uses memory for its length only", async () => {
  const budget = new OutputBudget(1024 * KIB);
  const stream = new CollectedStream(budget.open(), 0);
  for (let n = 0; n < 1000; n++) await stream.append(Buffer.from([65 + (n % 26)]), never);
  expect([stream.bytes, budget.heldBytes]).toEqual([1000, 64 * KIB]);
  expect([...stream.take("utf8")].join("").slice(0, 30)).toBe("ABCDEFGHIJKLMNOPQRSTUVWXYZABCD");
});

test.each([
  ["a little colour", "\u001b[31mred\u001b[0m", true],
  ["one bell", "\u0007", true],
  ["a page of nothing but escapes", "\u001b".repeat(5000), false],
  ["a zero", "text\u0000text", false],
])("whether it is text: %s", async (_, text, isText) => {
  const stream = new CollectedStream(new OutputBudget(1024 * KIB).open(), 0);
  await stream.append(Buffer.from(text), never);
  expect(stream.isText(false)).toBe(isText);
});

test.each([
  [[0xc3], 0, false, false],
  [[0xc3], 0, true, true],
  [[0xbc, 0x61], 0, false, false],
  [[0xbc, 0x61], 5, false, true],
  [[0xff, 0x61], 5, true, false],
])(
  "half a character at an end is text only where output is missing: %j from %i, cut: %s",
  async (bytes, from, cut, is) => {
    const stream = new CollectedStream(new OutputBudget(1024 * KIB).open(), from);
    for (const byte of bytes) await stream.append(Buffer.from([byte]), never);
    expect(stream.isText(cut)).toBe(is);
  },
);
