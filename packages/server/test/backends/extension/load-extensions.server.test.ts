import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { loadExtensions } from "../../../src/backends/extension/load-extensions.ts";

let folder = "";
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "sbx-manifest-"));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

const HOOKS = "provision: async () => ({}), waitReady: async () => {}, teardown: async () => {}";

async function file(name: string, content: string): Promise<string> {
  const path = join(folder, name);
  await mkdir(join(path, ".."), { recursive: true });
  await writeFile(path, content);
  return path;
}

const manifestOf = (...entries: readonly object[]): Promise<string> =>
  file("manifest.json", JSON.stringify({ extensions: entries }));

async function complaint(path: string, taken?: ReadonlySet<string>): Promise<string> {
  const thrown: unknown = await loadExtensions(path, taken).then(
    () => "no error",
    (error: unknown) => error,
  );
  expect(thrown).toMatchObject({ name: "SandboxerError", code: "bad_request" });
  return (thrown as Error).message;
}

test("a path and a package are loaded, in the order of the manifest, with their options", async () => {
  await file("one.mjs", `export default (options) => ({ name: "ext." + options.called, ${HOOKS} });`);
  await file("node_modules/two/package.json", '{"name":"two","type":"module","exports":"./index.js"}');
  await file("node_modules/two/index.js", `export default async () => ({ name: "two", ${HOOKS} });`);
  const path = await file(
    "manifest.yaml",
    "extensions:\n  - {name: two, module: two}\n  - {name: ext.one, module: ./one.mjs, options: {called: one}}\n",
  );
  const extensions = await loadExtensions(path);
  expect([...extensions.keys()]).toEqual(["two", "ext.one"]);
  expect(extensions.get("two")?.name).toBe("two");
});

test("a package.json may contain the manifest", async () => {
  await file("one.mjs", `export default () => ({ name: "one", ${HOOKS} });`);
  const entry = { name: "one", module: "./one.mjs" };
  const path = await file("package.json", JSON.stringify({ name: "x", sandboxer: { extensions: [entry] } }));
  expect([...(await loadExtensions(path)).keys()]).toEqual(["one"]);
});

test("errors in a manifest name its file", async () => {
  const missing = join(folder, "missing.yaml");
  expect(await complaint(missing)).toContain(`${missing} cannot be read`);
  const broken = await file("broken.yaml", "extensions: [");
  expect(await complaint(broken)).toContain(`${broken} is not YAML or JSON`);
  for (const [entry, part] of [
    [{ name: "Bad Name", module: "./x" }, "extensions.0.name"],
    [{ name: "a" }, "extensions.0.module"],
    [{ name: "a", module: "./x", more: 1 }, "more"],
  ] as const) {
    const path = await manifestOf(entry);
    const said = await complaint(path);
    expect(said).toContain(path);
    expect(said).toContain(part);
  }
});

test("a duplicate name, or that of a backend, is refused", async () => {
  await file("one.mjs", `export default () => ({ name: "one", ${HOOKS} });`);
  const entry = { name: "one", module: "./one.mjs" };
  expect(await complaint(await manifestOf(entry, entry))).toContain("names the extension one twice");
  expect(await complaint(await manifestOf(entry), new Set(["one"]))).toContain("already the name of a backend");
});

test("a module that is missing, throws, or returns something else is reported with its file", async () => {
  const at = (module: string): Promise<string> => manifestOf({ name: "one", module });
  expect(await complaint(await at("./none.mjs"))).toContain(join(folder, "none.mjs"));
  expect(await complaint(await at("no-such-package-here"))).toContain("npm install no-such-package-here");
  for (const [content, part] of [
    ["throw new Error('at once');", "at once"],
    ["export const x = 1;", "no default export"],
    ["export default () => { throw new Error('no key'); };", "no key"],
    ["export default () => ({ name: 'one' });", "provision"],
    [`export default () => ({ name: 'other', ${HOOKS} });`, "creates other"],
    [`export default () => ({ name: 'one', ${HOOKS}, exec: true });`, "exec"],
    [`export default () => ({ name: 'one', ${HOOKS}, snapshot() {} });`, "restoreFromSnapshot"],
  ] as const) {
    // A name of its own: Node loads a module once.
    const name = `${part.replaceAll(" ", "-")}.mjs`;
    await file(name, content);
    const said = await complaint(await at(`./${name}`));
    expect(said).toContain(part);
    expect(said).toContain(join(folder, name));
  }
});
