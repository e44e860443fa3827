import { startTestServer, type TestServer } from "../../../../../../test/kit/server/test-server.ts";
import { CrashServer } from "./crash-server.ts";
import type { StepName } from "./steps.ts";
import { save, write } from "./survivor.ts";

export const DURABLE = { enable_checkpoint: true };
export const HANDOFF = { ...DURABLE, enable_sandbox_handoff: true };
/** How a process ends that was killed with -9. */
export const KILLED = { code: null, signal: "SIGKILL" };

export const LEASE_TTL_MS = 1_000;
/** For tests in which nobody has to be found dead: one that only gets no processor for a while must not be. */
export const LONG_LEASE_TTL_MS = 60_000;

/**
 * One server that lives on, and one that dies or stops at a step; short leases, so that nobody waits long, unless another
 * length is given. They share a folder of their own, unless another store is given.
 */
export async function pair(
  step: StepName,
  fate: "dieAt" | "stopAt" = "dieAt",
  address?: string,
  leaseTtlMs = LEASE_TTL_MS,
): Promise<{ survivor: TestServer; doomed: CrashServer; store: string }> {
  const shared = address === undefined ? {} : { store: address };
  const survivor = await startTestServer({ leaseTtlMs, ...shared });
  const store = survivor.storeFolder ?? "";
  const leaseTtl = `${leaseTtlMs / 1000}s`;
  return { survivor, store, doomed: await CrashServer.start({ store, leaseTtl, [fate]: step }) };
}

/** A sandbox in the store, with an acknowledged state that holds `old`. */
export async function storedSandbox(server: TestServer, configuration: object = DURABLE): Promise<string> {
  const { client, id } = await server.create(configuration);
  await write(client, "old");
  await save(client);
  return id;
}
