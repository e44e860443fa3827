import { findProgram } from "../files.ts";
import { readCachedEngine } from "./cache.ts";
import { describeEngine, inspectEngine } from "./inspect.ts";
import type { EngineSource } from "./source.ts";
import { PINNED_ENGINE_VERSION } from "./version.ts";

const LOOK_TIMEOUT_MS = 10_000;

export const onPath: EngineSource = {
  name: "runsc on PATH",
  message: "Looking for runsc on PATH",
  timeoutMs: LOOK_TIMEOUT_MS,
  async find({ searchPath }, signal) {
    const path = findProgram("runsc", searchPath);
    if (path === undefined) return { skipped: "No runsc on PATH." };
    const inspection = await inspectEngine(path, signal);
    if (!inspection.ok) return { skipped: inspection.reason };
    const engine = await describeEngine(path, inspection.version, this.name);
    return { value: engine, message: `runsc ${engine.version} at ${path}` };
  },
};

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
