import { arch } from "node:os";
import { expect, test } from "vitest";
import { SandboxerError } from "@sandboxer/protocol";
import { cpuMsOf, fileCacheOf, memoryKillsOf, wasFull } from "../../../src/backends/gvisor/cgroups.ts";
import { lookAgainAfterMs } from "../../../src/backends/gvisor/disk-limit.ts";
import {
  checkRequirements,
  ImageRequirements,
  machineFacts,
  needsOf,
  OVERLAY,
  readCpuFeatures,
} from "../../../src/backends/gvisor/image-requirements.ts";
import { whyNotOn } from "../../../src/manager/ownership/machine-fit.ts";
import { identityDifferences } from "../../../src/backends/gvisor/root-filesystem/root-filesystem.ts";
import { firstReason, RunscError } from "../../../src/backends/gvisor/runsc.ts";

const identity = { kind: "host", digest: "1", parts: { layout: "1", "/bin/sh": "of 5 bytes" } };
const wanted: ImageRequirements = {
  engine: { version: "2024", sha256: "" },
  platform: "systrap",
  overlay: OVERLAY,
  network: "none",
  architecture: arch(),
  cpu_features: ["fpu", "sse"],
  root_filesystem: { image: "host", ...identity },
  agent_sha256: "",
  generation: 0,
};
const machine = { engineVersion: "2024", platform: "systrap", cpuFeatures: ["fpu", "sse", "avx"] };

test("an image runs where everything it needs is present, and on a machine with more", () => {
  expect(() => checkRequirements(wanted, machine, identity)).not.toThrow();
  expect(ImageRequirements.parse({ ...wanted, later: "field" })).toMatchObject({ later: "field" });
});

test("other servers are told what an image needs and what a machine offers", () => {
  const { cpuFeatures } = machine;
  const facts = machineFacts({ engines: ["2024"], fetches: undefined, platform: "systrap", cpuFeatures });
  expect(facts).toMatchObject({ platforms: ["systrap", "ptrace"], fetches_engines: false, cpu_features: cpuFeatures });
  expect(whyNotOn(facts, needsOf(wanted))).toEqual([]);
  expect(whyNotOn(facts, needsOf({ ...wanted, platform: "kvm", architecture: "vax" }))).toHaveLength(2);
  const kvm = { engines: ["2024"], platform: "kvm", cpuFeatures };
  expect(machineFacts({ ...kvm, fetches: undefined }).platforms).toEqual(["kvm"]);
  expect(machineFacts({ ...kvm, fetches: true }).platforms).toEqual(["systrap", "ptrace", "kvm"]);
  expect(needsOf({ unreadable: true })).toEqual({});
});

test("all differences are reported at once", () => {
  const other = { ...machine, engineVersion: "2026", cpuFeatures: ["fpu"], platform: "ptrace" };
  let thrown: unknown;
  try {
    checkRequirements({ ...wanted, overlay: "root:self" }, other, {
      ...identity,
      digest: "2",
      parts: { layout: "1", "/bin/sh": "of 6 bytes" },
    });
  } catch (error) {
    thrown = error;
  }
  expect(thrown).toBeInstanceOf(SandboxerError);
  const { message } = thrown as SandboxerError;
  for (const words of [
    "runsc 2024",
    "2026",
    "systrap",
    "ptrace",
    "root:self",
    "lacks sse",
    "/bin/sh was of 5 bytes, on this server it is of 6 bytes",
  ]) {
    expect(message).toContain(words);
  }
});

test("an image of ptrace runs on systrap too, but not the reverse", () => {
  expect(() => checkRequirements({ ...wanted, platform: "ptrace" }, machine, identity)).not.toThrow();
  expect(() => checkRequirements(wanted, { ...machine, platform: "ptrace" }, identity)).toThrow(/ptrace/);
});

test("differences between root filesystems are named", () => {
  expect(identityDifferences(identity, identity)).toEqual([]);
  expect(identityDifferences(identity, { ...identity, kind: "dir", digest: "2" })[0]).toContain("kind host");
  expect(identityDifferences(identity, { ...identity, digest: "2" })[0]).toContain("digest");
  expect(identityDifferences(identity, { ...identity, digest: "2", parts: { layout: "1" } })).toEqual([
    "/bin/sh was of 5 bytes, on this server it is missing",
  ]);
  const many = Object.fromEntries(Array.from({ length: 50 }, (_, index) => [String(index), "x"]));
  expect(identityDifferences({ ...identity, parts: many }, { ...identity, digest: "2", parts: {} })).toHaveLength(5);
});

test("the CPU features of this machine are read", async () => {
  expect((await readCpuFeatures()).length).toBeGreaterThan(5);
});

test("cgroup files of both versions are parsed, and may be missing", () => {
  expect(memoryKillsOf("oom_kill_disable 0\nunder_oom 0\noom_kill 3\n")).toBe(3);
  expect([wasFull("234881024\n", "234881024\n"), wasFull("84008960\n", "234881024\n")]).toEqual([true, false]);
  expect([wasFull("84008960\n", "max\n"), wasFull("", "")]).toEqual([false, false]);
  expect(memoryKillsOf("low 0\nhigh 0\nmax 12\noom 2\noom_kill 1\noom_group_kill 0\n")).toBe(1);
  expect(memoryKillsOf("")).toBe(0);
  expect(fileCacheOf("anon 9\ninactive_file 100\nactive_file 20\nshmem 7\n")).toBe(120);
  expect(fileCacheOf("active_file 1\ntotal_active_file 30\ninactive_file 2\ntotal_inactive_file 400\n")).toBe(430);
  expect(fileCacheOf("")).toBe(0);
  expect(cpuMsOf("usage_usec 12500\nuser_usec 1\n")).toBe(12.5);
  expect(cpuMsOf("")).toBe(0);
});

test("the disk is checked more often near the limit", () => {
  const limit = 1 << 30;
  expect(lookAgainAfterMs(0, limit)).toBe(500);
  expect(lookAgainAfterMs(limit - (50 << 20), limit)).toBe(50);
  expect(lookAgainAfterMs(limit, limit)).toBe(20);
});

test("the line of runsc's output with the reason is found", () => {
  const stack =
    "running container: starting container: starting root container: no such file\ngoroutine 1 [running]:\nmain.main()\n";
  expect(firstReason(stack)).toBe("running container: starting container: starting root container: no such file");
  expect(firstReason("sandboxer-agent: ready\nsome notice\nrestore failed: unexpected EOF\ngoroutine 5")).toBe(
    "restore failed: unexpected EOF",
  );
  expect(firstReason("")).toBe("no reason given");
  expect(firstReason("x".repeat(10_000)).length).toBeLessThanOrEqual(500);
  expect(new RunscError("checkpoint", 128, "write pages: no space left on device")).toMatchObject({
    code: "no_space",
    exitCode: 128,
  });
  expect(new RunscError("checkpoint", 128, "boom")).toMatchObject({ code: "internal" });
});
