import { describe, inject } from "vitest";
import type { DockerService } from "./docker-service.ts";

const NO_SERVICE: DockerService = { host: "", env: {}, image: "", network: "", runsc: undefined, agentPath: "" };

/** A suite on a real engine; without one it is skipped, and its name has the reason. */
export function describeDocker(name: string, define: (service: DockerService) => void): void {
  const service = inject("docker");
  const missing = "missing" in service ? service.missing : undefined;
  const suffix = missing === undefined ? "" : ` (skipped: ${missing})`;
  describe.skipIf(missing !== undefined)(`Docker: ${name}${suffix}`, () => {
    define("missing" in service ? NO_SERVICE : service);
  });
}
