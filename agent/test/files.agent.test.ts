import { execFileSync } from "node:child_process";
import {
  chmodSync,
  chownSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { type TestAgent, isRoot, startAgent } from "./support/agent.ts";
import { agentBinary } from "./support/build.ts";
import { Reader, Type, str, u32, u64, u8 } from "./support/wire.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "agent-files-"));
  if (isRoot) chownSync(folder, 1000, 1000);
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const user = u8(0);
const root = u8(1);
const at = (name: string) => str(join(folder, name));
const takeEntry = (reader: Reader) => ({
  kind: String.fromCharCode(reader.u8()),
  mode: reader.u32(),
  uid: reader.u32(),
  gid: reader.u32(),
  size: reader.u64(),
  mtime: reader.u64(),
  device: reader.u64(),
  inode: reader.u64(),
  links: reader.u32(),
  name: reader.str(),
  target: reader.str(),
});
const write = (
  agent: TestAgent,
  name: string,
  bytes: string | Buffer,
  { flags = 3, mode = 0o640, offset = 0, as = user } = {},
) => agent.call(Type.fileWrite, as, u8(flags), u32(mode), u64(offset), at(name), Buffer.from(bytes));
const writeFailure = (agent: TestAgent, name: string, flags: number, mode = 0o640, offset: number | bigint = 0) =>
  agent.failure(Type.fileWrite, user, u8(flags), u32(mode), u64(offset), at(name), Buffer.from("x"));

async function listAll(agent: TestAgent, path: Buffer) {
  const entries: ReturnType<typeof takeEntry>[] = [];
  for (let more = true; more;) {
    const reader = new Reader(await agent.call(Type.fileList, user, u32(entries.length), path));
    more = reader.u8() === 1;
    for (let left = reader.u32(); left > 0; left--) entries.push(takeEntry(reader));
    expect(reader.rest().length).toBe(0);
  }
  return entries;
}

test("files are written, appended, truncated, created exclusively and at an offset, and read back", async () => {
  const agent = await startAgent();
  await write(agent, "f", "hello world");
  expect(lstatSync(join(folder, "f")).mode & 0o7777).toBe(0o640);
  if (isRoot) expect(lstatSync(join(folder, "f")).uid).toBe(1000);
  await write(agent, "f", "J", { flags: 0 });
  await write(agent, "f", "!", { flags: 4 });
  await write(agent, "f", "W", { flags: 0, offset: 6 });
  expect(readFileSync(join(folder, "f"), "utf8")).toBe("Jello World!");
  const read = async (offset: number, length: number) =>
    (await agent.call(Type.fileRead, user, u64(offset), u32(length), at("f"))).toString();
  expect([await read(0, 5), await read(6, 262_144), await read(500, 5), await read(0, 0)]).toEqual([
    "Jello",
    "World!",
    "",
    "",
  ]);
  await write(agent, "f", "", { flags: 2 });
  expect(await read(0, 100)).toBe("");
  expect(await writeFailure(agent, "f", 9)).toBe(17);
  expect(await writeFailure(agent, "new", 0)).toBe(2);
  expect(await writeFailure(agent, "new", 8)).toBe(22);
  expect(await writeFailure(agent, "new", 16)).toBe(22);
  expect(await writeFailure(agent, "new", 1, 0o10000)).toBe(22);
  expect(await writeFailure(agent, "new", 1, 0o600, 2n ** 63n)).toBe(22);
  expect(existsSync(join(folder, "new"))).toBe(false);
  const large = Buffer.alloc(1_000_000, "0123456789");
  await write(agent, "large", large);
  expect(
    (await agent.call(Type.fileRead, user, u64(3), u32(262_144), at("large"))).equals(large.subarray(3, 262_147)),
  ).toBe(true);
  expect(await agent.failure(Type.fileRead, user, u64(0), u32(262_145), at("large"))).toBe(22);
  expect(await agent.failure(Type.fileRead, user, u64(2n ** 63n), u32(1), at("large"))).toBe(22);
});

test("stat describes the file itself, also for symlinks", async () => {
  const agent = await startAgent();
  const stat = async (path: Buffer) => takeEntry(new Reader(await agent.call(Type.fileStat, user, path)));
  await write(agent, "f", "12345");
  symlinkSync("f", join(folder, "l"));
  execFileSync("mkfifo", [join(folder, "p")]);
  expect(await stat(at("f"))).toMatchObject({
    kind: "f",
    mode: 0o640,
    size: 5,
    links: 1,
    name: "f",
    target: "",
    inode: lstatSync(join(folder, "f")).ino,
  });
  expect(await stat(at("l"))).toMatchObject({ kind: "l", name: "l", target: "f" });
  expect(await stat(at("p"))).toMatchObject({ kind: "p" });
  expect(await stat(str(`${folder}//`))).toMatchObject({ kind: "d", name: folder.split("/").at(-1) });
  expect(await stat(str("/"))).toMatchObject({ kind: "d", name: "/" });
  expect(await stat(str("/dev/null"))).toMatchObject({ kind: "c" });
});

test("a folder with thousands of files is listed in pages", async () => {
  const agent = await startAgent();
  for (let index = 0; index < 4500; index++) writeFileSync(join(folder, `file-with-a-rather-long-name-${index}`), "");
  symlinkSync("x".repeat(3000), join(folder, "link"));
  const entries = await listAll(agent, str(folder));
  expect(new Set(entries.map((entry) => entry.name)).size).toBe(4501);
  expect(entries.find((entry) => entry.kind === "l")?.target.length).toBe(3000);
  expect(await agent.failure(Type.fileList, user, u32(0), at("link"))).toBe(36);
  expect(await agent.failure(Type.fileList, user, u32(0), at("file-with-a-rather-long-name-1"))).toBe(20);
});

test("mkdir, rename, symlink and set work", async () => {
  const agent = await startAgent();
  const mkdir = (name: string, parents: number, mode = 0o750) =>
    [Type.fileMkdir, user, u8(parents), u32(mode), at(name)] as const;
  expect(await agent.failure(...mkdir("a/b/c", 0))).toBe(2);
  await agent.call(...mkdir("a/b//c/", 1));
  await agent.call(...mkdir("a/b/c", 1));
  expect(lstatSync(join(folder, "a/b/c")).mode & 0o7777).toBe(0o750);
  expect(lstatSync(join(folder, "a")).mode & 0o7777).toBe(0o755);
  expect(await agent.failure(...mkdir("a/b/c", 0))).toBe(17);
  await write(agent, "f", "x");
  expect(await agent.failure(...mkdir("f", 1))).toBe(17);
  expect(await agent.failure(...mkdir("f/g", 1))).toBe(20);
  await agent.call(Type.fileRename, user, at("f"), at("a/g"));
  await agent.call(Type.fileSymlink, user, str("a/g"), at("s"));
  expect(readFileSync(join(folder, "s"), "utf8")).toBe("x");
  expect(await agent.failure(Type.fileRename, user, at("nothing"), at("x"))).toBe(2);
  const set = (what: number, name: string, as = user) =>
    [Type.fileSet, as, u8(what), u32(0o600), u32(1000), u32(1000), u64(-1_500_000_000n), at(name)] as const;
  await agent.call(...set(5, "a/g"));
  expect(lstatSync(join(folder, "a/g")).mode & 0o7777).toBe(0o600);
  expect(lstatSync(join(folder, "a/g")).mtimeMs).toBe(-1500);
  for (const as of [user, root]) expect(await agent.failure(...set(1, "s", as))).toBe(95);
  await agent.call(...set(4, "s"));
  expect(lstatSync(join(folder, "s")).mtimeMs).toBe(-1500);
  for (const what of [0, 8]) expect(await agent.failure(...set(what, "s"))).toBe(22);
  if (isRoot) await agent.call(...set(7, "a/b", root));
});

test("a hard link adds a name to a file; links are not followed", async () => {
  const agent = await startAgent();
  await write(agent, "f", "x");
  symlinkSync("f", join(folder, "s"));
  const link = (from: Buffer, to: Buffer, as = user) => [Type.fileLink, as, from, to] as const;
  for (const [name, as] of [
    ["twin", user],
    ["third", root],
  ] as const) {
    await agent.call(...link(at("f"), at(name), as));
    expect(lstatSync(join(folder, name)).ino).toBe(lstatSync(join(folder, "f")).ino);
  }
  const entry = takeEntry(new Reader(await agent.call(Type.fileStat, user, at("twin"))));
  expect([entry.links, entry.inode]).toEqual([3, lstatSync(join(folder, "f")).ino]);
  await agent.call(...link(at("s"), at("s2"), root));
  expect(lstatSync(join(folder, "s2")).isSymbolicLink()).toBe(true);
  expect(await agent.failure(...link(at("f"), at("twin")))).toBe(17);
  expect(await agent.failure(...link(at("nothing"), at("x")))).toBe(2);
  expect(await agent.failure(...link(str("relative"), at("x")))).toBe(22);
  expect(await agent.failure(...link(str(""), at("x")))).toBe(2);
  expect(await agent.failure(...link(at("f"), str("relative")))).toBe(22);
});

test("user attributes are readable and writable, others are not", async () => {
  const agent = await startAgent();
  await write(agent, "f", "x");
  const set = (name: string, value: Buffer, file = "f", as = user) =>
    [Type.fileSetAttribute, as, at(file), str(name), value] as const;
  const get = async (file: string, as = user) => {
    const reader = new Reader(await agent.call(Type.fileAttributes, as, at(file)));
    const found = Array.from({ length: reader.u32() }, () => [reader.str(), reader.str()] as const);
    expect(reader.rest().length).toBe(0);
    return found.toSorted();
  };
  expect(await get("f")).toEqual([]);
  await agent.call(...set("user.a", Buffer.from("one\0two")));
  await agent.call(...set("user.b", Buffer.alloc(0), "f", root));
  for (const as of [user, root]) {
    expect(await get("f", as)).toEqual([
      ["user.a", "one\0two"],
      ["user.b", ""],
    ]);
  }
  for (const name of ["security.a", "trusted.a", "user.", ""]) {
    expect(await agent.failure(...set(name, Buffer.from("x"), "f", root))).toBe(22);
  }
  symlinkSync("f", join(folder, "s"));
  expect(await get("s")).toEqual([]);
  expect(await agent.failure(...set("user.a", Buffer.from("x"), "s"))).toBe(1);
  expect(await agent.failure(Type.fileAttributes, user, at("nothing"))).toBe(2);
});

test("remove deletes files, links, empty folders and, on request, whole trees without following links", async () => {
  const agent = await startAgent();
  const remove = (recursive: number, path: Buffer, as = user) => [Type.fileRemove, as, u8(recursive), path] as const;
  mkdirSync(join(folder, "outside"));
  writeFileSync(join(folder, "outside/keep"), "");
  execFileSync(
    "bash",
    [
      "-c",
      `mkdir -p tree/{a,b,c}/{d,e}/{f,g}; touch tree/{a,b}/{1..300}; ln -s ${folder}/outside tree/a/link; ln -s / tree/b/root; mkfifo tree/p; chown -R ${isRoot ? 1000 : ""} . `,
    ],
    { cwd: folder },
  );
  expect(await agent.failure(...remove(0, at("tree")))).toBe(39);
  await agent.call(...remove(1, at("tree/a/link")));
  symlinkSync(join(folder, "outside"), join(folder, "tree/a/link"));
  await agent.call(...remove(1, at("tree")));
  expect(existsSync(join(folder, "tree"))).toBe(false);
  expect(existsSync(join(folder, "outside/keep"))).toBe(true);
  await agent.call(...remove(0, at("outside/keep")));
  await agent.call(...remove(0, at("outside")));
  expect(await agent.failure(...remove(1, at("outside")))).toBe(2);
  expect(await agent.failure(...remove(1, str("/")))).toBe(16);
  expect(await agent.failure(...remove(1, str("/usr/..")))).toBe(22);
  expect(await agent.failure(...remove(1, str(`${folder}/.`)))).toBe(22);
});

test("a tree of any depth is removed while the agent serves other requests", async () => {
  const agent = await startAgent();
  execFileSync(
    "python3",
    ["-c", "import os\nfor i in range(5000):\n os.mkdir('deep'); i%500 or open('x','w').close(); os.chdir('deep')"],
    { cwd: folder },
  );
  if (isRoot) execFileSync("chown", ["-R", "1000", folder]);
  const removal = agent.call(Type.fileRemove, user, u8(1), at("deep"));
  await agent.ping();
  await removal;
  expect(existsSync(join(folder, "deep"))).toBe(false);
});

test("hostile paths are refused, and no file that could block is opened", async () => {
  const agent = await startAgent();
  execFileSync("mkfifo", [join(folder, "fifo")]);
  if (isRoot) chmodSync(join(folder, "fifo"), 0o666);
  symlinkSync("loop", join(folder, "loop"));
  const readFailure = (path: Buffer) => agent.failure(Type.fileRead, root, u64(0), u32(10), path);
  expect(await readFailure(at("fifo"))).toBe(22);
  expect(await writeFailure(agent, "fifo", 3)).toBe(6);
  expect(await readFailure(str("/dev/zero"))).toBe(22);
  expect(await readFailure(str(folder))).toBe(21);
  expect(await readFailure(at("loop"))).toBe(40);
  expect(await readFailure(str(""))).toBe(2);
  expect(await readFailure(str("etc/passwd"))).toBe(22);
  expect(await readFailure(str(`/${"a".repeat(300)}`))).toBe(36);
  expect(await readFailure(str("/a".repeat(100_000)))).toBe(36);
  expect(await agent.failure(Type.fileStat, user, str("/a".repeat(100_000)))).toBe(36);
  expect(await agent.failure(Type.fileStat, u8(2), str("/"))).toBe(22);
  expect(await agent.failure(Type.fileMkdir, user, u8(1), u32(0o700), at("loop/x"))).toBe(40);
  expect(await agent.failure(Type.fileRemove, user, u8(1), str("/a".repeat(100_000)))).toBe(36);
});

test("a file size limit is an error, and the agent keeps running", async () => {
  const agent = await startAgent(["prlimit", "--fsize=100000", agentBinary]);
  expect(await writeFailure(agent, "f", 1, 0o600, 200_000)).toBe(27);
  await write(agent, "f", "fits");
});

test.skipIf(!isRoot)("file requests have the requested rights, and drop them afterwards", async () => {
  const agent = await startAgent();
  writeFileSync(join(folder, "secret"), "s", { mode: 0o600 });
  mkdirSync(join(folder, "locked/in"), { recursive: true });
  chmodSync(join(folder, "locked"), 0o755);
  expect(await agent.failure(Type.fileRead, user, u64(0), u32(10), at("secret"))).toBe(13);
  expect((await agent.call(Type.fileRead, root, u64(0), u32(10), at("secret"))).toString()).toBe("s");
  expect(await writeFailure(agent, "locked/x", 1)).toBe(13);
  expect(await agent.failure(Type.fileRemove, user, u8(1), at("locked"))).toBe(13);
  expect(existsSync(join(folder, "locked/in"))).toBe(true);
  await write(agent, "locked/x", "root", { as: root });
  expect(lstatSync(join(folder, "locked/x")).uid).toBe(0);
  await agent.call(Type.fileRemove, root, u8(1), at("locked"));
});
