import { describe, inject, it } from "vitest";
import type { DockerService } from "./docker-service.ts";

/** A suite on a real engine; without one it is skipped with the reason, and with CI=true that is a failure. */
export function describeDocker(name: string, define: (service: DockerService) => void): void {
  const service = inject("docker");
  if (!("missing" in service)) {
    describe(name, () => define(service));
    return;
  }
  describe(name, () => {
    it("has a Docker engine", (context) => {
      if (process.env["CI"] === "true") throw new Error(service.missing);
      console.log(`skipped: ${service.missing}`);
      context.skip(service.missing);
    });
  });
}
