import { type SandboxerError } from "@sandboxer/protocol/errors";
import { anySignal, pause } from "./wire/abort.ts";
import type { Answer, CallInput, CallOptions, JsonRouteName, StreamRouteName, WireOptions } from "./wire/call-types.ts";
import { isSandboxerError, neverSent } from "./wire/errors.ts";
import { httpUrl, isOneShot } from "./wire/request.ts";
import { backoff } from "./wire/retry.ts";
import { isRepeatable, ROUTE_TABLE, type PlainRoute } from "./wire/route-table.ts";
import type { Transport } from "./wire/transport.ts";

export interface RoamingOptions {
  /** Resumes a paused sandbox when it is used. Default: true. */
  readonly autoResume?: boolean | undefined;
  /** Talks directly to the server that runs the sandbox, if it can be reached. Default: true. */
  readonly followOwner?: boolean | undefined;
}

/** How long another server may take to answer before it counts as unreachable. */
const OWNER_TIMEOUT_MS = 3_000;
/** A sandbox that is being saved or moved is available again soon. */
const MAX_DETOURS = 40;
const PASSING_STATES: readonly unknown[] = ["saving", "restoring", "creating"];

/** Calls about one sandbox, wherever it is: they go to the server that runs it, and resume it if it is paused. */
export class SandboxCalls {
  readonly transport: Transport;
  readonly sandboxId: string;
  readonly #options: Required<{ [Key in keyof RoamingOptions]: boolean }>;
  readonly #waits = backoff({ firstDelayMs: 50, maxDelayMs: 1_000 });
  #url: string;
  #resuming: Promise<unknown> | undefined;
  /** This client has paused the sandbox, so passive listeners must not resume it. */
  #putDown = false;

  constructor(transport: Transport, sandboxId: string, { autoResume = true, followOwner = true }: RoamingOptions = {}) {
    this.transport = transport;
    this.sandboxId = sandboxId;
    this.#options = { autoResume, followOwner: followOwner && !transport.relay };
    this.#url = transport.url;
  }

  /** Where the sandbox was last found. */
  get url(): string {
    return this.#url;
  }

  get isPutDown(): boolean {
    return this.#putDown;
  }

