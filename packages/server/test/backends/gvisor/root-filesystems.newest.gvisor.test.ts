import { execFileSync, spawnSync } from "node:child_process";
import {
  appendFileSync,
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, expect, test, type TestContext } from "vitest";
import type { SandboxHandle } from "../../../src/backends/backend.ts";
import { ImageLibrary } from "../../../src/images/image-library.ts";
import { newRequest } from "../contract/context.ts";
import { countAbove, run, start } from "../contract/programs.ts";
import { findBusybox, makeBusyboxRoot } from "./support/busybox.ts";
import { copyImage } from "./support/copy-image.ts";
import { describeGvisor } from "./support/describe-gvisor.ts";
import { GvisorFixture } from "./support/fixture.ts";
import { openGvisor } from "./support/open-backend.ts";

/** Nothing is pulled here. */
const NO_REGISTRIES = {
  defaultRegistry: "none.invalid",
  maxBytes: 1e9,
  registries: {
    credentials: { secretNames: new Map(), secrets: { resolve: () => Promise.reject(new Error()) }, searchPath: "" },
    insecure: [],
    mirrors: new Map(),
    allowed: ["other.invalid"],
  },
};
const shell = (code: string): readonly string[] => ["sh", "-c", code];
const COUNTER = shell("i=0; while true; do i=$((i+1)); echo $i > /workspace/count; sleep 0.05; done");

