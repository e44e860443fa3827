import { describe } from "vitest";
import { testEngine, type TestEngine } from "./engine.ts";

/** A suite that needs an engine; without one it is skipped, and its name says why. */
export function describeGvisor(name: string, define: (engine: TestEngine) => void): void {
  const engine = testEngine();
  if ("missing" in engine) describe.skip(`${name} (skipped: ${engine.missing})`, () => define(NO_ENGINE));
  else describe(`${name} on runsc ${engine.version}, ${engine.platform}`, () => define(engine));
}

const NO_ENGINE: TestEngine = { path: "", version: "", sha256: "", platform: "systrap", agentPath: "" };
