import type { SetupContext } from "../context.ts";
import { findProgram } from "../files.ts";
import { cachedVersions, readCachedEngine } from "./cache.ts";
import { describeEngine, inspectEngine } from "./inspect.ts";
import type { Engine, EngineSource } from "./source.ts";
import { byPreference, PINNED_ENGINE_VERSION } from "./version.ts";

const LOOK_TIMEOUT_MS = 10_000;

/** An engine of this machine that was not read yet: that takes a moment for each. */
export interface LocalEngine {
  readonly version: string;
  readonly where: string;
  /** Undefined if it is damaged. */
  read(signal: AbortSignal): Promise<Engine | undefined>;
}

/** The engines on this machine, the preferred one first: `--runsc`, those in the cache, and the one on PATH. */
export async function localEngines(
  { cacheDirectory, searchPath, runscPath }: Pick<SetupContext, "cacheDirectory" | "searchPath" | "runscPath">,
  signal: AbortSignal,
  reasons: string[] = [],
): Promise<LocalEngine[]> {
  const onPath = findProgram("runsc", searchPath);
  if (onPath === undefined) reasons.push("No runsc on PATH.");
  const given = await programAt(runscPath, "given path", signal, reasons);
  const others = [
    ...(await programAt(onPath, "runsc on PATH", signal, reasons)),
    ...(await cachedVersions(cacheDirectory)).map((version) => ({
      version,
      where: "cache",
      read: () => readCachedEngine(cacheDirectory, version, signal),
    })),
  ];
  return [...given, ...others.toSorted((left, right) => byPreference(left.version, right.version))];
}

async function programAt(
  path: string | undefined,
  where: string,
  signal: AbortSignal,
  reasons: string[],
): Promise<LocalEngine[]> {
  if (path === undefined) return [];
  const inspection = await inspectEngine(path, signal);
  if (!inspection.ok) {
    reasons.push(inspection.reason);
    return [];
  }
  const { version } = inspection;
  return [{ version: version.name, where, read: () => describeEngine(path, version, where) }];
}

/** The preferred engine of this machine. */
export const installed: EngineSource = {
  name: "installed runsc",
  message: "Looking for runsc in the cache and on PATH",
  timeoutMs: LOOK_TIMEOUT_MS,
  async find(context, signal) {
    const reasons: string[] = [];
    for (const local of await localEngines(context, signal, reasons)) {
      const engine = await local.read(signal);
      if (engine !== undefined) return { value: engine, message: `runsc ${engine.version} at ${engine.path}` };
      reasons.push(`The cached runsc ${local.version} is damaged.`);
    }
    return { skipped: [...reasons, `No runsc in ${context.cacheDirectory}/engines.`].join(" ") };
  },
};

/** The cached engine that every release of ours is tested with. */
export const cachedCopy: EngineSource = {
  name: "cached runsc",
  message: `Looking for a cached runsc ${PINNED_ENGINE_VERSION}`,
  timeoutMs: LOOK_TIMEOUT_MS,
  async find({ cacheDirectory }, signal) {
    const engine = await readCachedEngine(cacheDirectory, PINNED_ENGINE_VERSION, signal);
    if (engine === undefined) return { skipped: `No runsc ${PINNED_ENGINE_VERSION} in the cache.` };
    return { value: engine, message: `runsc ${engine.version} at ${engine.path}` };
  },
};
