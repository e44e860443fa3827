import type { SandboxRecord, SnapshotRecord } from "@sandboxer/client";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { growForest, type LineageNode } from "../../../src/pages/lineage/forest.ts";
import { countNodes, findPath, matchingFamilies, walk } from "../../../src/pages/lineage/select.ts";

let made = 0;

function sandbox(id: string, snapshotId: string | null = null, sandboxId: string | null = null): SandboxRecord {
  return { ...common(id), origin: { snapshotId, sandboxId } } as unknown as SandboxRecord;
}

function snapshot(id: string, sandboxId: string, parent: string | null = null): SnapshotRecord {
  return { ...common(id), sandboxId, parent } as unknown as SnapshotRecord;
}

function common(id: string): object {
  made += 1;
  return { id, name: null, backend: "fake", labels: {}, createdAt: new Date(made * 1000).toISOString() };
}

/** `a(b(c) d)`: children in brackets. */
function draw(nodes: readonly LineageNode[]): string {
  return nodes
    .map(({ item, children }) => item.record.id + (children.length === 0 ? "" : `(${draw(children)})`))
    .join(" ");
}

describe("growForest", () => {
  test("snapshots are below the sandbox they were taken from, sandboxes below the snapshot they were created from", () => {
    const forest = growForest(
      [sandbox("a"), sandbox("b", "s1", "a"), sandbox("c", "s1", "a")],
      [snapshot("s1", "a"), snapshot("s2", "b", "s1")],
    );
    expect(draw(forest)).toBe("a(s1(b(s2) c))");
  });

  test("a sandbox whose source was deleted is placed below its nearest ancestor, or is a root", () => {
    expect(draw(growForest([sandbox("b", "gone", "a")], []))).toBe("b");
    expect(draw(growForest([sandbox("a"), sandbox("b", "gone", "a")], []))).toBe("a(b)");
    expect(draw(growForest([], [snapshot("s1", "gone"), snapshot("s2", "gone too", "s1")]))).toBe("s1(s2)");
  });

  test("a sandbox that was rewound to its own snapshot stays above it", () => {
    const own = [snapshot("s0", "x"), snapshot("s1", "a", "s0"), snapshot("s2", "a", "s1")];
    expect(draw(growForest([sandbox("a", "s2")], own))).toBe("s0(a(s1 s2))");
    expect(draw(growForest([sandbox("a", "s1")], [snapshot("s1", "a", "s1")]))).toBe("a(s1)");
  });

  test("a snapshot is found by its name or its id", () => {
    const named = { ...snapshot("s1", "x"), name: "base" };
    expect(draw(growForest([sandbox("a", "base")], [named]))).toBe("s1(a)");
  });

  test("the newest family is first", () => {
    expect(draw(growForest([sandbox("old"), sandbox("new")], []))).toBe("new old");
  });

  test("cycles are cut at their oldest item", () => {
    const [a, b, c] = [sandbox("a", null, "c"), sandbox("b", null, "a"), sandbox("c", null, "b")];
    expect(draw(growForest([c, a, b], []))).toBe("a(b(c))");
    expect(draw(growForest([sandbox("self", null, "self")], [snapshot("self", "none", "self")]))).toBe("self self");
  });

  test("whatever the records contain, each item appears once", () => {
    const id = fc.constantFrom("1", "2", "3", "4", "5", "6", "7", "gone");
    const idOrNone = fc.option(id);
    const createdAt = fc.constantFrom("2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z", "no time");
    const name = fc.option(id);
    const rest = { name, createdAt, backend: fc.constant("fake"), labels: fc.constant({}) };
    const sandboxes = fc.uniqueArray(
      fc.record({ ...rest, id, origin: fc.record({ snapshotId: idOrNone, sandboxId: idOrNone }) }),
      { selector: (record) => record.id },
    );
    const snapshots = fc.uniqueArray(fc.record({ ...rest, id, sandboxId: id, parent: idOrNone }), {
      selector: (record) => record.id,
    });
    fc.assert(
      fc.property(sandboxes, snapshots, (someSandboxes, someSnapshots) => {
        const forest = growForest(
          someSandboxes as unknown as SandboxRecord[],
          someSnapshots as unknown as SnapshotRecord[],
        );
        const keys = [...walk(forest)].map(({ node }) => node.item.key);
        const wanted = [
          ...someSandboxes.map((record) => `sandbox:${record.id}`),
          ...someSnapshots.map((record) => `snapshot:${record.id}`),
        ];
        expect(keys.toSorted()).toEqual(wanted.toSorted());
        for (const { node } of walk(forest)) {
          for (const child of node.children) expect(child.item.parentKey).toBe(node.item.key);
        }
      }),
      { numRuns: 500 },
    );
  });
});

describe("the visible parts", () => {
  const labelled = { ...sandbox("b", "s1", "a"), labels: { team: "ml" } };
  const forest = growForest([sandbox("a"), labelled, sandbox("lonely")], [snapshot("s1", "a")]);

  test("a search keeps whole families", () => {
    expect(draw(matchingFamilies(forest, "LONE"))).toBe("lonely");
    expect(draw(matchingFamilies(forest, "ml"))).toBe("a(s1(b))");
    expect(draw(matchingFamilies(forest, "nobody"))).toBe("");
    expect(matchingFamilies(forest, " ")).toBe(forest);
  });

  test("a node is found with its ancestors", () => {
    expect(findPath(forest, "sandbox:b")?.map(({ item }) => item.record.id)).toEqual(["a", "s1", "b"]);
    expect(findPath(forest, "sandbox:s1")).toBeUndefined();
    expect(countNodes(forest)).toBe(4);
  });

  test("a chain of thousands of nodes works", () => {
    const chain = Array.from({ length: 3000 }, (_, index) =>
      snapshot(`c${index}`, "gone", index === 0 ? null : `c${index - 1}`),
    );
    const long = growForest([], chain);
    expect(countNodes(long)).toBe(3000);
    expect(findPath(long, "snapshot:c2999")).toHaveLength(3000);
  });
});
