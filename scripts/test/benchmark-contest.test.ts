import { expect, test } from "vitest";
import { contest } from "../../bench/peers/contest.ts";
import type { Peer, Work } from "../../bench/peers/peer.ts";
import { withNewer, type GroupResult } from "../../bench/report/results.ts";
import { joinFindings, type Skipped } from "../../bench/result.ts";

const lab = { effort: "quick" as const, progress: () => {} };

function peer(name: string, once: Work["once"]): Peer {
  const no = "cannot";
  return { name, work: { exec: { what: { exec: name }, once }, run: no, files: no, memory: no } };
}

/** Fails at its nth turn; the first is the warm-up. */
function failing(name: string, turn: number): Peer {
  let turns = 0;
  return peer(name, async () => {
    turns += 1;
    if (turns === turn) throw new Error(`${name} is broken`);
    return { exec: turns };
  });
}

test("a peer that fails in a later round is left out with its reason, and the others continue", async () => {
  const skipped: Skipped[] = [];
  const found = await contest(lab, [failing("sandboxer", 0), failing("Docker", 3)], "exec", skipped);
  expect(found.map(({ sides }) => sides.map(({ name }) => name))).toEqual([["sandboxer"]]);
  expect(found[0]?.sides[0]?.summary.values).toHaveLength(7);
  expect(skipped).toEqual([{ what: "Docker: `/bin/true` in one that runs", why: "Docker is broken" }]);
});

test("without the judged participant there is no contest, and no other is judged in its place", async () => {
  const skipped: Skipped[] = [];
  expect(await contest(lab, [failing("sandboxer", 2), failing("raw runsc", 0)], "exec", skipped)).toEqual([]);
  expect(skipped.map(({ why }) => why)).toEqual(["sandboxer is broken"]);
});

test("a failed group does not replace an older successful one", () => {
  const group = (seconds: number, more: Partial<GroupResult> = {}): GroupResult => ({
    ...joinFindings([]),
    run: {} as GroupResult["run"],
    seconds,
    ...more,
  });
  const failed = group(2, { failed: true });
  const before = { format: 1 as const, groups: { exec: group(1), peers: failed, create: group(1) } };
  const after = withNewer(before, { exec: failed, peers: group(3), create: group(3), forks: failed });
  const seconds = Object.fromEntries(Object.entries(after.groups).map(([name, { seconds: each }]) => [name, each]));
  expect(seconds).toEqual({ exec: 1, peers: 3, create: 3, forks: 2 });
});
