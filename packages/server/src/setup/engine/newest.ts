import { createHash } from "node:crypto";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { findGo, goInstall } from "../go.ts";
import { tellingLine, runCommand } from "../run-command.ts";
import { inScratchDirectory } from "../scratch.ts";
import { installEngine, readCachedEngine } from "./cache.ts";
import { NEWEST_RUNSC_MODULES, requireChecksum } from "./checksums.ts";
import type { EngineSource } from "./source.ts";
import { NEWEST_ENGINE_VERSION } from "./version.ts";

const HINT = "Check GOPROXY, GOFLAGS and GOSUMDB (go env), or build runsc yourself and start with --runsc PATH.";

export const newestBuild = newestBuildOf(NEWEST_RUNSC_MODULES);

/** The build takes minutes, so nobody waits for it at a start; it stands back for whatever else runs here. */
export function newestBuildOf(modulesSha256: string): EngineSource {
  return {
    name: "go build",
    message: `Building runsc ${NEWEST_ENGINE_VERSION} with Go; this takes some minutes`,
    timeoutMs: 40 * 60_000,
    async find({ cacheDirectory, scratchDirectory = cacheDirectory, searchPath }, signal) {
      const cached = await readCachedEngine(cacheDirectory, NEWEST_ENGINE_VERSION, signal);
      if (cached !== undefined) return { value: cached, message: `runsc ${cached.version} at ${cached.path}` };
      const go = findGo(searchPath);
      if (go === undefined) return { skipped: "Go is not installed; it is needed to build the newest runsc." };

      return inScratchDirectory(scratchDirectory, async (directory) => {
        const binDirectory = join(directory, "bin");
        await mkdir(binDirectory);
        // Without this flag a build has no version, and restoring compares versions.
        const flags = `-s -w -X gvisor.dev/gvisor/runsc/version.version=${NEWEST_ENGINE_VERSION}`;
        const result = await goInstall(
          go,
          ["-trimpath", "-ldflags", flags, `gvisor.dev/gvisor/runsc@v${NEWEST_ENGINE_VERSION}`],
          { signal, env: { GOBIN: binDirectory, CGO_ENABLED: "0" }, workingDirectory: directory, standBack: true },
        );
        if (result.code !== 0) return { skipped: `go install: ${tellingLine(result)}` };
        const candidate = join(binDirectory, "runsc");
        const modules = await hashModules(go, candidate, signal);
        requireChecksum("The source that Go built runsc from", modules, modulesSha256, HINT);
        const engine = await installEngine(cacheDirectory, candidate, this.name, signal);
        return { value: engine, message: `runsc ${engine.version} at ${engine.path}` };
      });
    },
  };
}

/** Go itself compares them with its checksum database, but its environment can turn that off. */
async function hashModules(go: string, program: string, signal: AbortSignal): Promise<string> {
  const { stdout } = await runCommand([go, "version", "-m", program], { signal });
  const modules = stdout.split("\n").filter((line) => /^\t(mod|dep|=>)\t/.test(line));
  return createHash("sha256")
    .update(modules.map((line) => `${line}\n`).join(""))
    .digest("hex");
}
