import { expect, it } from "vitest";
import { aboutSchema } from "../src/head.ts";
import { formatKeep, parseKeep } from "../src/keep-text.ts";
import { keepSchema } from "../src/retention.ts";

it.each([
  ["3", { keep_last: 3 }],
  ["last=3", { keep_last: 3 }],
  ["last=3,hourly=24,daily=7", { keep_last: 3, hourly: 24, daily: 7 }],
  ["daily=7, hourly=0", { hourly: 0, daily: 7 }],
])("%s says what stays", (text, keep) => {
  expect(parseKeep(text)).toEqual(keep);
  expect(keepSchema.parse(keep)).toEqual(keep);
  expect(parseKeep(formatKeep(keepSchema.parse(keep)))).toEqual(keep);
});

it.each([
  "",
  "0",
  "last=0",
  "last",
  "last=",
  "last=-1",
  "last=1.5",
  "weekly=3",
  "last=1,last=2",
  "constructor=1",
  "last=1;",
])("%j says nothing", (text) => {
  expect(parseKeep(text)).toBeUndefined();
});

it("keeps everything of a sandbox whose stored rule is unknown", () => {
  expect(aboutSchema.parse({}).retention).toBeNull();
  const { retention } = aboutSchema.parse({ retention: { checkpoints: { keep_last: 1, weekly: 4 } } });
  expect(retention?.checkpoints?.keep_last).toBe(1_000_000);
  expect(retention?.snapshots?.keep_last).toBe(1_000_000);
});
