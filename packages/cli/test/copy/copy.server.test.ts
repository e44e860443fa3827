import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { placeOf } from "../../src/copy/place.ts";
import { startCli } from "../support/run-cli.ts";

test("a file is copied in and out with its mode", async () => {
  const cli = await startCli();
  await cli.id(["create", "--name", "web"]);
  const bytes = Buffer.from(Array.from({ length: 300_000 }, (_, index) => index % 251));
  writeFileSync(join(cli.folder, "data.bin"), bytes, { mode: 0o750 });
  const sent = await cli(["cp", "data.bin", "web:/tmp/deep/copy.bin"]);
  expect(sent).toMatchObject({ code: 0, out: "" });
  expect(await cli(["cp", "web:/tmp/deep/copy.bin", "back.bin"])).toMatchObject({ code: 0, out: "" });
  expect(readFileSync(join(cli.folder, "back.bin")).equals(bytes)).toBe(true);
  expect(statSync(join(cli.folder, "back.bin")).mode & 0o777).toBe(0o750);
  expect(readdirSync(cli.folder).toSorted()).toEqual(["back.bin", "data.bin"]);
});

test("a file that is copied into a folder keeps its name", async () => {
  const cli = await startCli();
  await cli.id(["create", "--name", "web"]);
  writeFileSync(join(cli.folder, "a.txt"), "a");
  expect((await cli(["cp", "a.txt", "web:/tmp"])).code).toBe(0);
  mkdirSync(join(cli.folder, "here"));
  expect((await cli(["cp", "web:/tmp/a.txt", "here"])).code).toBe(0);
  expect(readFileSync(join(cli.folder, "here", "a.txt"), "utf8")).toBe("a");
});

test("folders are copied as trees, with links; /. means their contents", async () => {
  const cli = await startCli();
  await cli.id(["create", "--name", "web"]);
  mkdirSync(join(cli.folder, "app", "sub"), { recursive: true });
  writeFileSync(join(cli.folder, "app", "sub", "x"), "deep");
  symlinkSync("sub/x", join(cli.folder, "app", "link"));
  expect((await cli(["cp", "app", "web:/tmp/srv"])).code).toBe(0);
  expect((await cli(["files", "cat", "web:/tmp/srv/sub/x"])).out).toBe("deep");
  expect((await cli(["cp", "app", "web:/tmp/srv"])).code).toBe(0);
  expect((await cli(["files", "cat", "web:/tmp/srv/app/sub/x"])).out).toBe("deep");
  expect((await cli(["cp", "web:/tmp/srv/app", "fetched"])).code).toBe(0);
  expect(readFileSync(join(cli.folder, "fetched", "link"), "utf8")).toBe("deep");
  mkdirSync(join(cli.folder, "into"));
  expect((await cli(["cp", "web:/tmp/srv/app/.", "into"])).code).toBe(0);
  expect(existsSync(join(cli.folder, "into", "sub", "x"))).toBe(true);
});

test("copies work between sandboxes, and - means stdin and stdout", async () => {
  const cli = await startCli();
  await cli.id(["create", "--name", "one"]);
  await cli.id(["create", "--name", "two"]);
  expect((await cli(["cp", "-", "one:/tmp/x"], { stdin: "typed" })).code).toBe(0);
  expect((await cli(["cp", "one:/tmp/x", "two:/tmp/y"])).code).toBe(0);
  const printed = await cli(["cp", "two:/tmp/y", "-"]);
  expect(printed).toMatchObject({ code: 0, out: "typed" });
});

test("a path that cannot be copied is an error, and leaves nothing behind", async () => {
  const cli = await startCli();
  await cli.id(["create", "--name", "web"]);
  expect(await cli(["cp", "a", "b"])).toMatchObject({ code: 2, err: expect.stringContaining("SANDBOX:/PATH") });
  expect((await cli(["cp", "nosuch", "web:/tmp/x"])).code).toBe(2);
  expect((await cli(["cp", "web:/nosuch", "x"])).code).toBe(4);
  expect((await cli(["cp", "web:relative", "x"])).code).toBe(2);
  expect(readdirSync(cli.folder)).toEqual([]);
});

test("files are listed, shown, read, created, moved and removed", async () => {
  const cli = await startCli();
  await cli.id(["create", "--name", "web"]);
  expect((await cli(["files", "mkdir", "web:/tmp/a/b"])).code).toBe(0);
  await cli(["cp", "-", "web:/tmp/a/x"], { stdin: "12345" });
  expect((await cli(["files", "ls", "web:/tmp/a"])).out).toMatch(/^d\S+ .* b\n-\S+ +\d+:\d+ +5 B .* x\n$/);
  expect(JSON.parse((await cli(["files", "stat", "web:/tmp/a/x", "--json"])).out)).toMatchObject({ size_bytes: 5 });
  expect((await cli(["files", "mv", "web:/tmp/a/x", "/tmp/a/y"])).code).toBe(0);
  expect((await cli(["files", "cat", "web:/tmp/a/y"])).out).toBe("12345");
  expect((await cli(["files", "rm", "web:/tmp/a"])).code).not.toBe(0);
  expect((await cli(["files", "rm", "-r", "web:/tmp/a"])).code).toBe(0);
  expect((await cli(["files", "ls", "web:/tmp/a"])).code).toBe(4);
});

test.each([
  ["/x/a.txt", "/tmp", "folder", "/tmp/a.txt"],
  ["/x/a.txt", "/tmp/b", "nothing", "/tmp/b"],
  ["/x/a.txt", "/tmp/b/", "nothing", "/tmp/b/a.txt"],
  ["/x/dir", "/tmp", "folder", "/tmp/dir"],
  ["/x/dir/.", "/tmp", "folder", "/tmp"],
  ["/x/a.txt", "/tmp/b", "file", "/tmp/b"],
] as const)("%s to %s (%s) is %s", (source, target, found, place) => {
  expect(placeOf(source, target, found)).toBe(place);
});
