import fc from "fast-check";
import { expect, test } from "vitest";
import { OutputText, plainText } from "../../../src/pages/sandbox/output-text.ts";

const encode = (text: string): Uint8Array => new TextEncoder().encode(text);

test("adjacent chunks of one stream are one part, and split characters are joined", () => {
  const text = new OutputText(1000);
  const euro = encode("€");
  text.push("stdout", euro.subarray(0, 1));
  text.push("stdout", euro.subarray(1));
  text.push("stderr", encode("bad"));
  text.push("stdout", encode("good"));
  expect(text.parts()).toEqual([
    { stream: "stdout", text: "€" },
    { stream: "stderr", text: "bad" },
    { stream: "stdout", text: "good" },
  ]);
});

test("only the newest output is kept, and dropped output is counted", () => {
  const text = new OutputText(10);
  for (let count = 0; count < 5; count += 1) text.push("stdout", encode("12345678"));
  expect(text.parts()).toEqual([{ stream: "stdout", text: "12345678" }]);
  expect(text.droppedBytes).toBe(32);
});

test("terminal sequences are removed", () => {
  expect(
    plainText("\u001B[31mred\u001B[0m \u001B]0;title\u0007\u001B]8;;http://x\u001B\\link\r\nnext\u0007\u0000"),
  ).toBe("red link\nnext");
});

test("only line ends and tabs remain of a program's control characters", () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
      const text = new OutputText(1000);
      text.push("stdout", bytes);
      // oxlint-disable-next-line no-control-regex
      for (const part of text.parts()) expect(part.text).not.toMatch(/[\u0000-\u0008\u000B\u000C\u000E-\u001F\u007F]/);
    }),
  );
});
