import fc from "fast-check";
import { expect, test } from "vitest";
import { collect } from "../../src/process/collect.ts";
import type { OutputChunk } from "../../src/process/frames.ts";
import { linesOf } from "../../src/process/lines.ts";

async function* cut(
  text: string,
  sizes: readonly number[],
  stream: OutputChunk["stream"] = "stdout",
): AsyncGenerator<OutputChunk> {
  const bytes = new TextEncoder().encode(text);
  for (let start = 0, turn = 0; start < bytes.length; turn += 1) {
    const end = start + (sizes[turn % sizes.length] ?? 1);
    yield { stream, data: bytes.subarray(start, end), offset: end };
    start = end;
  }
}

const sizes = fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1 });

test("lines are the same, however the bytes are cut, also in the middle of a character", async () => {
  const lines = fc.array(fc.string({ unit: "binary" }).map((text) => text.replaceAll(/[\r\n\uFEFF]/g, "")));
  await fc.assert(
    fc.asyncProperty(lines, sizes, async (texts, pieces) => {
      const found: string[] = [];
      for await (const { text } of linesOf(cut(texts.map((text) => `${text}\n`).join(""), pieces))) found.push(text);
      expect(found).toEqual(texts);
    }),
  );
});

test("each stream has its own lines; carriage returns are removed; an unterminated rest is a line", async () => {
  async function* both(): AsyncGenerator<OutputChunk> {
    yield* cut("a\r\nb", [9]);
    yield* cut("E", [9], "stderr");
    yield* cut("c\n\nlast", [9]);
  }
  const found: unknown[] = [];
  for await (const line of linesOf(both())) found.push(line);
  expect(found).toEqual([
    { stream: "stdout", text: "a" },
    { stream: "stdout", text: "bc" },
    { stream: "stdout", text: "" },
    { stream: "stdout", text: "last" },
    { stream: "stderr", text: "E" },
  ]);
});

test("collected output is bounded, and read to its end", async () => {
  const result = await collect(cut("äöü".repeat(1000), [7]), 100);
  expect(result.truncated).toBe(true);
  expect(result.stdout).toBe("äöü".repeat(1000).slice(0, 50));
  expect(await collect(cut("abc", [2]), 3)).toEqual({ stdout: "abc", stderr: "", truncated: false });
});
