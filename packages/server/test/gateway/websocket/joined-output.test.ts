import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { OutputFrame } from "@sandboxer/protocol";
import { JoinedOutput } from "../../../src/gateway/websocket/joined-output.ts";

let sent: string[] = [];
let output: JoinedOutput;
let offset = 0;

beforeEach(() => {
  vi.useFakeTimers();
  sent = [];
  offset = 0;
  output = new JoinedOutput(({ stream, offset: at, data }) =>
    sent.push(`${stream}@${at}:${Buffer.from(data).toString()}`),
  );
});
afterEach(() => void vi.useRealTimers());

function take(text: string, stream: OutputFrame["stream"] = "stdout"): void {
  output.take({ stream, offset, data: Buffer.from(text) });
  offset += text.length;
}

test("one print in two pieces is one event", () => {
  take("Hello");
  take("\n");
  expect(sent).toEqual(["stdout@0:Hello\n"]);
});

test("complete lines do not wait", () => {
  take("one\n");
  take("two\n");
  expect(sent).toEqual(["stdout@0:one\n", "stdout@4:two\n"]);
});

test("half a line is sent after a millisecond, with everything that arrived by then", () => {
  take("a");
  take("b");
  expect(sent).toEqual([]);
  vi.advanceTimersToNextTimer();
  take("c");
  vi.runAllTimers();
  expect(sent).toEqual(["stdout@0:abc"]);
  take("d");
  vi.runAllTimers();
  expect(sent).toEqual(["stdout@0:abc", "stdout@3:d"]);
});

test("the two streams keep their order, and gaps are not joined", () => {
  take("out");
  take("err", "stderr");
  offset += 10;
  take("later", "stderr");
  output.flush();
  expect(sent).toEqual(["stdout@0:out", "stderr@3:err", "stderr@16:later"]);
});

test("a large part of a line is not held back", () => {
  take("x".repeat(5_000));
  expect(sent).toHaveLength(1);
});
