import { FakeBackend } from "../../../src/backends/fake/index.ts";
import { DaytonaBackend } from "../../../src/backends/daytona/daytona-backend.ts";
import type { DaytonaOptions } from "../../../src/backends/daytona/index.ts";
import { Secret } from "../../../src/secrets/secret.ts";
import { DaytonaServer } from "./server/daytona-server.ts";

export const QUICK = { firstPollMs: 5, maxPollMs: 20, changeTimeoutMs: 5000, watchMs: 60_000 } as const;

export const openServer = (): Promise<DaytonaServer> => DaytonaServer.open(new FakeBackend());

/** As another server would open it. */
export function openBackend(server: DaytonaServer, overrides: Partial<DaytonaOptions> = {}): DaytonaBackend {
  return new DaytonaBackend({
    apiKey: () => Promise.resolve(new Secret("daytona-api-key", server.apiKey)),
    organizationId: server.organizationId,
    apiUrl: server.apiUrl,
    toolboxUrl: server.toolboxUrl,
    timing: QUICK,
    ...overrides,
  });
}
