import { afterAll, beforeAll } from "vitest";
import { openGvisorServer } from "./gvisor-lab.ts";
import { describeGvisor } from "../gvisor/support/describe-gvisor.ts";
import { resumeAcrossProcesses } from "../../system/resume/support/resume-contract.ts";
import { ResumeLab } from "../../system/resume/support/resume-lab.ts";

describeGvisor("resuming across processes, at Daytona's test server", (engine) => {
  let behind: Awaited<ReturnType<typeof openGvisorServer>>;
  beforeAll(async () => {
    behind = await openGvisorServer(engine);
  });
  afterAll(() => behind.close());

  const open = (): Promise<ResumeLab> => {
    const { apiUrl, toolboxUrl, organizationId, apiKey } = behind.server;
    const place = ["--daytona-api-url", apiUrl, "--daytona-toolbox-url", toolboxUrl];
    return ResumeLab.open({
      flags: ["--backend", "daytona", ...place, "--daytona-organization-id", organizationId],
      env: { DAYTONA_API_KEY: apiKey },
    });
  };
  resumeAcrossProcesses(open, { keepsUnsaved: true });
});
