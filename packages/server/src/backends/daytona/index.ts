import { InstanceFolder, forgetDeadInstances, knownInstances } from "../instance-folder.ts";
import type { FateOf, OpenedBackend } from "../instance-folder.ts";
import { DaytonaApi } from "./daytona-api.ts";
import { DaytonaBackend } from "./daytona-backend.ts";
import { DaytonaConnection } from "./daytona-connection.ts";
import type { DaytonaOptions } from "./daytona-options.ts";
import type { CallOptions } from "../../support/call-options.ts";
import type { DaytonaSandbox } from "./api-schemas.ts";
import { restingSinceMs } from "./choose-candidates.ts";
import { vendorStatus } from "./daytona-errors.ts";
import { idleTtlMsOf, LABELS } from "./labels.ts";
import { phaseOf } from "./sandbox-state.ts";

export type { DaytonaOptions } from "./daytona-options.ts";

/** Long enough for a working Daytona; the start of a server waits for it. */
const RECOVERY_MS = 20_000;

/** The folder and name of an installation's marks. */
export interface DaytonaInstallation {
  readonly directory: string;
  readonly owner: string;
}

/** Nothing is requested from Daytona, and the key is not read, before the first call. */
export async function openDaytonaBackend(
  options: Omit<DaytonaOptions, "maker" | "onClosed">,
  { directory, owner, instanceId }: DaytonaInstallation & { readonly instanceId: string },
): Promise<OpenedBackend> {
  const instance = await InstanceFolder.open(directory, instanceId);
  const backend = new DaytonaBackend({ ...options, maker: { owner, instanceId }, onClosed: () => instance.close() });
  return instance.opened(backend);
}

/**
 * Cleans up after servers of this installation at Daytona: sandboxes of dead processes are stopped, and those that were
 * stopped for longer than their idle time are deleted. Sandboxes of other owners, and of live processes, are not
 * touched; changing ones are left to the next run, and to Daytona's auto-stop. Returns the ids of the dead processes.
 */
export async function recoverDaytona(
  options: DaytonaOptions,
  { directory, owner }: DaytonaInstallation,
  fateOf: FateOf,
): Promise<string[]> {
  const connection = new DaytonaConnection(options);
  const api = new DaytonaApi(connection.api);
  const nowMs = connection.clock.wallMs();
  const call = { signal: AbortSignal.timeout(RECOVERY_MS) };
  const listed = await api.list({ [LABELS.owner]: owner }, call);
  for (const sandbox of listed) if (isExpired(sandbox, nowMs)) await api.destroy(sandbox.id, call);
  const cleanUp = async (instanceId: string): Promise<void> => {
    const running = listed.filter((sandbox) => isRunFor(sandbox, instanceId));
    for (const { id } of running) await settle(api, id, instanceId, fateOf, call);
  };
  const dead = await forgetDeadInstances(directory, cleanUp);
  // Daytona may have finished a request of a process after that process was dead and forgotten.
  const alive = new Set(await knownInstances(directory));
  const holders = new Set(listed.flatMap(({ labels }) => labels?.[LABELS.instance] ?? []));
  for (const holder of holders) if (!alive.has(holder)) await cleanUp(holder);
  return dead;
}

function isExpired(sandbox: DaytonaSandbox, nowMs: number): boolean {
  const ttlMs = idleTtlMsOf(sandbox.labels ?? {});
  return ttlMs !== undefined && phaseOf(sandbox.state) === "resting" && nowMs - restingSinceMs(sandbox, nowMs) > ttlMs;
}

function isRunFor({ labels, state }: DaytonaSandbox, instanceId: string): boolean {
  return labels?.[LABELS.instance] === instanceId && phaseOf(state) === "running";
}

/** A live process may have claimed it since it was listed, or it may have ended by itself. */
async function settle(
  api: DaytonaApi,
  id: string,
  instanceId: string,
  fateOf: FateOf,
  call: Pick<CallOptions, "signal">,
): Promise<void> {
  try {
    const sandbox = await api.get(id, call);
    if (!isRunFor(sandbox, instanceId)) return;
    const fate = await fateOf(sandbox.labels?.[LABELS.sandboxId] ?? "");
    if (fate === "destroyed") await api.destroy(id, call);
    else if (fate === "free") await api.stop(id, call);
  } catch (thrown) {
    const status = vendorStatus(thrown);
    if (status !== 400 && status !== 404 && status !== 409) throw thrown;
  }
}
