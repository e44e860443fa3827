import { join } from "node:path";
import { SandboxerError } from "@sandboxer/protocol";
import { acquireFileLock } from "../../support/file-lock.ts";
import type { SetupContext } from "../context.ts";
import { findGo } from "../go.ts";
import { removeStaleScratch } from "../scratch.ts";
import { runStep } from "../step.ts";
import { debianPackage } from "./debian-package.ts";
import { describeEngine, inspectEngine } from "./inspect.ts";
import { DEBIAN_RUNSC } from "./checksums.ts";
import { cachedCopy, installed } from "./local-sources.ts";
import { newestBuild } from "./newest.ts";
import { isReleaseVersion, officialRelease } from "./official-release.ts";
import type { Engine, EngineSource } from "./source.ts";
import { NEWEST_ENGINE_VERSION, OFFICIAL_ENGINE_VERSION, PINNED_ENGINE_VERSION } from "./version.ts";

/** A build on a busy machine; nothing takes longer. */
const OTHER_PROCESS_MS = 45 * 60_000;

/** Needs no download. */
export const LOCAL_SOURCES: readonly EngineSource[] = [installed];
/** Where nothing is installed: the official release, or else Debian's of 2024. A start does not wait for a build. */
const ALL_SOURCES: readonly EngineSource[] = [
  ...LOCAL_SOURCES,
  officialRelease(OFFICIAL_ENGINE_VERSION),
  debianPackage,
  officialRelease(PINNED_ENGINE_VERSION),
];

/** The version that every release of ours is tested with, whatever else is installed. */
export const PINNED_SOURCES: readonly EngineSource[] = [
  cachedCopy,
  officialRelease(PINNED_ENGINE_VERSION),
  debianPackage,
];

/** The ways to get exactly this version, best first. The checksum is the one of the runsc that wrote an image. */
export function sourcesOf(version: string, sha256: string): readonly EngineSource[] {
  if (version === NEWEST_ENGINE_VERSION) return [newestBuild];
  if (version === PINNED_ENGINE_VERSION) {
    const isDebians = sha256 === DEBIAN_RUNSC[process.arch];
    const sources = [officialRelease(version), debianPackage];
    return isDebians ? sources.toReversed() : sources;
  }
  return isReleaseVersion(version) && sha256 !== "" ? [officialRelease(version, sha256)] : [];
}

/** The newest engine that was tested, for machines that have an older one. */
export const NEWEST_SOURCES: readonly EngineSource[] = [officialRelease(OFFICIAL_ENGINE_VERSION), newestBuild];

/** The runsc to use: the requested one, otherwise from the first source that has one. */
export async function locateEngine(context: SetupContext, sources = ALL_SOURCES): Promise<Engine> {
  if (context.runscPath !== undefined) return useGivenEngine(context, context.runscPath);
  return firstOf(context, sources, (reasons) => ({
    message: `No runsc was found that is new enough. ${reasons}`,
    hint: "Install runsc (https://gvisor.dev/docs/user_guide/install/), or install Go and run `sandboxer setup --newest`.",
  }));
}

/** Builds the newest tested runsc, or uses the cached build. Servers that start from then on prefer it. */
export async function buildNewestEngine(context: SetupContext): Promise<Engine> {
  const hint =
    findGo(context.searchPath) === undefined
      ? "Install Go 1.26 or newer (https://go.dev/doc/install) and try again."
      : "Try again: Go keeps what it has fetched and compiled. Run `go env GOPROXY` if it cannot fetch modules.";
  return fetchEngine(context, NEWEST_ENGINE_VERSION, [newestBuild], hint);
}

/**
 * Fetches or builds an engine: one of a name at a time on this machine, which may take minutes. It has a lock of its own,
 * so that no server waits for it when it starts.
 */
export async function fetchEngine(
  context: SetupContext,
  name: string,
  sources: readonly EngineSource[],
  hint: string,
): Promise<Engine> {
  const scratchDirectory = join(context.cacheDirectory, "fetching", name);
  const lock = await acquireFileLock(join(scratchDirectory, "lock"), {
    waitMs: OTHER_PROCESS_MS,
    ...(context.signal === undefined ? {} : { signal: context.signal }),
    onWait: () => {
      const message = `Another process is fetching or building runsc ${name}; waiting for it`;
      context.report({ name: "engine lock", state: "start", message, elapsedMs: 0 });
    },
  });
  if (lock === undefined)
    throw new SandboxerError("timeout", `Another process has been fetching runsc ${name} for too long.`);
  try {
    await removeStaleScratch(scratchDirectory);
    return await firstOf({ ...context, scratchDirectory }, sources, (message) => ({ message, hint }));
  } finally {
    await lock.release();
  }
}

/** The engine of the first source that has one, or an error with the reasons of all. */
async function firstOf(
  context: SetupContext,
  sources: readonly EngineSource[],
  failure: (reasons: string) => { readonly message: string; readonly hint: string },
): Promise<Engine> {
  const reasons: string[] = [];
  for (const source of sources) {
    const engine = await trySource(context, source, reasons);
    if (engine !== undefined) return engine;
  }
  const { message, hint } = failure(reasons.join(" "));
  throw new SandboxerError("backend_unavailable", message, { hint });
}

/** A failing source counts as having none: the next one is tried, and the reason is kept. */
async function trySource(context: SetupContext, source: EngineSource, reasons: string[]): Promise<Engine | undefined> {
  try {
    return await runStep(context.report, {
      name: `engine: ${source.name}`,
      message: source.message,
      timeoutMs: source.timeoutMs,
      signal: context.signal,
      work: async (signal) => {
        const result = await source.find(context, signal);
        if ("skipped" in result) reasons.push(result.skipped);
        return result;
      },
    });
  } catch (thrown) {
    context.signal?.throwIfAborted();
    reasons.push((thrown as Error).message);
    return undefined;
  }
}

async function useGivenEngine(context: SetupContext, path: string): Promise<Engine> {
  const engine = await runStep(context.report, {
    name: "engine: given path",
    message: `Checking ${path}`,
    timeoutMs: 10_000,
    signal: context.signal,
    work: async (signal) => {
      const inspection = await inspectEngine(path, signal);
      if (!inspection.ok)
        throw new SandboxerError("backend_unavailable", inspection.reason, { hint: "Correct --runsc." });
      const value = await describeEngine(path, inspection.version, "given path");
      return { value, message: `runsc ${value.version} at ${path}` };
    },
  });
  return engine as Engine;
}
