import { SandboxerError } from "@sandboxer/protocol";
import type { ListeningPort, SandboxConnection } from "../../backends/backend.ts";
import { unlessAborted } from "../../support/unless-aborted.ts";
import type { ManagerContext } from "../context.ts";
import type { RequestKeys } from "../encryption.ts";
import { resumeSandbox } from "../lifecycle/resume.ts";
import { live, type LiveSandbox } from "../live-sandbox.ts";
import { notFound, wasDestroyed } from "../not-found.ts";
import { isPlaceProblem } from "../ownership/affinity.ts";
import { offerToPeers } from "../ownership/offer-to-peers.ts";
import { untilArrived } from "../ownership/until-arrived.ts";
import { type OtherServer, ownerElsewhere } from "../ownership/owner-elsewhere.ts";
import { Room } from "../room.ts";
import { runningSandbox } from "../running.ts";
import type { Sandbox } from "../sandbox.ts";
import { storedFacts } from "../stored-facts.ts";
import { checkAccess } from "../token.ts";
import { Wakes } from "./wakes.ts";

/** How often a sandbox is looked for again that another server claimed in between. */
const LOOKS = 5;
const NEVER = new AbortController().signal;
/** After a resume, a program that listens may need a moment until it listens again. */
const SETTLING_MS = 2_000;
const CONNECT_AGAIN_MS = 25;

/** Access to the ports of a sandbox for callers without a server key. */
export interface PortAccess {
  isToken(token: string): boolean;
  isPublic(port: number): boolean;
  /** The sandbox's labels, for rules of the caller's own. */
  readonly labels: Readonly<Record<string, string>>;
  /** How often signed links of the port were withdrawn. */
  linkRound(port: number): number;
}

export interface OpenPort {
  readonly connection: SandboxConnection;
  /** Until this is called, the sandbox is not idle. Idempotent. */
  readonly release: () => void;
}

export interface ReachOptions {
  readonly encryption?: RequestKeys | undefined;
  /** The caller stops waiting; a resume that has begun continues. */
  readonly signal?: AbortSignal | undefined;
}

export interface ShownPort extends ListeningPort {
  readonly isPublic: boolean;
}

/** The ports of sandboxes: who may open them, where they are, and connections to them. */
export class PortVerbs extends Room<ManagerContext> {
  readonly #wakes: Wakes;
  /** Monotonic times of resumes that requests caused, while programs may still be settling. */
  readonly #woken = new Map<string, number>();

  constructor(context: ManagerContext, wakesAtOnce: number) {
    super(context);
    this.#wakes = new Wakes(wakesAtOnce);
  }

  /** Throws `sandbox_not_found`; a deleted sandbox has no ports either. */
  async access(sandboxId: string): Promise<PortAccess> {
    const { facts } = this.context.sandboxes.get(sandboxId) ?? {};
    const head = facts === undefined ? await this.context.storedHead(sandboxId) : undefined;
    if (facts === undefined && head === undefined) throw notFound(sandboxId);
    if (head?.state === "deleted") throw wasDestroyed(sandboxId);
    const tokenHash = facts?.tokenHash ?? head?.token_hash;
    const about = facts?.about ?? head?.about;
    const publicPorts = about?.public_ports ?? [];
    const labels = facts?.labels ?? (head === undefined ? {} : storedFacts(sandboxId, head).labels);
    return {
      labels,
      linkRound: (port) => about?.link_rounds?.[port] ?? 0,
      isPublic: (port) => publicPorts.includes(port),
      isToken: (token) => {
        try {
          checkAccess({ token, trusted: false }, tokenHash);
          return true;
        } catch {
          return false;
        }
      },
    };
  }

  /** Whether the sandbox runs here now, so that nothing has to be waited for. */
  runsHere(sandboxId: string): boolean {
    return this.context.sandboxes.get(sandboxId)?.state === "running";
  }

