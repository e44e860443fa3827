import type { OtherServer } from "../../manager/ownership/owner-elsewhere.ts";
import type { Service } from "../http/handler.ts";

/** A wrong entry costs one more call: the server that had the sandbox says that it does not. */
const KEEP_MS = 30_000;
/** For calls that the wrong server would answer, or whose body can be sent only once. */
const KEEP_IF_SURE_MS = 5_000;
const KEEP_OWNERS = 10_000;

/** The servers that own the sandboxes of relayed calls. Kept for a moment, so that a relayed call reads nothing. */
export class Owners {
  /** Oldest first. */
  readonly #known = new Map<string, { readonly server: OtherServer; readonly sinceMs: number }>();

  /** Undefined: the sandbox is here, or no reachable server has it. */
  async find(service: Service, sandboxId: string, mustBeSure: boolean): Promise<OtherServer | undefined> {
    const keepMs = mustBeSure ? KEEP_IF_SURE_MS : KEEP_MS;
    if (service.epochOf(sandboxId) !== undefined) return await this.#lookUp(service, sandboxId);
    const known = this.#known.get(sandboxId);
    // Its address may belong to another server by now.
    const isUsable = known !== undefined && !service.isKnownDead(known.server.instanceId);
    if (isUsable && performance.now() - known.sinceMs < keepMs) return known.server;
    return await this.#lookUp(service, sandboxId);
  }

  /** Whether it was known; it does not have the sandbox any more. */
  forget(sandboxId: string): boolean {
    return this.#known.delete(sandboxId);
  }

  async #lookUp(service: Service, sandboxId: string): Promise<OtherServer | undefined> {
    this.#known.delete(sandboxId);
    const server = await service.ownerElsewhere(sandboxId);
    if (server === undefined) return undefined;
    this.#known.set(sandboxId, { server, sinceMs: performance.now() });
    const [oldest] = this.#known.keys();
    if (oldest !== undefined && this.#known.size > KEEP_OWNERS) this.#known.delete(oldest);
    return server;
  }
}
