import { readdir, readFile, writeFile } from "node:fs/promises";
import { isBuiltin } from "node:module";
import { dirname, join, relative, resolve } from "node:path";
import { type CodeSplittingGroup, type OutputChunk, type Plugin, rolldown } from "rolldown";
import { type Manifest, type PublicPackage, ROOT } from "./public-package.ts";

/** Modules of Node that libraries load at once, take milliseconds, and are rarely used: loaded at their first use. */
const LOADED_LATE = ["node:http2", "node:https", "node:tls"];

/** All code shares one SandboxerError class: extensions, the server and programs. */
const ERRORS = "@sandboxer/protocol/errors";
const ERRORS_FILE = join(ROOT, "packages/protocol/src/errors.ts");

/** Paths in sources that are wrong in a bundle. */
const REPLACED: readonly (readonly [file: string, from: string, to: string])[] = [
  ["checkpoints/blocks/block-workers.ts", `new URL("block-worker.ts"`, `new URL("block-worker.js"`],
  ["support/source-file/yaml-document.ts", `createRequire(import.meta.url)("yaml")`, `require("yaml")`],
  ["support/source-file/toml-document.ts", `createRequire(import.meta.url)("smol-toml")`, `require("smol-toml")`],
];

/**
 * Builds the JavaScript of a package into a folder, with source maps: few files, because each one costs time at every
 * start. Returns the names of the packages that the built files import.
 */
export async function bundle(published: PublicPackage, into: string): Promise<ReadonlySet<string>> {
  const { entries, standalone } = published;
  const isAlone = ([name]: [string, string]): boolean => standalone.includes(name);
  const together = Object.entries(entries).filter((entry) => !isAlone(entry));
  const chunks = await write(published, Object.fromEntries(together), into);
  const alone = Object.entries(entries).filter(isAlone);
  const whole = await Promise.all(alone.map(([name, file]) => write(published, { [name]: file }, into)));
  await writeLicenses([...chunks, ...whole.flat()], into);
  return new Set(chunks.flatMap(({ imports, dynamicImports }) => [...imports, ...dynamicImports]).flatMap(packageOf));
}

async function write(
  { folder, manifest, libraries, standalone, gathered }: PublicPackage,
  input: Readonly<Record<string, string>>,
  into: string,
): Promise<readonly OutputChunk[]> {
  const { plugin: gathering, groups } = gatheredChunks(gathered);
  const isWhole = Object.keys(input).every((name) => standalone.includes(name));
  const beside = [...libraries, "@sandboxer/client", "@sandboxer/mcp", "@sandboxer/server"];
  const build = await rolldown({
    cwd: join(ROOT, "packages", folder),
    input: { ...input },
    platform: isWhole ? "browser" : "node",
    external: (id) => beside.some((name) => id === name || id.startsWith(`${name}/`)),
    transform: { target: "node22" },
    plugins: [
      ...(isWhole ? [] : [quickBuiltins()]),
      replacing(),
      ...(isWhole ? [] : [gathering]),
      ...(isWhole || folder === "protocol" ? [] : [sharedErrors()]),
    ],
    onLog: (level, log) => {
      if (level === "warn" && log.code !== "INEFFECTIVE_DYNAMIC_IMPORT")
        throw new Error(`${manifest.name}: ${log.message}`);
    },
  });
  const { output } = await build.write({
    dir: into,
    chunkFileNames: "[name]-[hash].js",
    ...(isWhole ? {} : { codeSplitting: { groups } }),
    // Not minified: an error that nobody catches prints its line of code, which would be the whole file.
    sourcemap: true,
    // Licenses have a file of their own.
    comments: false,
    // The same wherever the clone is.
    sourcemapPathTransform: (source, map) => `sandboxer:///${relative(ROOT, resolve(dirname(map), source))}`,
  });
  await build.close();
  return output.filter((file) => file.type === "chunk");
}

/**
 * By default there is a chunk for each set of entries and late imports that share code, which makes dozens of small
 * files, and each costs time at every start. Here all that one of these entries imports is one chunk, and a second one
 * if other entries need a part of it.
 */
