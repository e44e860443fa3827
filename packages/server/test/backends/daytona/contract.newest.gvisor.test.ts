import { describeGvisor } from "../gvisor/support/describe-gvisor.ts";
import { testBackend } from "../backend-contract.ts";
import { openGvisorServer } from "./gvisor-lab.ts";

describeGvisor("Daytona on a test server over gVisor", (engine) => {
  let behind: ReturnType<typeof openGvisorServer> | undefined;
  let opened = 0;

  testBackend("daytona", async () => {
    behind ??= openGvisorServer(engine);
    const { open, close } = await behind;
    const backend = open();
    opened++;
    return {
      backend,
      close: async () => {
        await backend.close();
        if (--opened === 0) await close();
      },
    };
  });
});
