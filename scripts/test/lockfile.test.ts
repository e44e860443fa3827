import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { missingOptional } from "../complete-lockfile.mjs";

const lockfile = JSON.parse(readFileSync(new URL("../../package-lock.json", import.meta.url), "utf8")) as {
  packages: Record<string, { resolved?: string; link?: boolean }>;
};

test("npm ci accepts the lockfile: every optional package has an entry (else run `npm run lockfile`)", () => {
  expect(missingOptional(lockfile.packages)).toEqual([]);
});

test("the lockfile names no download addresses", () => {
  const resolved = Object.values(lockfile.packages).map((entry) => entry.resolved ?? "");
  expect(resolved.filter((address) => address.includes(":"))).toEqual([]);
});
