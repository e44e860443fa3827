import { existsSync, statSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { backendNameSchema } from "@sandboxer/protocol";
import { z } from "zod";
import type { SandboxExtension } from "./extension.ts";
import { explain, type ManifestEntry, readManifest, wrong } from "./manifest.ts";

const hook = z.custom<(...args: never[]) => unknown>((value) => typeof value === "function", "must be a function");

/** The shape of a module's result; the hooks are checked when they are called. */
const extensionSchema = z.looseObject({
  name: backendNameSchema,
  provision: hook,
  waitReady: hook,
  teardown: hook,
  probe: hook.optional(),
  find: hook.optional(),
  waitEnd: hook.optional(),
  snapshotKind: z.enum(["workspace-tar", "stub-metadata"]).optional(),
  supportsSnapshots: hook.optional(),
  snapshot: hook.optional(),
  restoreFromSnapshot: hook.optional(),
  forgetSnapshot: hook.optional(),
  estimateCost: hook.optional(),
  exec: hook.optional(),
  shell: z.boolean().optional(),
  network: z.boolean().optional(),
  selfHosted: z.boolean().optional(),
  pause: hook.optional(),
  resume: hook.optional(),
  stop: hook.optional(),
  close: hook.optional(),
});

/** Hooks that only work together. */
const TOGETHER: readonly (readonly [string, string])[] = [
  ["snapshot", "restoreFromSnapshot"],
  ["pause", "resume"],
];

/** The bundled backends, whose names no extension may use. */
export type TakenNames = ReadonlySet<string>;

/**
 * Loads the extensions of a manifest, in its order. A module exports as default a function that gets the entry's
 * options and creates the extension. Everything is checked before the first one is used, and errors name the file.
 */
export async function loadExtensions(
  manifestPath: string,
  taken: TakenNames = new Set(),
): Promise<ReadonlyMap<string, SandboxExtension>> {
  const path = resolve(manifestPath);
  const extensions = new Map<string, SandboxExtension>();
  for (const entry of await readManifest(path)) {
    if (taken.has(entry.name)) throw wrong(path, `names ${entry.name}, which is already the name of a backend`);
    extensions.set(entry.name, await loadOne(path, entry));
  }
  return extensions;
}

async function loadOne(manifestPath: string, entry: ManifestEntry): Promise<SandboxExtension> {
  const file = locate(manifestPath, entry);
  let made: unknown;
  try {
    const module = (await import(pathToFileURL(file).href)) as { readonly default?: unknown };
    if (typeof module.default !== "function") throw new Error("it has no default export that is a function");
    made = await (module.default as (options: ManifestEntry["options"]) => unknown)(entry.options);
  } catch (thrown) {
    throw wrong(
      manifestPath,
      `names ${entry.name}, but ${file} could not be loaded: ${(thrown as Error).message}`,
      thrown,
    );
  }
  const result = extensionSchema.safeParse(made);
  if (!result.success) throw wrong(file, `does not create an extension: it ${explain(result.error)}`);
  if (result.data.name !== entry.name) {
    throw wrong(manifestPath, `names ${entry.name}, but ${file} creates ${result.data.name}`);
  }
  for (const [one, other] of TOGETHER) {
    if ((result.data[one] === undefined) !== (result.data[other] === undefined)) {
      throw wrong(file, `must have both ${one} and ${other}, or neither`);
    }
  }
  return made as SandboxExtension;
}

/** A path unchanged, a package as Node resolves it from the manifest's folder. */
function locate(manifestPath: string, { name, module }: ManifestEntry): string {
  if (/^\.{0,2}\//.test(module)) {
    const file = resolve(dirname(manifestPath), module);
    if (existsSync(file) && statSync(file).isFile()) return file;
    throw wrong(manifestPath, `names ${name}, but there is no file ${file}`);
  }
  try {
    return createRequire(manifestPath).resolve(module);
  } catch (thrown) {
    throw wrong(manifestPath, `names ${name}, but there is no package ${module} (npm install ${module})`, thrown);
  }
}
