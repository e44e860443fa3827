import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { testBackend } from "../backend-contract.ts";
import { describeDocker } from "./support/describe-docker.ts";
import { openDocker } from "./support/open-docker.ts";

describeDocker("the contract", (service) =>
  testBackend("docker", async () => {
    const directory = await mkdtemp(join(tmpdir(), "sandboxer-docker-"));
    const { backend } = await openDocker(service, directory);
    return {
      backend,
      close: async () => {
        await backend.close();
        await rm(directory, { recursive: true, force: true });
      },
    };
  }),
);
