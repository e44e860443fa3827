import { describe, expect, test } from "vitest";
import { ContextActivity } from "../../../src/manager/interpreter/context-activity.ts";
import { FrameReader, type Frame } from "../../../src/manager/interpreter/frames.ts";
import { contextTraits, parseProcessKey, processKey } from "../../../src/manager/processes/process-key.ts";

const START = '{"f":"start","id":"a","n":1}\n';
const END = '{"f":"end","id":"a","n":1,"status":"ok"}\n';

function frames(text: string, pieces = 1): Frame[] {
  const reader = new FrameReader();
  const bytes = Buffer.from(text);
  const size = Math.max(1, Math.ceil(bytes.length / pieces));
  const all: Frame[] = [];
  for (let offset = 0; offset < bytes.length; offset += size) {
    const data = bytes.subarray(offset, offset + size);
    all.push(...[...reader.read({ stream: "stdout", offset, data })].map(({ frame }) => frame));
  }
  return all;
}

test("frames are the same wherever their bytes are cut", () => {
  const text = `${START}{"f":"out","s":"stdout","d":"grüße"}\n${END}`;
  for (const pieces of [1, 2, 7, 40, text.length]) {
    expect(frames(text, pieces).map(({ f }) => f)).toEqual(["start", "out", "end"]);
  }
});

test("a frame in parts is joined, and its offset is that of its last byte", () => {
  const whole = JSON.stringify({ f: "result", main: true, formats: { text: "x".repeat(100_000) } });
  const parts = whole.match(/.{1,20000}/gsu)?.map((d) => `${JSON.stringify({ f: "part", d })}\n`) ?? [];
  const text = `${parts.join("")}{"f":"whole"}\n`;
  const received = [...new FrameReader().read({ stream: "stdout", offset: 7, data: Buffer.from(text) })];
  expect(received).toMatchObject([{ frame: { f: "result" }, offset: 7 + text.length }]);
});

describe("whatever a program writes between frames is dropped, and the next frame is read", () => {
  const junk: Record<string, string> = {
    text: "hello\n",
    "an empty line": "\n",
    "broken JSON": '{"f":"out","s":\n',
    "another value": '[1]\n"x"\nnull\n12\n',
    "an unknown frame": '{"f":"shutdown"}\n',
    "wrong types": '{"f":"start","id":7,"n":"1"}\n{"f":"end","id":"a","n":-1,"status":"ok"}\n',
    "an unknown stream": '{"f":"out","s":"stdin","d":"x"}\n',
    "a line without end for a megabyte": `${"x".repeat(1_000_000)}\n`,
    "parts that are nothing": '{"f":"part","d":"{\\"f\\":"}\n{"f":"whole"}\n',
    "parts within parts": `${JSON.stringify({ f: "part", d: '{"f":"part","d":"x"}' })}\n{"f":"whole"}\n`,
    "an end of no parts": '{"f":"whole"}\n',
    "parts without end": `${JSON.stringify({ f: "part", d: "x".repeat(60_000) })}\n`.repeat(300),
    "bytes that are no text": "\u0000\u0001\n",
    "deep nesting": `${"[".repeat(30_000)}${"]".repeat(30_000)}\n`,
  };
  test.each(Object.entries(junk))("%s", (_, text) => {
    expect(frames(`${text}${START}${text}${END}`, 3).map(({ f }) => f)).toEqual(["start", "end"]);
  });
});

test("the interpreter's own stderr is no frame", () => {
  expect([...new FrameReader().read({ stream: "stderr", offset: 0, data: Buffer.from(START) })]).toEqual([]);
});

test("the unread output of an interpreter shows whether it runs a cell", () => {
  let ends = 0;
  const activity = new ContextActivity(() => (ends += 1));
  const see = (offset: number, text: string): void =>
    activity.see({ stream: "stdout", offset, data: Buffer.from(text) });
  see(0, START);
  expect(activity.cell).toBe("a");
  see(START.length, END.slice(0, 10));
  see(START.length + 10, END.slice(10));
  expect([activity.cell, ends]).toEqual([undefined, 1]);
  activity.recall("a");
  expect(activity.cell).toBe(undefined);
});

test("an interrupt waits for the beginning of a cell that was sent, and is nothing without one", () => {
  const activity = new ContextActivity(() => {});
  let interrupts = 0;
  const interrupt = (): void => activity.interrupt(() => (interrupts += 1));
  interrupt();
  activity.sent("b");
  interrupt();
  // Another cell still runs.
  activity.note({ f: "end", id: "a", n: 1, status: "ok" });
  expect([interrupts, activity.cell]).toEqual([0, "b"]);
  activity.note({ f: "start", id: "b", n: 2 });
  expect(interrupts).toBe(1);
  interrupt();
  expect(interrupts).toBe(2);
});

test("an interrupt is for its own cell, also when the next one was sent before that begins", () => {
  const activity = new ContextActivity(() => {});
  const interrupted: string[] = [];
  activity.sent("a");
  activity.interrupt(() => interrupted.push("a"));
  activity.sent("b");
  activity.note({ f: "start", id: "a", n: 1 });
  expect(interrupted).toEqual(["a"]);
  activity.note({ f: "end", id: "a", n: 1, status: "interrupted" });
  activity.note({ f: "start", id: "b", n: 2 });
  expect([interrupted, activity.cell]).toEqual([["a"], "b"]);
});

test("output in the middle of a cell means that one runs", () => {
  const activity = new ContextActivity(() => {});
  activity.see({ stream: "stdout", offset: 5, data: Buffer.from('"d":"x"}\n{"f":"out","s":"stdout","d":"y"}\n') });
  expect(activity.mayRun("any")).toBe(true);
});

test("a context's key has its facts, and other keys are not mistaken for one", () => {
  for (const workingFolder of [undefined, "/", "/a b:c\nd/é"]) {
    const traits = contextTraits("python", { language: "python", workingFolder });
    expect(parseProcessKey(processKey(traits))).toEqual(traits);
  }
  for (const key of ["context:python", "context:cobol:a:", "context:python:A:", "context:python:a:b", "x:context:"]) {
    expect([key, parseProcessKey(key)]).toEqual([key, undefined]);
  }
});
