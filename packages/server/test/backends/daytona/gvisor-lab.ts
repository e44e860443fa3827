import type { TestEngine } from "../gvisor/support/engine.ts";
import { openGvisor } from "../gvisor/support/open-backend.ts";
import { openBackend } from "./lab.ts";
import type { DaytonaBackend } from "../../../src/backends/daytona/daytona-backend.ts";
import { DaytonaServer } from "./server/daytona-server.ts";

const PATIENT = { changeTimeoutMs: 60_000, firstPollMs: 20, maxPollMs: 200 } as const;

/** The backend's scripts inside need a real shell, so real sandboxes are behind the test server here. */
export async function openGvisorServer(engine: TestEngine): Promise<{
  readonly server: DaytonaServer;
  readonly open: () => DaytonaBackend;
  readonly close: () => Promise<void>;
}> {
  const gvisor = await openGvisor(engine);
  const server = await DaytonaServer.open(gvisor.backend);
  return {
    server,
    open: () => openBackend(server, { timing: PATIENT }),
    close: async () => {
      await server.close();
      await gvisor.close();
    },
  };
}
