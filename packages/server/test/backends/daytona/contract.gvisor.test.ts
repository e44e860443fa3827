import { describeGvisor } from "../../gvisor/support/describe-gvisor.ts";
import { openGvisor } from "../../gvisor/support/open-backend.ts";
import { testBackend } from "../backend-contract.ts";
import { openBackend } from "./lab.ts";
import { DaytonaServer } from "./server/daytona-server.ts";

/** The scripts that the backend runs inside need a real shell, so real sandboxes are behind the test server here. */
describeGvisor("Daytona on a test server over gVisor", (engine) => {
  let server: Promise<DaytonaServer> | undefined;
  let open = 0;
  const closers: (() => Promise<void>)[] = [];

  testBackend("daytona", async () => {
    server ??= openGvisor(engine).then(async (gvisor) => {
      const behind = await DaytonaServer.open(gvisor.backend);
      closers.push(() => behind.close(), gvisor.close);
      return behind;
    });
    open++;
    const backend = openBackend(await server, { timing: { changeTimeoutMs: 60_000, firstPollMs: 20, maxPollMs: 200 } });
    const close = async (): Promise<void> => {
      await backend.close();
      if (--open === 0) for (const closer of closers) await closer();
    };
    return { backend, close };
  });
});
