import { describe } from "vitest";
import { testEngine, type TestEngine } from "./engine.ts";

/** A suite that needs an engine; without one it is skipped, and its name has the reason. */
export function describeGvisor(name: string, define: (engine: TestEngine) => void): void {
  const engine = testEngine();
  const missing = "missing" in engine ? engine.missing : undefined;
  const on = "missing" in engine ? `skipped: ${engine.missing}` : `on runsc ${engine.version}, ${engine.platform}`;
  describe.skipIf(missing !== undefined)(`${name} (${on})`, () => define("missing" in engine ? NO_ENGINE : engine));
}

const NO_ENGINE: TestEngine = { path: "", version: "", sha256: "", platform: "systrap", agentPath: "" };
