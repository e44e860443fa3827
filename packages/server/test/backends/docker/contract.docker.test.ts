import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { OpenDockerOptions } from "../../../src/backends/docker/index.ts";
import { testBackend } from "../backend-contract.ts";
import { describeDocker } from "./support/describe-docker.ts";
import { openDocker } from "./support/open-docker.ts";

describeDocker("the contract", (service) => {
  const open = async (overrides: Partial<OpenDockerOptions>) => {
    const directory = await mkdtemp(join(tmpdir(), "sandboxer-docker-"));
    const { backend } = await openDocker(service, directory, overrides);
    const close = async (): Promise<void> => {
      await backend.close();
      await rm(directory, { recursive: true, force: true });
    };
    return { backend, close };
  };
  testBackend("docker", () => open({}));
  if (service.runsc !== undefined) testBackend("docker with runsc", () => open({ runtime: service.runsc?.keeping }));
});
