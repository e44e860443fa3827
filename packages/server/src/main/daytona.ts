import { randomUUID } from "node:crypto";
import { join } from "node:path";
import { asSandboxerError } from "@sandboxer/protocol";
import type { DaytonaInstallation, DaytonaOptions } from "../backends/daytona/index.ts";
import type { FateOf } from "../backends/instance-folder.ts";
import type { BackendProvider } from "../backends/lazy-backend.ts";
import { DAYTONA } from "../backends/traits.ts";
import type { SecretResolver } from "../secrets/secret.ts";
import type { ReportStep } from "../setup/index.ts";
import type { PreparedBackend } from "./backends.ts";
import type { ServerConfig } from "./config.ts";
import { DAYTONA_API_KEY_SECRET } from "./config-schema.ts";
import { installationId } from "./installation.ts";

/** Daytona as the default backend. Leftovers of dead servers are looked for at the start. */
export function prepareDaytonaBackend(
  config: ServerConfig,
  secrets: SecretResolver,
  report: ReportStep,
): PreparedBackend {
  return {
    name: DAYTONA.name,
    engine: "Daytona",
    recover: (fateOf) => recover(config, secrets, report, fateOf),
    open: (instanceId) => open(config, secrets, instanceId),
  };
}

/** Containers at Daytona. Its key is a secret, which is read when the first sandbox needs it. */
export function daytonaProvider(config: ServerConfig, secrets: SecretResolver, fateOf: FateOf): BackendProvider {
  return {
    ...DAYTONA,
    refersOutside: true,
    open: async () => {
      await recover(config, secrets, () => {}, fateOf);
      return (await open(config, secrets, randomUUID())).backend;
    },
  };
}

async function open(config: ServerConfig, secrets: SecretResolver, instanceId: string) {
  const { openDaytonaBackend } = await import("../backends/daytona/index.ts");
  return openDaytonaBackend(optionsOf(config, secrets), { ...(await placeOf(config)), instanceId });
}

/**
 * An unreachable Daytona does not keep the server from starting: the first call reports it, and the next start looks
 * again.
 */
async function recover(
  config: ServerConfig,
  secrets: SecretResolver,
  report: ReportStep,
  fateOf: FateOf,
): Promise<string[]> {
  const { recoverDaytona } = await import("../backends/daytona/index.ts");
  const startMs = performance.now();
  try {
    return await recoverDaytona(optionsOf(config, secrets), await placeOf(config), fateOf);
  } catch (error) {
    const message = `Sandboxes that earlier servers left at Daytona could not be listed: ${asSandboxerError(error).message}`;
    report({ name: "daytona", state: "failed", message, elapsedMs: Math.round(performance.now() - startMs) });
    return [];
  }
}

function optionsOf(config: ServerConfig, secrets: SecretResolver): DaytonaOptions {
  const { daytonaOrganizationId, daytonaApiUrl, daytonaToolboxUrl, daytonaTarget } = config;
  return {
    apiKey: () => secrets.resolve(DAYTONA_API_KEY_SECRET),
    ...(daytonaApiUrl === undefined ? {} : { apiUrl: daytonaApiUrl }),
    ...(daytonaToolboxUrl === undefined ? {} : { toolboxUrl: daytonaToolboxUrl }),
    ...(daytonaOrganizationId === undefined ? {} : { organizationId: daytonaOrganizationId }),
    ...(daytonaTarget === undefined ? {} : { target: daytonaTarget }),
  };
}

async function placeOf({ dataDirectory }: ServerConfig): Promise<DaytonaInstallation> {
  return { directory: join(dataDirectory, "daytona"), owner: await installationId(dataDirectory) };
}