  async call<Name extends JsonRouteName>(
    name: Name,
    input: CallInput<Name>,
    options: WireOptions = {},
  ): Promise<Answer<Name>> {
    const route: PlainRoute = ROUTE_TABLE[name];
    // One key for all attempts, wherever they go.
    const idempotencyKey = options.idempotencyKey ?? crypto.randomUUID();
    const oneShot = isOneShot(input.body);
    if (oneShot) await this.#beforeOneShot(options);
    const repeatable = !oneShot && isRepeatable(route);
    return this.#roaming((url) => this.transport.call(name, input, { ...options, url, idempotencyKey }), {
      signal: options.signal,
      repeatable,
      detours: oneShot ? 0 : MAX_DETOURS,
    });
  }

  async read<Name extends StreamRouteName, Result>(
    name: Name,
    input: CallInput<Name>,
    options: CallOptions,
    use: (response: Response) => Promise<Result>,
  ): Promise<Result> {
    return this.#roaming((url) => this.transport.read(name, input, { ...options, url }, use), {
      signal: options.signal,
      repeatable: true,
      detours: MAX_DETOURS,
    });
  }

  /** A cell runs once: if it is unknown whether the server got it, the call fails. */
  async openCell(body: CallInput<"runCell">["body"], options: CallOptions): Promise<Response> {
    const input = { params: { id: this.sandboxId }, body };
    return this.#roaming((url) => this.transport.openCell(input, { ...options, url }), {
      signal: options.signal,
      repeatable: false,
      detours: MAX_DETOURS,
    });
  }

  /** Marks the sandbox as paused by this client during and after `work`. */
  async puttingDown<Result>(work: () => Promise<Result>): Promise<Result> {
    const before = this.#putDown;
    this.#putDown = true;
    try {
      return await work();
    } catch (error) {
      this.#putDown = before;
      throw error;
    }
  }

  /** Resumes it on the client's own server. Waits for a save or restore in progress. */
  async resume(options: WireOptions & { checkpoint?: string | undefined } = {}): Promise<Answer<"resumeSandbox">> {
    const { checkpoint, ...wire } = options;
    const input = { params: { id: this.sandboxId }, body: checkpoint === undefined ? {} : { checkpoint } };
    const signal = anySignal(wire.signal, this.transport.signal);
    for (let failures = 1; ; failures += 1) {
      try {
        const record = await this.transport.call("resumeSandbox", input, wire);
        this.#url = this.transport.url;
        this.#putDown = false;
        return record;
      } catch (error) {
        if (failures > MAX_DETOURS || !isPassing(error)) throw error;
        await pause(this.#waits.delayMs(failures), signal);
      }
    }
  }

  /** Handles an error so that the call can be repeated; false if that is not possible. */
  async recover(error: unknown, signal: AbortSignal | undefined, failures = 1): Promise<boolean> {
    if (!isSandboxerError(error)) return false;
    const away = this.#url !== this.transport.url;
    const isRelayed = this.transport.relay || error.code !== "lease_held";
    if (isRelayed && isOfOwner(error)) return this.#throughRelay(error, signal, failures);
    if (error.code === "lease_held") return this.#toOwner(error, signal);
    if (
      away &&
      isSandboxerError(error, "server_unreachable", "starting", "draining", "unauthorized", "sandbox_not_found")
    ) {
      this.#url = this.transport.url;
      return true;
    }
    if (error.code === "lease_lost" && failures < 5) {
      this.#url = this.transport.url;
      await pause(this.#waits.delayMs(failures), signal);
      return true;
    }
    if (error.code === "wrong_state" && error.details["state"] === "stored") return this.#wake(signal);
    if (!isPassing(error)) return false;
    await pause(this.#waits.delayMs(failures), signal);
    return true;
  }

  async #roaming<Result>(
    work: (url: string) => Promise<Result>,
    { signal, repeatable, detours }: { signal: AbortSignal | undefined; repeatable: boolean; detours: number },
  ): Promise<Result> {
    for (let failures = 1; ; failures += 1) {
      try {
        return await work(this.#url);
      } catch (error) {
        const uncertain = isSandboxerError(error, "server_unreachable", "timeout") && !neverSent(error);
        if (failures > detours || (uncertain && !repeatable)) throw error;
        if (!(await this.recover(error, anySignal(signal, this.transport.signal), failures))) throw error;
      }
    }
  }

  async #toOwner(error: SandboxerError, signal: AbortSignal | undefined): Promise<boolean> {
    const owner = error.details["url"];
    if (this.#options.followOwner && typeof owner === "string" && owner !== this.#url && (await this.#answers(owner))) {
      this.#url = owner;
      return true;
    }
    // Unreachable from here: the client's own server requests it.
    return this.#wake(signal);
  }

  /** The server could not relay the call, or only to an earlier owner. */
  async #throughRelay(error: SandboxerError, signal: AbortSignal | undefined, failures: number): Promise<boolean> {
    const mayBeFound = error.code === "lease_held" && typeof error.details["url"] === "string" && failures < 5;
    // It cannot be reached there, so it is requested.
    if (!mayBeFound) return this.#wake(signal);
    await pause(this.#waits.delayMs(failures), signal);
    return true;
  }

  async #wake(signal: AbortSignal | undefined): Promise<boolean> {
    if (!this.#options.autoResume) return false;
    this.#resuming ??= this.resume({ signal }).finally(() => (this.#resuming = undefined));
    await this.#resuming;
    return true;
  }

  /** Whether a server named by another one can be reached and trusted with the key. */
  async #answers(owner: string): Promise<boolean> {
    const url = httpUrl(owner);
    const home = new URL(this.transport.url);
    if (url === undefined || (home.protocol === "https:" && url.protocol !== "https:")) return false;
    const look = this.transport.call(
      "getSandbox",
      { params: { id: this.sandboxId } },
      { url: owner, attempts: 1, signal: AbortSignal.timeout(OWNER_TIMEOUT_MS) },
    );
    return look.then(
      () => true,
      () => false,
    );
  }

  /** A stream can be sent only once, so the sandbox must be found and resumed before. */
  async #beforeOneShot(options: CallOptions): Promise<void> {
    await this.call("listProcesses", { params: { id: this.sandboxId } }, { signal: options.signal });
  }
}

/** A relaying server's facts about the server that runs the sandbox. */
function isOfOwner(error: SandboxerError): boolean {
  if (error.code === "lease_held") return true;
  return (
    isSandboxerError(error, "server_unreachable", "permission_denied") && typeof error.details["owner"] === "string"
  );
}

function isPassing(error: unknown): boolean {
  return isSandboxerError(error, "wrong_state") && PASSING_STATES.includes(error.details["state"]);
}
