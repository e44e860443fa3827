import { randomUUID } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { GvisorBackend, type GvisorBackendOptions } from "../../../../src/backends/gvisor/gvisor-backend.ts";
import { RunDirectory } from "../../../../src/backends/gvisor/run-directory.ts";
import type { TestEngine } from "./engine.ts";

export const MIB = 1024 * 1024;

export interface OpenedBackend {
  readonly backend: GvisorBackend;
  readonly runDirectory: RunDirectory;
  readonly close: () => Promise<void>;
}

/** A backend with a run directory and a cache of its own, unless they are given, as on a server of its own. */
export async function openGvisor(
  engine: TestEngine,
  overrides: Partial<GvisorBackendOptions> = {},
): Promise<OpenedBackend> {
  const given = overrides.runDirectory !== undefined && overrides.cacheDirectory !== undefined;
  const directory = given ? overrides.runDirectory.path : await mkdtemp(join(tmpdir(), "sandboxer-gvisor-"));
  const runDirectory = overrides.runDirectory ?? (await RunDirectory.open(join(directory, "run"), randomUUID()));
  const backend = await GvisorBackend.open({
    engine: { path: engine.path, version: engine.version, sha256: engine.sha256, control: "messages" },
    platform: engine.platform,
    agentPath: engine.agentPath,
    cacheDirectory: join(directory, "cache"),
    defaultImage: "host",
    imageDirectories: [],
    defaultResources: { memoryBytes: 512 * MIB, processes: 256, diskBytes: 1024 * MIB, fileBytes: 512 * MIB },
    heartbeatMs: 0,
    ...overrides,
    runDirectory,
  });
  return {
    backend,
    runDirectory,
    close: async () => {
      await backend.close();
      await runDirectory.close();
      await rm(directory, { recursive: true, force: true });
    },
  };
}
