import { SandboxerError } from "@sandboxer/protocol";
import type { SetupContext } from "../context.ts";
import { runStep } from "../step.ts";
import { debianPackage } from "./debian-package.ts";
import { describeEngine, inspectEngine } from "./inspect.ts";
import { cachedCopy, onPath } from "./local-sources.ts";
import { newestBuild } from "./newest.ts";
import { officialRelease } from "./official-release.ts";
import type { Engine, EngineSource } from "./source.ts";

/** Sources that need no download. */
export const LOCAL_SOURCES: readonly EngineSource[] = [onPath, cachedCopy];
const ALL_SOURCES: readonly EngineSource[] = [...LOCAL_SOURCES, officialRelease, debianPackage];

/** The version that every release of ours is tested with, whatever is on PATH. */
export const PINNED_SOURCES: readonly EngineSource[] = [cachedCopy, officialRelease, debianPackage];

/** The runsc to use: the requested one, otherwise from the first source that has one. */
export async function locateEngine(context: SetupContext, sources = ALL_SOURCES): Promise<Engine> {
  if (context.runscPath !== undefined) return useGivenEngine(context, context.runscPath);
  const reasons: string[] = [];
  for (const source of sources) {
    const engine = await trySource(context, source, reasons);
    if (engine !== undefined) return engine;
  }
  throw new SandboxerError("backend_unavailable", `No runsc was found that is new enough. ${reasons.join(" ")}`, {
    hint: "Install runsc (https://gvisor.dev/docs/user_guide/install/), or install Go and run `sandboxer setup --newest`.",
  });
}

/** Builds the newest tested runsc, or uses the cached build. A server uses it with `--runsc PATH`. */
export async function buildNewestEngine(context: SetupContext): Promise<Engine> {
  const reasons: string[] = [];
  const engine = await trySource(context, newestBuild, reasons);
  if (engine !== undefined) return engine;
  throw new SandboxerError("backend_unavailable", reasons.join(" "), {
    hint: "Install Go 1.26 or newer (https://go.dev/doc/install) and try again.",
  });
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
