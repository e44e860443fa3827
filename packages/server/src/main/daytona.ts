import type { BackendProvider } from "../backends/lazy-backend.ts";
import type { SecretResolver } from "../secrets/secret.ts";
import type { ServerConfig } from "./config.ts";
import { DAYTONA_API_KEY_SECRET } from "./config-schema.ts";

/** Containers at Daytona. Its key is a secret, which is read when the first sandbox asks for it. */
export function daytonaProvider(config: ServerConfig, secrets: SecretResolver): BackendProvider {
  const { daytonaOrganizationId, daytonaApiUrl, daytonaToolboxUrl, daytonaTarget } = config;
  return {
    name: "daytona",
    capabilities: {
      snapshot: "filesystem",
      filesystemSnapshot: true,
      pty: true,
      files: true,
      connect: false,
      network: true,
      limits: false,
      selfHosted: false,
      outlivesServer: true,
    },
    loads: ["daytona-snapshot"],
    open: async () => {
      const { openDaytonaBackend } = await import("../backends/daytona/index.ts");
      return openDaytonaBackend({
        apiKey: () => secrets.resolve(DAYTONA_API_KEY_SECRET),
        ...(daytonaApiUrl === undefined ? {} : { apiUrl: daytonaApiUrl }),
        ...(daytonaToolboxUrl === undefined ? {} : { toolboxUrl: daytonaToolboxUrl }),
        ...(daytonaOrganizationId === undefined ? {} : { organizationId: daytonaOrganizationId }),
        ...(daytonaTarget === undefined ? {} : { target: daytonaTarget }),
      });
    },
  };
}
