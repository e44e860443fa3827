import { expect, test } from "vitest";
import type { Frame } from "../../../src/manager/interpreter/frames.ts";
import { MarkedFrameReader } from "../../../src/manager/interpreter/marked-frames.ts";

const ID = "0b0cf2c1-0000-4000-8000-000000000000";
const OTHER = ID.replace("0b", "1c");
const mark = (frame: object, id = ID): string => `\x1e\x1e${id}${JSON.stringify(frame)}\x1e`;
const START = mark({ f: "start", id: ID, n: 1 });
const END = mark({ f: "end", id: ID, n: 1, status: "ok" });

type Piece = readonly [stream: "stdout" | "stderr", text: string];

function frames(pieces: readonly Piece[], options: { only?: string; size?: number; begun?: boolean } = {}): Frame[] {
  const reader = new MarkedFrameReader(options);
  return pieces.flatMap(([stream, text]) => {
    const bytes = Buffer.from(text);
    const size = options.size ?? bytes.length;
    const cuts = Array.from({ length: Math.ceil(bytes.length / size) }, (_, at) =>
      bytes.subarray(at * size, (at + 1) * size),
    );
    return cuts.flatMap((data) => [...reader.read({ stream, offset: 0, data })].map(({ frame }) => frame));
  });
}

/** Output joined, and the other frames by name. */
function told(all: readonly Frame[]): string[] {
  const joined: string[] = [];
  for (const frame of all) {
    const last = joined.at(-1);
    if (frame.f !== "out") joined.push(frame.f);
    else if (last?.startsWith(`${frame.s}:`) === true) joined[joined.length - 1] = last + frame.d;
    else joined.push(`${frame.s}:${frame.d}`);
  }
  return joined;
}

const CELL: readonly Piece[] = [
  ["stderr", `before${START}oh`],
  ["stdout", `before${START}grüße\x1e${mark({ f: "result", main: true, formats: { text: "1" } })}more`],
  ["stderr", END],
  ["stdout", `${END}after`],
];

test.each([1, 2, 5, 1000])("a cell is the same in chunks of %i bytes", (size) => {
  expect(told(frames(CELL, { size, only: ID }))).toEqual([
    "start",
    "stderr:oh",
    "stdout:grüße\x1e",
    "result",
    "stdout:more",
    "end",
  ]);
});

test("a long result is complete, although the end of stderr arrives between its parts", () => {
  const result = JSON.stringify({ f: "result", main: true, formats: { text: "long" } });
  const part = (d: string): string => mark({ f: "part", d });
  const all = frames([
    ["stderr", START],
    ["stdout", START + part(result.slice(0, 20))],
    ["stderr", END],
    ["stdout", part(result.slice(20)) + mark({ f: "whole" }) + END],
  ]);
  expect(all).toContainEqual(JSON.parse(result));
  expect(told(all)).toEqual(["start", "result", "end"]);
});

test("marks of another cell, and lines that look like marks, are output", () => {
  const forged = `${mark({ f: "end", id: OTHER, n: 1, status: "ok" }, OTHER)}\x1e\x1e{"f":"end"}\x1e\x1e\x1e${"x".repeat(100_000)}`;
  const all = told(
    frames(
      [
        ["stdout", START + forged + END],
        ["stderr", START + END],
      ],
      { only: ID },
    ),
  );
  expect(all).toEqual(["start", `stdout:${forged}`, "end"]);
});

test("a cell whose beginning was read before is read from its middle", () => {
  expect(
    told(
      frames(
        [
          ["stdout", `middle${END}`],
          ["stderr", END],
        ],
        { only: ID, begun: true },
      ),
    ),
  ).toEqual(["stdout:middle", "end"]);
});

test("without a given cell, the last one that began counts", () => {
  const second = mark({ f: "start", id: OTHER, n: 2 }, OTHER);
  expect(told(frames([["stdout", `${START}a${second}b`]]))).toEqual(["start", "stdout:a", "start", "stdout:b"]);
});

test("a mark without an end does not hold back output forever", () => {
  const all = told(frames([["stdout", `${START}\x1e\x1e${"y".repeat(200_000)}`]], { only: ID, size: 10_000 }));
  expect(all[1]?.length).toBeGreaterThan(190_000);
});
