import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { stripTypeScriptTypes } from "node:module";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { describe, expect, test } from "vitest";

const SOURCE = new URL("../src/", import.meta.url);

/** Without types and comments. */
async function codeOf(file: URL | string): Promise<string> {
  return stripTypeScriptTypes(await readFile(file, "utf8")).replaceAll(/\/\*[\s\S]*?\*\//g, "");
}

/** Everything that a module loads, directly or indirectly; types are not loaded and not counted. */
async function loaded(entry: string): Promise<{ files: string[]; others: string[] }> {
  const files = new Set<string>();
  const others = new Set<string>();
  const visit = async (url: URL): Promise<void> => {
    if (files.has(url.href)) return;
    files.add(url.href);
    const code = await codeOf(url);
    const specifiers = [...code.matchAll(/(?:\bfrom|^import|\bimport\()\s*"([^"]+)"/gm)].map(([, name]) => name ?? "");
    for (const specifier of specifiers) {
      if (specifier.startsWith(".")) await visit(new URL(specifier, url));
      else if (specifier === "@sandboxer/protocol/errors") await visit(new URL(import.meta.resolve(specifier)));
      else others.add(specifier);
    }
  };
  await visit(new URL(entry, SOURCE));
  return { files: [...files].map((file) => fileURLToPath(file)), others: [...others] };
}

describe("the modules that the SDK loads", () => {
  test("the main entry loads nothing of Node, and no schemas", async () => {
    const { files, others } = await loaded("index.ts");
    expect(files.length).toBeGreaterThan(30);
    expect(others).toEqual([]);
  });

  test("the node entry loads only Node", async () => {
    const { others } = await loaded("node/index.ts");
    expect(others.length).toBeGreaterThan(0);
    expect(others.filter((name) => !name.startsWith("node:"))).toEqual([]);
  });

  test("the testing entry loads the server on demand", async () => {
    const { others } = await loaded("testing/index.ts");
    expect(others.filter((name) => !name.startsWith("node:"))).toEqual([
      "@sandboxer/server",
      "@sandboxer/server/config",
    ]);
  });

  test("the package has one dependency", async () => {
    const text = await readFile(new URL("../package.json", SOURCE), "utf8");
    const { dependencies, peerDependenciesMeta } = JSON.parse(text) as Record<string, object>;
    expect(Object.keys(dependencies ?? {})).toEqual(["@sandboxer/protocol"]);
    expect(peerDependenciesMeta).toEqual({ "@sandboxer/server": { optional: true } });
  });
});

test("browser code uses no globals of Node", async () => {
  const { files } = await loaded("index.ts");
  for (const file of files) {
    const found = /\b((Buffer|process\.(env|nextTick|platform|versions)|setImmediate)\b|require\()/.exec(
      await codeOf(file),
    );
    expect([file, found?.[0]]).toEqual([file, undefined]);
  }
});

test("the main entry compiles with the types of browsers, and without those of Node", async () => {
  const project = fileURLToPath(new URL("browser/tsconfig.json", import.meta.url));
  const compiler = fileURLToPath(new URL("../../../node_modules/typescript/bin/tsc", import.meta.url));
  const { stdout } = await promisify(execFile)(process.execPath, [compiler, "--checkers", "1", "-p", project]).catch(
    (error: { stdout: string }) => error,
  );
  expect(stdout).toBe("");
});
