import { asSandboxerError, SandboxerError, type NetworkPolicy } from "@sandboxer/protocol";
import type { NetworkGuard, SandboxHandle, SandboxSpec } from "../../backends/backend.ts";
import { Egress, type EgressFigures } from "../../egress/egress.ts";
import { EgressProxy } from "../../egress/egress-proxy.ts";
import { guardOf } from "../../egress/guard.ts";
import { PROXY_PORT, proxyEnvironment } from "../../egress/proxy-environment.ts";
import type { Outside } from "../../egress/outside.ts";
import type { RefusalLog } from "./refusal-log.ts";

/** The manager's services for connecting a sandbox. */
export interface NetworkContext {
  readonly outside: Outside;
  refusals(sandboxId: string): RefusalLog;
}

/** How one copy of a sandbox reaches the network: not at all, through this server's proxy, or by its backend. */
export class NetworkAccess {
  readonly refusals: RefusalLog;
  readonly #handle: SandboxHandle;
  readonly #egress: Egress;
  #policy: NetworkPolicy = "none";
  /** The port of the proxy inside; undefined: there is none. */
  #proxyPort: number | undefined;
  #guard: NetworkGuard | undefined;

  constructor(context: NetworkContext, sandboxId: string, handle: SandboxHandle) {
    const { outside } = context;
    this.#handle = handle;
    this.refusals = context.refusals(sandboxId);
    this.#egress = new Egress({ outside, policy: "none", onRefused: (refusal) => this.refusals.note(refusal) });
    void handle.ended.then(() => this.#egress.close());
  }

  get way(): "none" | "proxy" | "own" {
    if (this.#handle.ownNetwork === true) return "own";
    return this.#policy === "none" ? "none" : "proxy";
  }

  /** Undefined: bytes do not go through this server, or not all. */
  get figures(): EgressFigures | undefined {
    const isJudged = this.#proxyPort !== undefined || (this.#guard !== undefined && this.#policy !== "open");
    return isJudged ? this.#egress.figures : undefined;
  }

  /** Variables for programs that start now, except those that are set already. */
  environmentBeside(...set: readonly Readonly<Record<string, string>>[]): Readonly<Record<string, string>> {
    if (this.#proxyPort === undefined || this.#policy === "none") return {};
    const entries = Object.entries(proxyEnvironment(this.#proxyPort));
    return Object.fromEntries(entries.filter(([name]) => !set.some((env) => Object.hasOwn(env, name))));
  }

  /** From now on, for open connections too. */
  async use(policy: NetworkPolicy): Promise<void> {
    // First, so that new connections are judged by it.
    this.#egress.setPolicy(policy);
    try {
      await this.#open(policy);
    } catch (error) {
      this.#egress.setPolicy(this.#policy);
      throw error;
    }
    this.#policy = policy;
  }

  async #open(policy: NetworkPolicy): Promise<void> {
    if (this.#handle.ownNetwork === true) {
      if (this.#handle.setNetwork === undefined) throw cannotChange();
      this.#guard ??= guardOf(this.#egress);
      await this.#handle.setNetwork(policy, this.#guard);
    } else if (policy !== "none") this.#proxyPort ??= await this.#listen();
  }

  async #listen(): Promise<number> {
    const proxy = new EgressProxy(this.#egress);
    const listen = async (port: number): Promise<number> => {
      if (this.#handle.listen === undefined) throw cannotChange();
      return this.#handle.listen(port, (connection) => proxy.accept(connection));
    };
    return listen(PROXY_PORT).catch((error: unknown) => {
      if (asSandboxerError(error).code !== "wrong_state") throw error;
      // A program inside has the port.
      return listen(0);
    });
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
  const isServed = handle.ownNetwork === true ? handle.setNetwork !== undefined : spec.network !== "none";
  if (isServed) await access.use(spec.network);
  return access;
}
