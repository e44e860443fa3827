import { randomBytes, randomUUID } from "node:crypto";
import { expect, test } from "vitest";
import { eventually } from "../../../../../test/kit/eventually.ts";
import type { FolderChange, SandboxFiles, SandboxHandle } from "../../../src/backends/backend.ts";
import type { ContractContext } from "./context.ts";
import { bash, errorCode, readText, run } from "./programs.ts";

export function fileContract(context: ContractContext): void {
  /** A new folder inside, for one test. */
  async function prepare(): Promise<{ handle: SandboxHandle; files: SandboxFiles; folder: string }> {
    const handle = await context.shared();
    const folder = `/workspace/${randomUUID()}`;
    await handle.files.makeFolder(folder);
    return { handle, files: handle.files, folder };
  }

  test("three megabytes of bytes are read back unchanged, completely and in part", async () => {
    const { files, folder } = await prepare();
    const content = randomBytes(3_000_001);
    await files.write(`${folder}/whole`, content);
    await files.write(`${folder}/streamed`, slices(content, 100_000));
    for (const name of ["whole", "streamed"]) {
      expect(content.equals(Buffer.concat(await Array.fromAsync(files.read(`${folder}/${name}`))))).toBe(true);
    }
    const part = Buffer.concat(
      await Array.fromAsync(files.read(`${folder}/whole`, { offset: 1_000_000, length: 700_000 })),
    );
    expect(part.equals(content.subarray(1_000_000, 1_700_000))).toBe(true);
    expect(await Array.fromAsync(files.read(`${folder}/whole`, { offset: 4_000_000 }))).toEqual([]);
    expect(await files.stat(`${folder}/whole`)).toMatchObject({ kind: "file", sizeBytes: 3_000_001 });
  });

  test("writing replaces, and processes see the same files", async () => {
    const { handle, files, folder } = await prepare();
    await files.write(`${folder}/note`, Buffer.from("a long first text"), { mode: 0o600 });
    expect((await files.stat(`${folder}/note`)).mode & 0o777).toBe(0o600);
    await files.write(`${folder}/note`, Buffer.from("short"));
    const { stdout } = await run(handle, bash(`cat note; echo " and more" >> note; echo new > made`), {
      workingFolder: folder,
    });
    expect(stdout).toBe("short");
    expect(await readText(handle, `${folder}/note`)).toBe("short and more\n");
    expect(await readText(handle, `${folder}/made`)).toBe("new\n");
  });

  test("any name is valid", async () => {
    const { handle, files, folder } = await prepare();
    const names = ["with space", "new\nline", "ünï-😀", "-dash", "quote'\"$x", ".hidden"];
    for (const name of names) await files.write(`${folder}/${name}`, Buffer.from(name));
    expect((await files.list(folder)).map(({ name }) => name).toSorted()).toEqual(names.toSorted());
    for (const name of names) expect(await readText(handle, `${folder}/${name}`)).toBe(name);
  });

  test("changes of the names in a folder are reported, until the watch is closed", async () => {
    const { handle, files, folder } = await prepare();
    if (files.watch === undefined) return expect(await files.list(folder)).toEqual([]);
    const told: string[] = [];
    const ended = Promise.withResolvers<string>();
    const watcher = {
      onChange: ({ kind, name, isFolder }: FolderChange) => void told.push(`${kind} ${name}${isFolder ? "/" : ""}`),
      onEnd: (why: string) => ended.resolve(why),
    };
    const first = await files.watch(folder, watcher);
    await run(handle, bash("echo 1 > a; mv a b; mkdir inner; rm b"), { workingFolder: folder });
    await eventually("the removal", () => told.includes("removed b"));
    // A file may be written in several pieces.
    const changes = told.filter((each, index) => each !== told[index - 1]);
    expect(changes).toEqual(["created a", "written a", "renamed a", "created b", "created inner/", "removed b"]);
    first.close();
    told.length = 0;
    await files.watch(`${folder}/inner`, watcher);
    await run(handle, bash("touch c; rm -r inner"), { workingFolder: folder });
    expect(await ended.promise).toBe("folder");
    expect(told).toEqual([]);
    await files.write(`${folder}/file`, new Uint8Array());
    expect(await errorCode(files.watch(`${folder}/file`, watcher))).toBe("bad_request");
    expect(await errorCode(files.watch(`${folder}/missing`, watcher))).toBe("file_not_found");
  });

  test("folders are created, listed, renamed and removed", async () => {
    const { handle, files, folder } = await prepare();
    await files.makeFolder(`${folder}/a/b/c`, { parents: true });
    await files.makeFolder(`${folder}/a/b/c`, { parents: true });
    expect(await errorCode(files.makeFolder(`${folder}/a`))).toBe("bad_request");
    await files.write(`${folder}/a/b/c/file`, Buffer.from("x"));
    await files.rename(`${folder}/a/b`, `${folder}/moved`);
    expect(await readText(handle, `${folder}/moved/c/file`)).toBe("x");
    expect(await files.list(`${folder}/a`)).toEqual([]);
    expect((await files.list(`${folder}/moved`)).map(({ name, kind }) => [name, kind])).toEqual([["c", "folder"]]);
    expect(await errorCode(files.remove(`${folder}/moved`))).toBe("bad_request");
    await files.remove(`${folder}/moved`, { recursive: true });
    await files.remove(`${folder}/a`);
    expect(await files.list(folder)).toEqual([]);
  });

  test("stat describes a link itself, and read follows it", async () => {
    const { handle, files, folder } = await prepare();
    await run(handle, bash("echo there > target; ln -s target link"), { workingFolder: folder });
    expect(await files.stat(`${folder}/link`)).toMatchObject({ kind: "symlink", linkTarget: "target" });
    expect(await readText(handle, `${folder}/link`)).toBe("there\n");
    await files.remove(`${folder}/link`);
    expect(await readText(handle, `${folder}/target`)).toBe("there\n");
  });

  test("links are created, modes and times are set, and links are not followed for that", async () => {
    const { files, folder } = await prepare();
    const [file, link] = [`${folder}/set-file`, `${folder}/set-link`];
    await files.write(file, Buffer.from("x"));
    await files.makeSymlink("set-file", link);
    expect(await errorCode(files.makeSymlink("elsewhere", link))).toBe("bad_request");
    await files.set(file, { mode: 0o640, modifiedNs: 1_500_000_000_000_000_000n });
    await files.set(link, { modifiedNs: 1_400_000_000_000_000_000n });
    expect(await files.stat(file)).toMatchObject({ mode: 0o640, modifiedMs: 1_500_000_000_000 });
    expect(await files.stat(link)).toMatchObject({ linkTarget: "set-file", modifiedMs: 1_400_000_000_000 });
    expect(await errorCode(files.set(`${folder}/set-missing`, { mode: 0o600 }))).toBe("file_not_found");
  });

  test("missing and forbidden files have errors of their own", async () => {
    const { files, folder } = await prepare();
    const missing = `${folder}/missing`;
    const codes = await Promise.all([
      errorCode(files.stat(missing)),
      errorCode(files.list(missing)),
      errorCode(Array.fromAsync(files.read(missing))),
      errorCode(files.remove(missing)),
      errorCode(files.rename(missing, `${folder}/other`)),
      errorCode(files.write(`${missing}/below`, Buffer.from("x"))),
      errorCode(files.makeFolder(`${missing}/below`)),
    ]);
    expect(new Set(codes)).toEqual(new Set(["file_not_found"]));
    expect(await errorCode(files.write("/etc/not-allowed", Buffer.from("x")))).toBe("permission_denied");
    expect(await errorCode(files.stat("relative"))).toBe("bad_request");
    expect(await errorCode(files.stat("/nul\0inside"))).toBe("bad_request");
  });
}

async function* slices(content: Uint8Array, bytes: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < content.length; at += bytes) yield content.subarray(at, at + bytes);
}
