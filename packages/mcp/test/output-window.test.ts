import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { OutputWindow } from "../src/output-window.ts";

function windowOf(text: string, budget: number, keepEnd: boolean, pieces: readonly number[] = [3]): OutputWindow {
  const window = new OutputWindow(0, budget, { keepEnd });
  const bytes = Buffer.from(text);
  for (let at = 0, index = 0; at < bytes.length; index += 1) {
    const end = Math.min(bytes.length, at + (pieces[index % pieces.length] ?? 1));
    window.add(bytes.subarray(at, end), end);
    at = end;
  }
  return window;
}

describe("a window on output", () => {
  test("has everything that fits", () => {
    expect(windowOf("hello", 10, true).take(true)).toEqual({ text: "hello", nextOffset: 5, gap: undefined });
    expect(windowOf("hello", 5, false).take(true)).toEqual({ text: "hello", nextOffset: 5, gap: undefined });
  });

  test("keeps the beginning and the end, and reports the gap", () => {
    const { text, gap, nextOffset } = windowOf("0123456789abcdef", 8, true).take(true);
    expect([gap, nextOffset]).toEqual([{ from: 4, to: 12 }, 16]);
    expect(text).toBe("0123\n[… 8 bytes left out, from offset 4 …]\ncdef");
  });

  test("ignores output that it already has, and begins later if older output was dropped", () => {
    const window = new OutputWindow(0, 100, { keepEnd: false });
    window.skipTo(10);
    window.add(Buffer.from("abc"), 13);
    window.add(Buffer.from("abcdef"), 16);
    window.skipTo(50);
    expect([window.start, window.take(false)]).toEqual([10, { text: "abcdef", nextOffset: 16, gap: undefined }]);
  });

  test("half a character at the end waits for the next read, unless nothing follows", () => {
    const half = Buffer.from("aä").subarray(0, 2);
    const window = new OutputWindow(0, 100, { keepEnd: false });
    window.add(half, 2);
    expect(window.take(false)).toMatchObject({ text: "a", nextOffset: 1 });
    expect(window.take(true)).toMatchObject({ text: "a\uFFFD", nextOffset: 2 });
  });

  test("consecutive reads return the whole text, whatever its characters and pieces", () => {
    const sizes = fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1 });
    const property = fc.property(
      fc.string({ unit: "grapheme" }),
      fc.integer({ min: 4, max: 12 }),
      sizes,
      (text, budget, pieces) => {
        const bytes = Buffer.from(text);
        let read = "";
        for (let offset = 0; offset < bytes.length;) {
          const window = windowOf(bytes.subarray(offset).toString(), budget, false, pieces);
          const { text: part, nextOffset } = window.take(true);
          expect(nextOffset).toBeGreaterThan(0);
          read += part;
          offset += nextOffset;
        }
        expect(read).toBe(text);
      },
    );
    fc.assert(property);
  });

  test("stays within its budget, whatever is added", () => {
    const property = fc.property(
      fc.uint8Array({ maxLength: 500 }),
      fc.integer({ min: 8, max: 64 }),
      (bytes, budget) => {
        const window = new OutputWindow(0, budget, { keepEnd: true });
        for (let end = 1; end <= bytes.length; end += 1) window.add(Buffer.from(bytes.subarray(end - 1, end)), end);
        const { gap, nextOffset } = window.take(true);
        expect(nextOffset).toBe(bytes.length);
        expect(bytes.length - (gap === undefined ? 0 : gap.to - gap.from)).toBeLessThanOrEqual(budget);
      },
    );
    fc.assert(property);
  });
});
