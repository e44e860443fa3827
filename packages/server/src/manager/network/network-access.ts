import { asSandboxerError, SandboxerError, type NetworkPolicy } from "@sandboxer/protocol";
import type { SandboxHandle, SandboxSpec } from "../../backends/backend.ts";
import { EgressProxy, type EgressFigures } from "../../egress/egress-proxy.ts";
import { PROXY_PORT, proxyEnvironment } from "../../egress/proxy-environment.ts";
import type { Outside } from "../../egress/outside.ts";
import type { RefusalLog } from "./refusal-log.ts";

/** What connecting a sandbox needs of the manager. */
export interface NetworkContext {
  readonly outside: Outside;
  refusals(sandboxId: string): RefusalLog;
}

/** How one copy of a sandbox reaches the network: not at all, through this server's proxy, or by its backend. */
export class NetworkAccess {
  readonly refusals: RefusalLog;
  readonly #context: NetworkContext;
  readonly #handle: SandboxHandle;
  #policy: NetworkPolicy = "none";
  #proxy: { readonly egress: EgressProxy; readonly port: number } | undefined;

  constructor(context: NetworkContext, sandboxId: string, handle: SandboxHandle) {
    this.#context = context;
    this.#handle = handle;
    this.refusals = context.refusals(sandboxId);
  }

  get way(): "none" | "proxy" | "own" {
    if (this.#handle.ownNetwork === true) return "own";
    return this.#policy === "none" ? "none" : "proxy";
  }

  /** Undefined: no byte went through this server. */
  get figures(): EgressFigures | undefined {
    return this.#proxy?.egress.figures;
  }

  /** Variables for programs that start now, except those that are set already. */
  environmentBeside(...set: readonly Readonly<Record<string, string>>[]): Readonly<Record<string, string>> {
    if (this.#proxy === undefined || this.#policy === "none") return {};
    const entries = Object.entries(proxyEnvironment(this.#proxy.port));
    return Object.fromEntries(entries.filter(([name]) => !set.some((env) => Object.hasOwn(env, name))));
  }

  /** From now on, for open connections too. */
  async use(policy: NetworkPolicy): Promise<void> {
    if (this.#handle.ownNetwork === true) {
      if (this.#handle.setNetwork === undefined) throw cannotChange();
      await this.#handle.setNetwork(policy);
    } else if (policy !== "none" && this.#proxy === undefined) {
      this.#proxy = await this.#listen(policy);
      void this.#handle.ended.then(() => this.#proxy?.egress.close());
    }
    this.#proxy?.egress.setPolicy(policy);
    this.#policy = policy;
  }

  async #listen(policy: NetworkPolicy): Promise<{ egress: EgressProxy; port: number }> {
    const { outside } = this.#context;
    const egress = new EgressProxy({ outside, policy, onRefused: (refusal) => this.refusals.note(refusal) });
    const listen = async (port: number): Promise<number> => {
      if (this.#handle.listen === undefined) throw cannotChange();
      return this.#handle.listen(port, (connection) => egress.accept(connection));
    };
    const port = await listen(PROXY_PORT).catch((error: unknown) => {
      if (asSandboxerError(error).code !== "wrong_state") throw error;
      // A program inside has the port.
      return listen(0);
    });
    return { egress, port };
  }
}

function cannotChange(): SandboxerError {
  return new SandboxerError("not_supported", "The backend cannot change the network of a sandbox that exists.", {
    hint: "Create a new sandbox with the network that you need.",
  });
}

/** Connects a copy of a sandbox to the network as its policy says, before anything is started in it. */
export async function openNetwork(
  context: NetworkContext,
  { sandboxId, spec }: { readonly sandboxId: string; readonly spec: Pick<SandboxSpec, "network"> },
  handle: SandboxHandle,
): Promise<NetworkAccess> {
  const access = new NetworkAccess(context, sandboxId, handle);
  if (spec.network !== "none" && handle.ownNetwork !== true) await access.use(spec.network);
  return access;
}
