import { expect, test } from "vitest";
import { parseDurationMs } from "../src/index.ts";

test.each([
  ["1s", 1000],
  ["90s", 90_000],
  ["15m", 900_000],
  ["4h", 14_400_000],
  ["7d", 604_800_000],
  ["3650d", 315_360_000_000],
])("%s is %d ms", (text, expectedMs) => {
  expect(parseDurationMs(text)).toBe(expectedMs);
});

test.each([
  "",
  "0h",
  "4hours",
  "4",
  "h",
  "-1s",
  "+1s",
  "1.5h",
  " 1s",
  "1s ",
  "1S",
  "1e3s",
  "٣s",
  "1000000000000d",
  "3651d",
  "99999999d",
])("%j is refused", (text) => {
  expect(() => parseDurationMs(text)).toThrow(expect.objectContaining({ code: "bad_request" }));
});
