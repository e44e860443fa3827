import { hashFile, isExecutable } from "../files.ts";
import { tellingLine, runCommand } from "../run-command.ts";
import { isNewEnough, OLDEST_ENGINE_DATE, parseEngineVersion, type EngineVersion } from "./version.ts";
import type { Engine } from "./source.ts";

export type Inspection =
  | { readonly ok: true; readonly version: EngineVersion }
  | { readonly ok: false; readonly reason: string };

/** Runs `runsc --version`. A build without a version is as unusable as an old one: restoring compares versions. */
export async function inspectEngine(path: string, signal: AbortSignal): Promise<Inspection> {
  if (!isExecutable(path)) return { ok: false, reason: `${path} is not an executable file.` };
  const result = await runCommand([path, "--version"], { signal });
  if (result.code !== 0) return { ok: false, reason: `${path} --version failed: ${tellingLine(result)}` };
  const version = parseEngineVersion(result.stdout);
  if (version === undefined) return { ok: false, reason: `${path} is not runsc: it does not print a runsc version.` };
  if (!isNewEnough(version)) {
    return { ok: false, reason: `${path} is version ${version.name}; ${OLDEST_ENGINE_DATE} or newer is needed.` };
  }
  return { ok: true, version };
}

export async function describeEngine(path: string, version: EngineVersion, source: string): Promise<Engine> {
  return { path, version: version.name, sha256: await hashFile(path), source };
}