describeGvisor("root filesystems", (engine) => {
  let images = "";
  let library: ImageLibrary | undefined;
  afterAll(() => library?.close());
  const fixture = new GvisorFixture(engine, async () => {
    images = await fixture.folder();
    library = new ImageLibrary({ ...NO_REGISTRIES, folder: await fixture.folder() });
    return { imageDirectories: [images], images: library };
  });
  const busybox = findBusybox();
  const missing = typeof busybox === "string" ? undefined : busybox.missing;
  let root = "";
  beforeAll(() => {
    root = join(images, "busybox");
    if (typeof busybox === "string") makeBusyboxRoot(busybox, root);
  });
  const needBusybox = ({ skip }: TestContext): void => skip(missing !== undefined, missing);
  const installed = (program: string): boolean =>
    (process.env["PATH"] ?? "").split(":").some((folder) => existsSync(join(folder, program)));

  /** It runs, is saved, and is restored. */
  async function tryOut(image: string): Promise<void> {
    const handle = await fixture.acquire({ image });
    expect((await run(handle, shell("cat /etc/kind; id -u; ls /bin | head -n 1"))).stdout).toBe(
      "busybox\n1000\nbusybox\n",
    );
    await start(handle, COUNTER);
    const count = await countAbove(handle, "/workspace/count", 2);
    const snapshot = await fixture.save(handle, false);
    await handle.destroy();
    const restored: SandboxHandle = await fixture.restore(snapshot, { image });
    await countAbove(restored, "/workspace/count", count);
    await restored.destroy();
  }

  test("other users of the machine cannot reach a setuid root program", async (context) => {
    needBusybox(context);
    const tree = join(images, "with-setuid");
    makeBusyboxRoot(busybox as string, tree);
    chmodSync(join(tree, "bin/busybox"), 0o4755);
    execFileSync("tar", ["-cf", join(images, "setuid.tar"), "-C", tree, "."]);
    const cacheDirectory = join(await fixture.folder(), "cache");
    const unpacked = join(cacheDirectory, "root-filesystems");
    // As an earlier release left them, with a cache folder that others may enter.
    for (const folder of [dirname(cacheDirectory), cacheDirectory, unpacked]) {
      mkdirSync(folder, { recursive: true });
      chmodSync(folder, 0o755);
    }
    const { runDirectory } = fixture.opened;
    const { backend } = await openGvisor(engine, { cacheDirectory, runDirectory, imageDirectories: [images] });
    const handle = fixture.keep(await backend.acquire(newRequest({ image: `tar:${join(images, "setuid.tar")}` })));
    const [name = ""] = readdirSync(unpacked).filter((each) => each.startsWith("tar-"));
    const tried = spawnSync(join(unpacked, name, "bin/busybox"), ["id"], { uid: 65534, gid: 65534 });
    expect(tried).toMatchObject({ status: null, error: expect.objectContaining({ code: "EACCES" }) });
    expect((await run(handle, shell("id -u; ls / | head -n 1"))).stdout).toBe("1000\nbin\n");
    await handle.destroy();
    await backend.close();
  });

  test("a folder works as a root filesystem", async (context) => {
    needBusybox(context);
    await tryOut(`dir:${root}`);
    expect(readdirSync(root)).not.toContain("workspace");
  });

  test("a tar archive works as a root filesystem", async (context) => {
    needBusybox(context);
    execFileSync("tar", ["-cf", join(images, "busybox.tar"), "-C", root, "."]);
    await tryOut(`tar:${join(images, "busybox.tar")}`);
    writeFileSync(join(images, "broken.tar"), "this is no archive");
    await expect(fixture.acquire({ image: `tar:${join(images, "broken.tar")}` })).rejects.toMatchObject({
      code: "bad_request",
    });
  });

  test("an OCI layout works as a root filesystem", async (context) => {
    needBusybox(context);
    context.skip(!installed("umoci"), "umoci is not installed");
    const layout = join(images, "layout");
    const umoci = (...args: string[]): unknown => execFileSync("umoci", args, { stdio: "pipe" });
    umoci("init", "--layout", layout);
    umoci("new", "--image", `${layout}:latest`);
    umoci("insert", "--image", `${layout}:latest`, root, "/");
    await tryOut(`oci:${layout}:latest`);
    await expect(fixture.acquire({ image: `oci:${layout}:missing` })).rejects.toMatchObject({ code: "bad_request" });
  });

  test("an image of a Docker engine works, or the error explains why not", async (context) => {
    const running = ((): boolean => {
      try {
        return execFileSync("docker", ["info", "--format", "{{.ID}}"], { stdio: "pipe", timeout: 10_000 }).length > 0;
      } catch {
        return false;
      }
    })();
    // An image that the engine does not have is looked for in a registry.
    const missingImage = fixture.acquire({ image: "docker:sandboxer-no-such-image" });
    await expect(missingImage).rejects.toMatchObject({ code: "permission_denied" });
    if (!running) return;
    needBusybox(context);
    execFileSync("sh", ["-c", `tar -c -C ${root} . | docker import - sandboxer-test-busybox`], { stdio: "pipe" });
    await tryOut("docker:sandboxer-test-busybox");
    execFileSync("docker", ["image", "rm", "sandboxer-test-busybox"], { stdio: "pipe" });
  });

  test("a snapshot of files keeps replaced kinds, and names like removals or of any bytes", async (context) => {
    needBusybox(context);
    const changed = join(images, "changed");
    makeBusyboxRoot(busybox as string, changed);
    mkdirSync(join(changed, "kinds/folder"), { recursive: true });
    for (const name of ["folder/old", "file"]) writeFileSync(join(changed, "kinds", name), "old\n");
    symlinkSync("../etc/kind", join(changed, "kinds/link"));
    symlinkSync("../etc", join(changed, "kinds/link-to-folder"));
    execFileSync("chown", ["-hR", "1000:1000", join(changed, "kinds")]);
    const image = `dir:${changed}`;
    const handle = await fixture.acquire({ image });
    const change = `cd /kinds && /bin/busybox rm -r folder file link link-to-folder && mkdir file link-to-folder &&
      for name in folder link file/inner link-to-folder/inner .wh. .wh.file "$(printf 'any\\377')"; do echo new > "$name"; done`;
    expect(await run(handle, shell(change))).toMatchObject({ exit: { code: 0 }, stderr: "" });
    const look = shell("cd /kinds; ls -AFR; cat /etc/kind */* .wh.* any* folder link; ls /etc");
    const { stdout: before } = await run(handle, look);
    const snapshot = await handle.snapshot(await fixture.folder(), { mode: "filesystem", leaveRunning: true });
    const restored = await fixture.restore(snapshot, { image });
    expect((await run(restored, look)).stdout).toBe(before);
    expect(before).toContain(`busybox\n${"new\n".repeat(7)}`);
    await Promise.all([handle.destroy(), restored.destroy()]);
  });

  test("a copy with its times is the same root filesystem; a changed one is refused with the reason", async (context) => {
    needBusybox(context);
    const [first, second] = [await fixture.folder(), await fixture.folder()];
    for (const folder of [first, second]) execFileSync("cp", ["-a", root, join(folder, "root")]);
    const image = `dir:${join(first, "root")}`;
    const one = await openGvisor(engine, { imageDirectories: [first] });
    const handle = await one.backend.acquire({
      sandboxId: "a",
      spec: { image, env: {}, resources: {}, network: "none" },
    });
    await start(handle, COUNTER);
    const count = await countAbove(handle, "/workspace/count", 2);
    const snapshot = await copyImage(await fixture.folder(), await fixture.save(handle, false));
    await one.close();

    const elsewhere = `dir:${join(second, "root")}`;
    const moved = { ...snapshot, requirements: withImage(snapshot.requirements, elsewhere) };
    const two = await openGvisor(engine, { imageDirectories: [second] });
    const request = { sandboxId: "b", spec: { image: elsewhere, env: {}, resources: {}, network: "none" as const } };
    const restored = await two.backend.acquireFromSnapshot(request, moved);
    await countAbove(restored, "/workspace/count", count);
    await two.close();

    for (const change of [
      () => appendFileSync(join(second, "root/etc/kind"), "changed"),
      () => utimesSync(join(second, "root/etc/kind"), new Date(0), new Date(0)),
      () => mkdirSync(join(second, "root/etc/new")),
      () => cpSync(join(second, "root/etc/kind"), join(second, "root/etc/other")),
    ]) {
      change();
      const three = await openGvisor(engine, { imageDirectories: [second] });
      const refused = three.backend.acquireFromSnapshot(request, moved);
      await expect(refused).rejects.toMatchObject({
        code: "image_incompatible",
        message: expect.stringMatching(/etc|entries/),
      });
      await three.close();
    }
  });
});

function withImage(requirements: Readonly<Record<string, unknown>>, image: string): Record<string, unknown> {
  return { ...requirements, root_filesystem: { ...(requirements["root_filesystem"] as object), image } };
}
