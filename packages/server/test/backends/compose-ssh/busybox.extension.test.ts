import { execFileSync } from "node:child_process";
import { copyFile, mkdir, symlink } from "node:fs/promises";
import { join } from "node:path";
import { beforeAll, expect, test } from "vitest";
import { debianPrograms } from "../../../../../test/kit/services/debian-programs.ts";
import { bash, errorCode, eventually, Follower, readText, run, start } from "../contract/programs.ts";
import { describeServices, Lab, requestFor } from "./fixture.ts";
import { docker, hostState } from "./host-state.ts";

const IMAGE = "sandboxer-test-busybox";
const sh = (code: string): readonly string[] => ["sh", "-c", code];

/** The scripts inside must work with the smallest set of tools. */
describeServices("compose-ssh in an image of busybox alone", (services) => {
  const lab = new Lab(services);
  beforeAll(async () => {
    const root = await lab.folder();
    for (const name of ["bin", "proc", "sys", "dev", "tmp", "workspace"]) await mkdir(join(root, name));
    const busybox = join(debianPrograms.bin, "busybox");
    await copyFile(busybox, join(root, "bin/busybox"));
    const applets = execFileSync(busybox, ["--list"]).toString().trim().split("\n");
    for (const name of applets) if (name !== "busybox") await symlink("busybox", join(root, "bin", name));
    const archive = join(await lab.folder(), "root.tar");
    execFileSync("tar", ["-C", root, "-cf", archive, "."]);
    await docker(services, "import", archive, IMAGE);
  });

  test("commands, signals, files, the process table and snapshots work", async () => {
    const base = join(await lab.folder(), "base");
    const placement = { ...services.hosts[0], base_dir: base };
    const project = {
      services: {
        first: { image: IMAGE, command: ["sleep", "1000000"], volumes: [".:/workspace"], working_dir: "/workspace" },
        second: { image: IMAGE, command: ["sleep", "1000000"] },
      },
    };
    const repo = await lab.repository({ "compose.yaml": JSON.stringify(project) });
    const backend = lab.backend();
    const handle = await backend.acquire(requestFor(repo, placement, { env: { NAME: "a 'b'\n$c" } }));

    const echo = await start(handle, sh('printf "%s|" "$NAME" "$1"; cat; exit 3').concat("sh", "x\ny"));
    const output = new Follower(echo);
    await echo.writeStdin(Buffer.from("input"));
    await echo.closeStdin();
    expect(await echo.exited).toMatchObject({ code: 3 });
    await output.ended;
    expect(output.text).toBe("a 'b'\n$c|x\ny|input");
    expect(await errorCode(start(handle, bash("true")))).toBe("file_not_found");

    const group = await start(handle, sh("sleep 4711 & sleep 4712; wait"));
    const table = async (): Promise<string[]> => (await handle.processTable()).map(({ command }) => command);
    await eventually(async () => (await table()).filter((row) => row.includes("471")).length >= 2, "both children");
    await group.signal(15, "group");
    expect(await group.exited).toMatchObject({ signal: 15 });
    await group.signal(9, "group");
    await eventually(async () => !(await table()).some((row) => row.includes("sleep 471")), "the end of the children");
    expect((await handle.stats()).memoryBytes).toBeGreaterThan(0);

    const { files } = handle;
    await files.makeFolder("/workspace/a/b", { parents: true });
    await files.write("/workspace/a/b/odd ' name", Buffer.from("0123456789"), { mode: 0o640 });
    await files.makeSymlink("odd ' name", "/workspace/a/b/link");
    expect((await files.list("/workspace/a/b")).map(({ name, kind }) => `${kind} ${name}`).toSorted()).toEqual([
      "file odd ' name",
      "symlink link",
    ]);
    expect(await files.stat("/workspace/a/b/link")).toMatchObject({ kind: "symlink", linkTarget: "odd ' name" });
    expect(await files.stat("/workspace/a/b/odd ' name")).toMatchObject({ mode: 0o640, sizeBytes: 10 });
    const part = await Array.fromAsync(files.read("/workspace/a/b/link", { offset: 3, length: 4 }));
    expect(Buffer.concat(part).toString()).toBe("3456");
    await files.set("/workspace/a/b/odd ' name", { mode: 0o600, modifiedNs: 1_000_000_000_000_000_000n });
    expect(await files.stat("/workspace/a/b/odd ' name")).toMatchObject({ mode: 0o600, modifiedMs: 1e12 });
    await files.rename("/workspace/a/b", "/workspace/c");
    expect(await errorCode(files.remove("/workspace/c"))).toBe("bad_request");
    expect(await errorCode(files.stat("/workspace/a/b"))).toBe("file_not_found");
    expect(await errorCode(files.list("/workspace/none"))).toBe("file_not_found");
    expect(await errorCode(Array.fromAsync(files.read("/workspace/none")))).toBe("file_not_found");
    expect(await errorCode(files.write("/workspace/none/x", Buffer.from("x")))).toBe("file_not_found");

    const saved = await handle.snapshot(await lab.folder(), { mode: "filesystem", leaveRunning: true });
    const restored = await backend.acquireFromSnapshot(requestFor("", placement), saved);
    expect(await readText(restored, "/workspace/c/link")).toBe("0123456789");
    expect((await run(restored, sh("hostname"))).exit.code).toBe(0);
    await Promise.all([handle.destroy(), restored.destroy()]);
    expect(await hostState(services, base)).toHaveLength(1);
  });
});