  /**
   * The sandbox, which runs here, or the other server that runs it. A paused sandbox is resumed here, or on another
   * server if this one has no room or cannot run it. An owner keeps the sandbox: it is never moved for a request.
   */
  async reach(sandboxId: string, { encryption, signal }: ReachOptions = {}): Promise<Sandbox | OtherServer> {
    const { context } = this;
    for (let look = 1; ; look += 1) {
      if (this.runsHere(sandboxId)) return await runningSandbox(context, sandboxId, undefined, { signal });
      const owner = await ownerElsewhere(context, sandboxId);
      if (owner !== undefined) return owner;
      try {
        await unlessAborted(this.#wake(sandboxId, encryption), signal);
      } catch (error) {
        const isTaken = error instanceof SandboxerError && error.code === "lease_held";
        if (!isTaken || look >= LOOKS) throw error;
        // It may have accepted the sandbox, and not claimed it yet.
        await untilArrived(context, sandboxId, signal ?? NEVER);
      }
    }
  }

  /** Lets another server resume a sandbox that this one has no room for, or cannot run. Returns the error for callers. */
  async #wakeElsewhere(sandboxId: string, error: unknown): Promise<unknown> {
    const { context } = this;
    const head = isPlaceProblem(error) ? await context.storedHead(sandboxId) : undefined;
    // Another server would need the client's key.
    if (head === undefined || head.about?.encryption?.held_by === "client") return error;
    const { epoch } = head;
    const left = { sandboxId, epoch, from: context.durable.ownership.instanceId, reason: "no_room" } as const;
    const isOnTheWay = context.recentHandoffs.isOnTheWay(sandboxId) || (await offerToPeers(context, left, head));
    return isOnTheWay ? new SandboxerError("lease_held", "Another server resumes the sandbox.") : error;
  }

  #wake(sandboxId: string, encryption: RequestKeys | undefined): Promise<void> {
    const { context } = this;
    const key = encryption?.presentedKey?.fingerprint ?? "";
    return this.#wakes.run(`${sandboxId} ${key}`, async () => {
      if (this.runsHere(sandboxId)) return;
      const options = encryption === undefined ? {} : { encryption };
      const resumed = resumeSandbox(context, { sandboxId, onlyIfFree: true }, options);
      const sandbox = await resumed.catch(async (error: unknown) => {
        throw await this.#wakeElsewhere(sandboxId, error);
      });
      // They were paused before, and may be paused again when no request comes.
      sandbox.processes.waitForRequests();
      this.#woken.set(sandboxId, context.nowMs);
      setTimeout(() => this.#woken.delete(sandboxId), SETTLING_MS).unref();
    });
  }

  /** Connects to a port of a sandbox that runs here. `backend_unavailable`: nothing listens. */
  async open(sandbox: Sandbox, port: number): Promise<OpenPort> {
    const running = live(sandbox);
    const { backend } = running.facts;
    if (!this.context.backend(backend).capabilities.connect) {
      throw new SandboxerError("not_supported", `The backend ${backend} has no connections to ports inside.`);
    }
    const release = running.hold(() => this.context.nowMs, `a connection to port ${port}`);
    try {
      return { connection: await this.#connect(running, port), release };
    } catch (error) {
      release();
      throw error;
    }
  }

  async #connect(sandbox: LiveSandbox, port: number): Promise<SandboxConnection> {
    for (;;) {
      try {
        return await sandbox.handle.connect(port);
      } catch (error) {
        const isRefused = error instanceof SandboxerError && error.code === "backend_unavailable";
        if (!isRefused || !this.#woken.has(sandbox.id)) throw error;
        await new Promise((resolve) => setTimeout(resolve, CONNECT_AGAIN_MS));
      }
    }
  }

  /** The ports on which programs inside listen. */
  async list(sandbox: Sandbox): Promise<readonly ShownPort[]> {
    const { handle, facts } = live(sandbox);
    if (handle.listeningPorts === undefined) {
      throw new SandboxerError("not_supported", `The backend ${facts.backend} cannot tell which ports are open.`);
    }
    const { public_ports: publicPorts } = facts.about;
    const ports = await handle.listeningPorts();
    return ports.map((each) => ({ ...each, isPublic: publicPorts.includes(each.port) }));
  }
}
