import type { HarnessV1NetworkPolicy, HarnessV1NetworkSandboxSession } from "@ai-sdk/harness";
import { type Sandbox, SandboxerError, type SandboxChange } from "@sandboxer/client";
import { fileVerbs } from "./files.ts";
import { processVerbs } from "./processes.ts";

/** A session of a harness, in a sandbox. */
export interface SandboxerSession extends HarnessV1NetworkSandboxSession {
  /** The SDK's handle: checkpoints, snapshots, forks, rewinds, promotions. */
  readonly sandbox: Sandbox;
}

export interface SessionOptions {
  readonly ports: readonly number[];
  /** Whether `stop` saves the sandbox. Otherwise it deletes it. */
  readonly keep: boolean;
  readonly signal: AbortSignal | undefined;
}

export async function openSession(sandbox: Sandbox, options: SessionOptions): Promise<SandboxerSession> {
  const { stdout } = await sandbox.exec("pwd", { signal: options.signal, stdin: "" });
  const defaultWorkingDirectory = stdout.trim();
  const restricted = {
    description:
      `A Linux sandbox (sandboxer, ${sandbox.record.backend}). The working directory is ${defaultWorkingDirectory}. ` +
      "Its files, memory and running programs survive pauses.",
    ...fileVerbs(sandbox, defaultWorkingDirectory),
    ...processVerbs(sandbox),
  };
  let ports = [...options.ports];
  const end = async (work: () => Promise<unknown>): Promise<void> => {
    await work().catch((error: unknown) => {
      if (!isOver(error)) throw error;
    });
  };
  const getPortEndpoint: SandboxerSession["getPortEndpoint"] = ({ port, protocol }) =>
    endpoint(sandbox, port, protocol);
  return {
    ...restricted,
    id: sandbox.id,
    sandbox,
    defaultWorkingDirectory,
    get ports() {
      return ports;
    },
    getPortEndpoint,
    getPortUrl: async (port) => (await getPortEndpoint(port)).url,
    stop: () =>
      end(async () => {
        if (!options.keep) return sandbox.destroy();
        const { state } = await sandbox.refresh();
        return state === "stored" ? undefined : sandbox.checkpoint();
      }),
    destroy: () => end(() => sandbox.destroy()),
    setNetworkPolicy: async (policy) => void (await sandbox.update({ network: networkOf(policy) })),
    // Every port can be resolved; this is what the session reports.
    setPorts: async (wanted) => void (ports = [...wanted]),
    restricted: () => restricted,
  };
}

/** A stopped or deleted sandbox may be stopped and deleted again. */
function isOver(error: unknown): boolean {
  return error instanceof SandboxerError && ["sandbox_not_found", "sandbox_destroyed"].includes(error.code);
}

/** The preview of a port. The key of this client opens it, and does not reach the program inside. */
async function endpoint(
  sandbox: Sandbox,
  port: number,
  protocol: "http" | "https" | "ws" | undefined,
): Promise<{ url: string; headers?: Record<string, string> }> {
  const url = new URL((await sandbox.portUrl(port)).url);
  const { apiKey } = sandbox.client.transport;
  url.search = "";
  if (protocol === "ws") url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
  return { url: url.href, ...(apiKey === undefined ? {} : { headers: { authorization: `Bearer ${apiKey}` } }) };
}

function networkOf(policy: HarnessV1NetworkPolicy): NonNullable<SandboxChange["network"]> {
  if (policy.mode === "allow-all") return "open";
  if (policy.mode === "deny-all") return "none";
  const { allowedHosts = [], allowedCIDRs = [], deniedCIDRs = [] } = policy;
  return {
    allow: [...allowedHosts, ...allowedCIDRs],
    ...(deniedCIDRs.length === 0 ? {} : { deny: [...deniedCIDRs] }),
  };
}
