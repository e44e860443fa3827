import type { Carried } from "@sandboxer/protocol";
import { expect, test } from "vitest";
import { formatCarried, sayCarried } from "../../src/output/carried.ts";

const CARRIED: Carried = {
  snapshot_id: "s",
  kind: "workspace-tar",
  from: "gvisor",
  backend: "daytona",
  loadable: true,
  why_not: null,
  backends: ["daytona"],
  memory: "lost",
  processes: "lost",
  files: { scope: "workspace", count: 1204, bytes: 5, truncated: false },
  hard_links: { kept: 2000, lost: 0 },
  xattrs: { kept: 1, lost: 3 },
  env: "kept",
  secrets: [],
  network: "none",
  limits: "none",
  notes: [],
};

test("a line lists lost links and attributes; all fields list the kept ones", () => {
  expect(sayCarried(CARRIED)).toBe(
    "memory: lost, files: 1,204 of the workspace (5 B), xattrs: 1 kept, 3 lost, env: yes",
  );
  expect(formatCarried(CARRIED)).toMatch(/hard links +2,000 kept\n *xattrs +1 kept, 3 lost\n/);
});

test("unknown or zero counts are left out of a line", () => {
  const none = { ...CARRIED, hard_links: null, xattrs: { kept: 0, lost: 0 } };
  expect(sayCarried(none)).toBe("memory: lost, files: 1,204 of the workspace (5 B), env: yes");
  expect(formatCarried(none)).toMatch(/xattrs +none\n/);
  expect(formatCarried(none)).not.toContain("hard links");
});
