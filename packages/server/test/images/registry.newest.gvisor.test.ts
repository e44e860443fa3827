import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, rm, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test, type TestContext } from "vitest";
import { startDockerRegistry, type RunningRegistry } from "../../../../test/kit/services/docker-registry.ts";
import type { ImageLibrary } from "../../src/images/image-library.ts";
import { newRequest } from "../backends/contract/context.ts";
import { countAbove, run, start } from "../backends/contract/programs.ts";
import { findBusybox, makeBusyboxRoot } from "../backends/gvisor/support/busybox.ts";
import { copyImage } from "../backends/gvisor/support/copy-image.ts";
import { describeGvisor } from "../backends/gvisor/support/describe-gvisor.ts";
import { GvisorFixture } from "../backends/gvisor/support/fixture.ts";
import { openGvisor } from "../backends/gvisor/support/open-backend.ts";
import { registryLibrary } from "./support/registry-library.ts";

const NEEDED = ["docker-registry", "skopeo", "umoci"];
const shell = (code: string): readonly string[] => ["sh", "-c", code];
const COUNTER = shell("i=0; while true; do i=$((i+1)); echo $i > /tmp/count; sleep 0.05; done");

/** Images that umoci makes and skopeo pushes, in Debian's registry. */
describeGvisor("images of a registry", (engine) => {
  const busybox = findBusybox();
  const has = (program: string): boolean =>
    (process.env["PATH"] ?? "").split(":").some((folder) => existsSync(join(folder, program)));
  const missing = typeof busybox === "string" ? NEEDED.filter((program) => !has(program)) : ["a static busybox"];
  const needTools = ({ skip }: TestContext): void =>
    skip(missing.length > 0, `${missing.join(", ")} missing. Run: node test/kit/services/gvisor-tools.ts`);
  let registry: RunningRegistry | undefined;
  let images: ImageLibrary;
  let work = "";
  const fixture = new GvisorFixture(engine, async () => {
    work = await fixture.folder();
    if (missing.length === 0) registry = await startDockerRegistry();
    images = library(join(work, "images"));
    return { images };
  });
  const library = (folder: string): ImageLibrary => registryLibrary(folder, registry?.host ?? "none.invalid");

  /** Two layers: the second changes, adds and removes files of the first. */
  const push = async (version: string, packing: "gzip" | "zstd"): Promise<void> => {
    const layout = join(work, `layout-${version}`);
    const umoci = (...args: string[]): unknown => execFileSync("umoci", args, { stdio: "pipe" });
    const root = join(work, `root-${version}`);
    makeBusyboxRoot(busybox as string, root);
    await writeFile(join(root, "etc/old"), "old\n");
    umoci("init", "--layout", layout);
    umoci("new", "--image", `${layout}:latest`);
    umoci("insert", "--image", `${layout}:latest`, root, "/");
    const change = join(work, `change-${version}`);
    await mkdir(join(change, "opt/deep"), { recursive: true });
    await writeFile(join(change, "opt/deep/version"), `${version}\n`);
    await symlink("deep/version", join(change, "opt/link"));
    umoci("insert", "--image", `${layout}:latest`, join(change, "opt"), "/opt");
    umoci("insert", "--image", `${layout}:latest`, "--whiteout", "/etc/old");
    const config = [
      "--config.env",
      `GREETING=hello ${version}`,
      "--config.entrypoint=sh",
      "--config.cmd=-c",
      "--config.cmd=true",
      "--config.user=1234:55",
      "--config.workingdir=/srv/app",
    ];
    umoci("config", "--image", `${layout}:latest`, ...config);
    const to = `docker://${registry?.host}/team/tool:1`;
    const format = ["--dest-compress-format", packing, "--dest-compress"];
    const copy = ["copy", "--insecure-policy", "--dest-tls-verify=false", ...format, `oci:${layout}:latest`, to];
    execFileSync("skopeo", copy, { stdio: "pipe", env: { ...process.env, HOME: work } });
    await rm(root, { recursive: true });
  };

  beforeAll(async () => {
    if (missing.length === 0) await push("one", "gzip");
  });
  afterAll(async () => {
    await images.close();
    await registry?.stop();
  });

  const LOOK = shell(
    'echo "$GREETING"; cat /opt/link; ls /etc/old 2>/dev/null || echo removed; cat /etc/kind; echo $(id -u):$(id -g) $(pwd)',
  );
  const seen = (version: string): string => `hello ${version}\n${version}\nremoved\nbusybox\n1234:55 /srv/app\n`;
  const SEEN = seen("one");

  test("a sandbox runs in it, and another server with an empty cache resumes it by its digest", async (context) => {
    needTools(context);
    const handle = await fixture.acquire({ image: "team/tool:1" });
    expect((await run(handle, LOOK)).stdout).toBe(SEEN);
    expect(handle.imageCommand).toEqual(["sh", "-c", "true"]);
    // Files are those of its user, in the folder that portable captures take.
    await handle.files.write("/srv/app/file", Buffer.from("mine"));
    expect(await handle.files.stat("/srv/app/file")).toMatchObject({ uid: 1234, gid: 55 });
    expect(await handle.workspaceFolder?.()).toBe("/srv/app");
    // In use.
    expect((await images.prune()).removed).toEqual([]);
    await start(handle, COUNTER);
    const count = await countAbove(handle, "/tmp/count", 2);
    await run(handle, shell("echo kept > /workspace/mine"));
    const files = await handle.snapshot(await fixture.folder(), { mode: "filesystem", leaveRunning: true });
    const saved = await copyImage(await fixture.folder(), await fixture.save(handle, false));
    expect(saved.requirements["root_filesystem"]).toMatchObject({
      image: expect.stringMatching(`^${registry?.host}/team/tool@sha256:[0-9a-f]{64}$`),
      kind: "container image",
    });
    await handle.destroy();
    await expect.poll(async () => (await images.prune()).removed).toHaveLength(1);

    // The tag moves on; a saved sandbox stays with its image.
    await push("two", "zstd");
    const elsewhere = library(join(work, "elsewhere"));
    const other = await openGvisor(engine, { images: elsewhere });
    try {
      const spec = { image: "team/tool:1" };
      const restored = await other.backend.acquireFromSnapshot(newRequest(spec), saved);
      await countAbove(restored, "/tmp/count", count);
      expect((await run(restored, LOOK)).stdout).toBe(SEEN);
      await restored.destroy();
      const withFiles = await other.backend.acquireFromSnapshot(newRequest(spec), files);
      expect((await run(withFiles, LOOK)).stdout).toBe(SEEN);
      expect((await run(withFiles, shell("cat /workspace/mine"))).stdout).toBe("kept\n");
      await withFiles.destroy();
      const fresh = await other.backend.acquire(newRequest(spec));
      expect((await run(fresh, LOOK)).stdout).toBe(seen("two"));
      await fresh.destroy();
    } finally {
      await other.close();
      await elsewhere.close();
    }
  });

  test("an image that the registry does not have is named, and what to do", async (context) => {
    needTools(context);
    await expect(fixture.acquire({ image: "team/none:1" })).rejects.toMatchObject({ code: "image_not_found" });
  });
});