function gatheredChunks(names: readonly string[]): { readonly plugin: Plugin; readonly groups: CodeSplittingGroup[] } {
  const chunkOf = new Map<string, string>();
  const entryIds = new Map<string, string>();
  const plugin: Plugin = {
    name: "gathered-chunks",
    async buildStart({ input }) {
      for (const [name, file] of Object.entries(input)) {
        const resolved = await this.resolve(file);
        if (resolved !== null) entryIds.set(name, resolved.id);
      }
    },
    buildEnd() {
      const reached = (from: readonly string[], { late }: { late: boolean }): ReadonlySet<string> => {
        const ids = new Set(from);
        for (const id of ids) {
          const { importedIds = [], dynamicallyImportedIds = [] } = this.getModuleInfo(id) ?? {};
          for (const imported of late ? [...importedIds, ...dynamicallyImportedIds] : importedIds) ids.add(imported);
        }
        return ids;
      };
      // An entry may itself await late imports, which would never end if they needed its chunk.
      const isPart = (id: string): boolean => (this.getModuleInfo(id)?.importers.length ?? 0) > 0;
      for (const name of names) {
        const entry = entryIds.get(name);
        if (entry === undefined) throw new Error(`there is no entry ${name}`);
        const elsewhere = reached(
          [...entryIds.values()].filter((id) => id !== entry),
          { late: true },
        );
        for (const id of reached([entry], { late: false }))
          if (isPart(id) && !chunkOf.has(id)) chunkOf.set(id, elsewhere.has(id) ? `${name}-shared` : `${name}-own`);
      }
    },
  };
  const groups = names
    .flatMap((name) => [`${name}-shared`, `${name}-own`])
    .map((name) => ({ name, test: (id: string) => chunkOf.get(id) === name }));
  return { plugin, groups };
}

/**
 * An import of one of Node's modules reads each of its exports, and some of them load much more: node:http all of
 * Node's fetch. Together that takes 50 ms of each start. Here only plain exports are read.
 */
function quickBuiltins(): Plugin {
  const marked = (kind: string, id: string): string => `\0${kind}:${id.replace(/^node:/, "")}`;
  return {
    name: "quick-builtins",
    resolveId: (id, _importer, { kind }) => {
      if (!isBuiltin(id)) return undefined;
      // What rolldown adds to its output imports it, and must not depend on a chunk of ours.
      if (id === "node:module") return { id, external: true };
      if (kind !== "require-call") return marked("plain", id);
      const isLate = LOADED_LATE.includes(`node:${id.replace(/^node:/, "")}`);
      return isLate ? marked("late", id) : { id, external: true };
    },
    load: async (id) => {
      const [, kind, name] = /^\0(late|plain):(.*)$/.exec(id) ?? [];
      if (name === undefined) return undefined;
      const found = `process.getBuiltinModule("node:${name}")`;
      if (kind === "late") return `module.exports = new Proxy({}, { get: (_, name) => ${found}[name] });`;
      const { default: exported } = (await import(`node:${name}`)) as { default: object };
      const plain = Object.entries(Object.getOwnPropertyDescriptors(exported)).filter(
        ([key, { value }]) => value !== undefined && /^[a-zA-Z]\w*$/.test(key) && key !== "default",
      );
      const names = plain.map(([key]) => key).join(", ");
      return `const builtin = ${found};\nexport default builtin;\nexport const { ${names} } = builtin;`;
    },
  };
}

function sharedErrors(): Plugin {
  return {
    name: "shared-errors",
    async resolveId(id, importer, options) {
      if (!id.endsWith("errors.ts") && id !== ERRORS) return undefined;
      const resolved = await this.resolve(id, importer, { ...options, skipSelf: true });
      return resolved?.id === ERRORS_FILE ? { id: ERRORS, external: true } : resolved;
    },
  };
}

function replacing(): Plugin {
  return {
    name: "replacing",
    transform(code, id) {
      const replaced = REPLACED.find(([file]) => id.endsWith(`packages/server/src/${file}`));
      if (replaced === undefined) return undefined;
      const [file, from, to] = replaced;
      if (!code.includes(from)) throw new Error(`${file} has no ${from} any more; see ${import.meta.filename}`);
      return { code: code.replace(from, to), map: null };
    },
  };
}

/** The name of the package that an import names; nothing for Node's own modules and for other built files. */
export function packageOf(specifier: string): string[] {
  const [name] = /^(?:@[^/]+\/)?[^/.][^/]*/.exec(specifier) ?? [];
  return name === undefined || specifier.startsWith("node:") || specifier.endsWith(".js") ? [] : [name];
}

/** The licenses of the libraries that were bundled: each requires a copy of its text. */
async function writeLicenses(chunks: readonly OutputChunk[], into: string): Promise<void> {
  const folders = new Set(
    chunks
      .flatMap(({ moduleIds }) => moduleIds)
      .flatMap((id) => /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+/.exec(id)?.[0] ?? []),
  );
  const texts = await Promise.all([...folders].toSorted().map(licenseOf));
  if (texts.length > 0) await writeFile(join(into, "third-party-licenses.txt"), texts.join(`\n${"-".repeat(80)}\n\n`));
}

async function licenseOf(folder: string): Promise<string> {
  const { name, version, license } = JSON.parse(await readFile(join(folder, "package.json"), "utf8")) as Manifest;
  const file = (await readdir(folder)).find((entry) => /^(licen[cs]e|copying)/i.test(entry));
  const text = file === undefined ? "" : await readFile(join(folder, file), "utf8");
  return `${name} ${version} (${String(license)})\n\n${text.trim()}\n`;
}
