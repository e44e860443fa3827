import { expect, test } from "vitest";
import { choosePlacement, type PlacementCandidate } from "../../src/backends/placement.ts";

const up = { ok: true, summary: "fine" };
const down = { ok: false, summary: "no engine", remedy: "install one" };

function candidate(name: string, more: Partial<PlacementCandidate> = {}): PlacementCandidate {
  return { name, selfHosted: false, health: up, ...more };
}
const costs = (perHour: number, currency = "EUR"): Partial<PlacementCandidate> => ({ cost: { perHour, currency } });

test("explicit picks the first available backend, and reports the skipped ones with reasons", () => {
  const choice = choosePlacement([candidate("a", { health: down }), candidate("b"), candidate("c")], "explicit");
  expect(choice).toEqual({
    backend: "b",
    strategy: "explicit",
    reason: "the first that is available",
    passed_over: [
      { backend: "a", reason: "not available: no engine" },
      { backend: "c", reason: "listed later" },
    ],
  });
});

test("explicit picks the named backend, and no other if that is unavailable", () => {
  const candidates = [candidate("a"), candidate("b")];
  expect(choosePlacement(candidates, "explicit", "b")).toMatchObject({
    backend: "b",
    reason: "named in the request",
    passed_over: [{ backend: "a", reason: "the request names b" }],
  });
  const without = [candidate("a"), candidate("b", { health: down })];
  expect(() => choosePlacement(without, "explicit", "b")).toThrow(
    expect.objectContaining({ code: "backend_unavailable", hint: "install one" }),
  );
  expect(() => choosePlacement(candidates, "explicit", "z")).toThrow(
    expect.objectContaining({ code: "bad_request", hint: "Use a, b." }),
  );
});

test("prefer-self-hosted picks our own machines first, others only if none of ours is available", () => {
  const candidates = [
    candidate("cloud"),
    candidate("ours", { selfHosted: true }),
    candidate("far", { selfHosted: true }),
  ];
  expect(choosePlacement(candidates, "prefer-self-hosted")).toMatchObject({
    backend: "ours",
    passed_over: [
      { backend: "cloud", reason: "not self-hosted" },
      { backend: "far", reason: "listed later" },
    ],
  });
  const broken = candidates.map((one) => (one.selfHosted ? { ...one, health: down } : one));
  expect(choosePlacement(broken, "prefer-self-hosted")).toMatchObject({
    backend: "cloud",
    reason: expect.stringContaining("no self-hosted"),
  });
});

test("lowest-cost picks the cheapest available backend with a price in the same currency", () => {
  const candidates = [
    candidate("silent"),
    candidate("dear", costs(3)),
    candidate("cheap", costs(1)),
    candidate("same", costs(1)),
    candidate("foreign", costs(0.5, "USD")),
    candidate("broken", { ...costs(0), health: down }),
  ];
  expect(choosePlacement(candidates, "lowest-cost")).toEqual({
    backend: "cheap",
    strategy: "lowest-cost",
    reason: "the cheapest at 1 EUR per hour",
    passed_over: [
      { backend: "silent", reason: "has no price" },
      { backend: "dear", reason: "costs 3 EUR per hour" },
      { backend: "same", reason: "costs 1 EUR per hour, and is listed later" },
      { backend: "foreign", reason: "costs 0.5 USD per hour, which is not compared with EUR" },
      { backend: "broken", reason: "not available: no engine" },
    ],
  });
  expect(choosePlacement([candidate("a"), candidate("b")], "lowest-cost")).toMatchObject({ backend: "a" });
});

test("no candidate, or no available one, is an error with the reasons", () => {
  expect(() => choosePlacement([], "explicit")).toThrow(expect.objectContaining({ code: "bad_request" }));
  expect(() => choosePlacement([candidate("a", { health: down })], "lowest-cost")).toThrow(
    /a is not available: no engine/,
  );
});
