import { mkdir, readdir, readFile, rename, writeFile } from "node:fs/promises";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { SandboxerError } from "@sandboxer/protocol";
import { hashFile, installFile } from "../files.ts";
import { inspectEngine } from "./inspect.ts";
import type { Engine } from "./source.ts";

/** `{cache}/engines/{version}/runsc`, and beside it `runsc.sha256`, which is written first. */
export function cachedEnginePath(cacheDirectory: string, version: string): string {
  return join(cacheDirectory, "engines", version, "runsc");
}

/** The versions in the cache, intact or not. */
export async function cachedVersions(cacheDirectory: string): Promise<string[]> {
  const names = await readdir(join(cacheDirectory, "engines")).catch(() => []);
  return names.filter((name) => existsSync(cachedEnginePath(cacheDirectory, name)));
}

/** Undefined if it is missing, or differs from what was installed. */
export async function readCachedEngine(
  cacheDirectory: string,
  version: string,
  signal: AbortSignal,
): Promise<Engine | undefined> {
  const path = cachedEnginePath(cacheDirectory, version);
  if (!existsSync(path)) return undefined;
  const expected = await readFile(`${path}.sha256`, "utf8").catch(() => "");
  const sha256 = await hashFile(path);
  if (expected.split(/\s/)[0] !== sha256) return undefined;
  const inspection = await inspectEngine(path, signal);
  return inspection.ok ? { path, version: inspection.version.name, sha256, source: "cache" } : undefined;
}

/** Checks a newly obtained runsc and puts it into the cache under its own version. */
export async function installEngine(
  cacheDirectory: string,
  candidate: string,
  source: string,
  signal: AbortSignal,
): Promise<Engine> {
  const inspection = await inspectEngine(candidate, signal);
  if (!inspection.ok) throw new SandboxerError("backend_unavailable", inspection.reason);
  const path = cachedEnginePath(cacheDirectory, inspection.version.name);
  const sha256 = await hashFile(candidate);
  await mkdir(join(path, ".."), { recursive: true });
  await writeFile(`${path}.sha256.new`, `${sha256}  runsc\n`);
  await rename(`${path}.sha256.new`, `${path}.sha256`);
  await installFile(candidate, path, 0o755);
  return { path, version: inspection.version.name, sha256, source };
}
