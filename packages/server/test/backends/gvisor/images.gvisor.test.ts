import { existsSync, mkdirSync, readdirSync, readFileSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, expect, test } from "vitest";
import type { SandboxHandle, SnapshotPayload } from "../../../src/backends/backend.ts";
import { findKernelPid } from "../../../src/backends/gvisor/sandbox-process-tree.ts";
import {
  bash,
  countAbove,
  counter,
  delay,
  errorCode,
  Follower,
  python,
  readText,
  run,
  start,
} from "../contract/programs.ts";
import { smallVolume } from "../../../../../test/kit/small-volume.ts";
import { copyImage } from "./support/copy-image.ts";
import { describeGvisor } from "./support/describe-gvisor.ts";
import { GvisorFixture } from "./support/fixture.ts";
import { sandboxLeftovers } from "./support/leftovers.ts";
import { MIB } from "./support/open-backend.ts";

describeGvisor("images", (engine) => {
  const fixture = new GvisorFixture(engine);
  let handle: SandboxHandle;
  let snapshot: SnapshotPayload;
  beforeAll(async () => {
    handle = await fixture.acquire();
    await start(handle, counter("/workspace/count", 0.25));
    await countAbove(handle, "/workspace/count", 2);
    snapshot = await fixture.save(handle);
  });

  const withRequirements = (changes: object): SnapshotPayload => ({
    ...snapshot,
    requirements: { ...snapshot.requirements, ...changes },
  });
  const rootFilesystem = (changes: object): object => ({
    root_filesystem: { ...(snapshot.requirements["root_filesystem"] as object), ...changes },
  });

  test.each<[string, () => object, string]>([
    ["another runsc", () => ({ engine: { version: "20200101", sha256: "" } }), "saved by runsc 20200101"],
    ["another platform", () => ({ platform: "kvm" }), "platform kvm"],
    ["another architecture", () => ({ architecture: "s390x" }), "saved on s390x"],
    ["another writable layer", () => ({ overlay: "root:self" }), "root:self"],
    ["a CPU feature that is not here", () => ({ cpu_features: ["fpu", "warp_drive"] }), "this CPU lacks warp_drive"],
    [
      "another root filesystem",
      () => rootFilesystem({ digest: "x", parts: { "/usr/bin/bash": "of 5 bytes" } }),
      "/usr/bin/bash was of 5 bytes",
    ],
  ])("%s is refused by name, with nothing done", async (_, changes, words) => {
    const before = sandboxLeftovers(fixture.opened.runDirectory);
    const refused = fixture.restore(withRequirements(changes()));
    await expect(refused).rejects.toMatchObject({
      code: "image_incompatible",
      message: expect.stringContaining(words),
    });
    expect(sandboxLeftovers(fixture.opened.runDirectory)).toEqual(before);
  });

  test("invalid or missing requirements make an image damaged", async () => {
    for (const requirements of [{}, { engine: 5 }, { ...snapshot.requirements, generation: -1 }]) {
      expect(await errorCode(fixture.restore({ ...snapshot, requirements }))).toBe("image_damaged");
    }
  });

  test("a foreign configuration is refused, whatever it contains", async () => {
    const config = JSON.parse(readFileSync(pathOf(snapshot, "config.json"), "utf8")) as Record<string, unknown>;
    const hook = { createRuntime: [{ path: "/bin/sh", args: ["sh", "-c", "touch /tmp/sandboxer-owned"] }] };
    const mount = { destination: "/host", type: "bind", source: "/", options: ["rbind", "ro", "nosuid"] };
    const disguised = { destination: "/host", type: "tmpfs", source: "/", options: ["rbind"] };
    const withMount = (added: object): object => ({ ...config, mounts: [...(config["mounts"] as unknown[]), added] });
    for (const [forged, code] of [
      [{ ...config, hooks: hook }, "image_damaged"],
      [{ ...config, annotations: { "dev.gvisor.spec.mount.x.source": "/" } }, "image_damaged"],
      [{ ...config, linux: { ...(config["linux"] as object), devices: [] } }, "image_damaged"],
      [withMount(mount), "image_incompatible"],
      [withMount({ ...mount, options: ["rbind", "rw"] }), "image_damaged"],
      [withMount(disguised), "image_damaged"],
    ] as const) {
      const path = join(await fixture.folder(), "config.json");
      writeFileSync(path, JSON.stringify(forged));
      expect(await errorCode(fixture.restore(withMember(snapshot, "config.json", path)))).toBe(code);
    }
  });

  test.each(["checkpoint.img", "pages_meta.img", "pages.img", "config.json"])(
    "%s cut short fails cleanly",
    async (name) => {
      const before = readdirSync(join(fixture.opened.runDirectory.path, "sandboxes"));
      for (const share of [0, 0.5]) {
        const copy = await copyImage(await fixture.folder(), snapshot);
        const path = pathOf(copy, name);
        truncateSync(path, Math.floor(readFileSync(path).length * share));
        const code = await errorCode(fixture.restore(copy));
        expect(code).toMatch(/^image_(damaged|incompatible)$/);
      }
      await expect.poll(() => readdirSync(join(fixture.opened.runDirectory.path, "sandboxes"))).toEqual(before);
    },
  );

  test("an agent other than the saved one is refused", async () => {
    const copy = await copyImage(await fixture.folder(), withRequirements({ agent_sha256: "0".repeat(64) }));
    expect(await errorCode(fixture.restore(copy))).toBe("image_damaged");
    expect(await errorCode(fixture.restore(withRequirements({ agent_sha256: "../../etc" })))).toBe("image_damaged");
  });

  test("without space in the middle of a save, the sandbox keeps running, and nothing is lost", async ({ skip }) => {
    const volume = smallVolume(2 * MIB);
    if ("skipped" in volume) return skip(true, volume.skipped);
    try {
      await run(handle, bash("echo kept > /workspace/kept"));
      const big = await start(
        handle,
        python("import time\ntaken = b'x' * (20 << 20)\nprint('taken', flush=True)\ntime.sleep(300)"),
      );
      await new Follower(big).until("taken");
      for (const leaveRunning of [true, false]) {
        const into = join(volume.folder, String(leaveRunning));
        mkdirSync(into);
        expect(await errorCode(handle.snapshot(into, { mode: "full", leaveRunning }))).toBe("no_space");
        expect(readdirSync(into)).toEqual([]);
        await countAbove(handle, "/workspace/count", await countAbove(handle, "/workspace/count", 0));
      }
      expect(await errorCode(handle.snapshot(volume.folder, { mode: "filesystem", leaveRunning: true }))).toMatch(
        /no error|no_space/,
      );
      expect(await readText(handle, "/workspace/kept")).toBe("kept\n");
      expect(big.exit).toBeUndefined();
      await big.signal(9, "group");
    } finally {
      volume.remove();
    }
    const later = await fixture.restore(await fixture.save(handle));
    expect(await readText(later, "/workspace/kept")).toBe("kept\n");
    await later.destroy();
  });

  test("a kill of gVisor's kernel in the middle of a save ends the sandbox, and is reported", async () => {
    const others = attachedRunscs();
    const victim = await fixture.acquire();
    const [attached = 0] = attachedRunscs().filter((pid) => !others.includes(pid));
    await run(victim, bash("head -c 150M /dev/urandom > /workspace/large"));
    const [kernel, into] = [(await findKernelPid(attached)) ?? 0, await fixture.folder()];
    expect(kernel).toBeGreaterThan(0);
    const saving = errorCode(victim.snapshot(into, { mode: "full", leaveRunning: true }));
    while (!existsSync(join(into, "image", "checkpoint.img"))) await delay(1);
    process.kill(kernel, "SIGKILL");
    expect(await saving).toBe("sandbox_failed");
    expect(await victim.ended).toMatchObject({ reason: "crashed" });
    expect(await errorCode(victim.ping())).toBe("sandbox_failed");
    await victim.destroy();
  });

  /** One for each running sandbox. */
  function attachedRunscs(): number[] {
    const { processes } = sandboxLeftovers(fixture.opened.runDirectory);
    return processes.filter((line) => / run --bundle=/.test(line)).map((line) => Number(line.split(" ")[0]));
  }
});

function pathOf(snapshot: SnapshotPayload, name: string): string {
  return snapshot.members.find((member) => member.name === name)?.path ?? "";
}

function withMember(snapshot: SnapshotPayload, name: string, path: string): SnapshotPayload {
  return {
    ...snapshot,
    members: snapshot.members.map((member) => (member.name === name ? { ...member, path } : member)),
  };
}
