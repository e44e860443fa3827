import { beforeAll } from "vitest";
import type { AcquireRequest, SandboxBackend } from "../../../src/backends/backend.ts";
import { testBackend } from "../backend-contract.ts";
import { describeServices, Lab } from "./fixture.ts";

describeServices("compose-ssh", (services) => {
  const lab = new Lab(services);
  let repo = "";
  beforeAll(async () => {
    repo = await lab.repository();
  });

  testBackend("compose-ssh", async () => {
    const backend = lab.backend();
    const placed = (request: AcquireRequest): AcquireRequest => ({
      ...request,
      spec: { ...request.spec, inputs: { repo }, placement: services.hosts[0] },
    });
    const withPlacement: SandboxBackend = {
      name: backend.name,
      capabilities: backend.capabilities,
      probe: () => backend.probe(),
      acquire: (request, options) => backend.acquire(placed(request), options),
      tryResume: (request, options) => backend.tryResume(placed(request), options),
      acquireFromSnapshot: (request, snapshot, options) =>
        backend.acquireFromSnapshot(placed(request), snapshot, options),
      close: () => backend.close(),
    };
    return { backend: withPlacement, close: () => backend.close() };
  });
});
