import { expect, test } from "vitest";
import { didYouMean, nearestName } from "../../src/support/nearest-name.ts";

const KNOWN = ["host", "port", "lease-ttl", "max-sandboxes", "profile.compose-e2e"];

test.each([
  ["prot", "port"],
  ["hots", "host"],
  ["lease_ttl", "lease-ttl"],
  ["leasettl", "lease-ttl"],
  ["max-sandbox", "max-sandboxes"],
  ["compose-e2e", "profile.compose-e2e"],
  ["profile.compose_e2", "profile.compose-e2e"],
])("%s: %s was meant", (given, meant) => {
  expect(nearestName(given, KNOWN)).toBe(meant);
});

test.each(["", "x", "colour", "zzzz"])("nothing is near %j", (given) => {
  expect(nearestName(given, KNOWN)).toBeUndefined();
  expect(didYouMean(given, KNOWN)).toBe("");
});

test("nothing is near a text that is far too long", () => {
  expect(nearestName("host".repeat(10_000), KNOWN) ?? "nothing").toBe("nothing");
});

test("one letter is near no other letter", () => {
  expect(nearestName("d", ["a", "b"])).toBeUndefined();
});

test("as a sentence", () => {
  expect(didYouMean("hst", KNOWN)).toBe(" Did you mean host?");
});
