import { type FateOf, InstanceFolder, type OpenedBackend } from "../instance-folder.ts";
import { DaytonaApi } from "./daytona-api.ts";
import { DaytonaBackend } from "./daytona-backend.ts";
import { DaytonaConnection } from "./daytona-connection.ts";
import type { DaytonaOptions } from "./daytona-options.ts";
import { recoverSandboxes } from "./recover.ts";

export type { DaytonaOptions } from "./daytona-options.ts";

/** Where the marks of an installation are, and what it is called. */
export interface DaytonaInstallation {
  readonly directory: string;
  readonly owner: string;
}

/** Nothing is asked of Daytona, and the key is not read, before the first call. */
export async function openDaytonaBackend(
  options: Omit<DaytonaOptions, "maker" | "onClosed">,
  { directory, owner, instanceId }: DaytonaInstallation & { readonly instanceId: string },
): Promise<OpenedBackend> {
  const instance = await InstanceFolder.open(directory, instanceId);
  const backend = new DaytonaBackend({ ...options, maker: { owner, instanceId }, onClosed: () => instance.close() });
  return instance.opened(backend);
}

/** Long enough for a Daytona that answers; the start of a server waits for it. */
const RECOVERY_MS = 20_000;

/** Puts in order what dead servers of this installation have left; gives the ids of those. */
export async function recoverDaytona(
  options: DaytonaOptions,
  { directory, owner }: DaytonaInstallation,
  fateOf: FateOf,
): Promise<string[]> {
  const { api, clock } = new DaytonaConnection(options);
  const signal = AbortSignal.timeout(RECOVERY_MS);
  return recoverSandboxes({ api: new DaytonaApi(api), directory, owner, nowMs: clock.wallMs(), fateOf }, { signal });
}
