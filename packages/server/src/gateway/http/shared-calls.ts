import { createHash, randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { SandboxerError } from "@sandboxer/protocol";
import { z } from "zod";
import type { SharedRecords } from "../access/shared-records.ts";
import { jsonOf } from "../../support/json.ts";
import type { PeerSecret } from "../access/peer-secret.ts";
import { openText, sealText } from "../access/sealed-text.ts";
import { usedForAnother } from "./idempotency.ts";

/** Larger answers are not kept: a repeated call at another server learns only that it was done. */
const MAX_ANSWER_BYTES = 256 * 1024;
const LOOK_MS = 100;
const LONGEST_LOOK_MS = 2_000;
const WRITE_TRIES = 5;

const recordSchema = z.looseObject({
  format: z.literal(1),
  /** The digest of everything that a repeated call must have in common with the first. */
  request: z.string(),
  /** The server that began the call. */
  server: z.string(),
  /** Nothing is kept of a failed call: it can be repeated. */
  state: z.enum(["running", "done", "failed"]),
  /** Sealed, because it may contain a token; null: it was too large. */
  answer: z.string().nullable(),
});

type CallRecord = z.infer<typeof recordSchema>;

export interface SharedCallsOptions {
  readonly records: SharedRecords;
  readonly secret: PeerSecret;
  /** The present id of this server. */
  readonly instanceId: () => string;
  /** Rejects if that is unknown now. */
  readonly isAlive: (instanceId: string) => Promise<boolean>;
}

export interface SharedCall {
  /** Separates callers and routes, and has the caller's Idempotency-Key. */
  readonly identity: string;
  readonly requestDigest: string;
  /** The caller's API key: only with it can an answer be read again. */
  readonly credential: string | undefined;
  readonly signal: AbortSignal;
}

/** A call that this server is to carry out, for all servers of the store. */
export interface ClaimedCall {
  readonly claimed: true;
  readonly done: (answer: unknown) => Promise<void>;
  /** It can be repeated. */
  readonly failed: () => Promise<void>;
}

export type Claim = ClaimedCall | { readonly claimed: false; readonly answer: unknown };

/**
 * Calls with an `Idempotency-Key` at several servers of a store: one carries the call out, the others wait for its
 * answer. One cell for each key, created if absent before the call and swapped after it; around midnight, when servers
 * may disagree about the day, one in each day.
 */
export class SharedCalls {
  readonly #options: SharedCallsOptions;

  constructor(options: SharedCallsOptions) {
    this.#options = options;
  }

  async claim(call: SharedCall): Promise<Claim> {
    const taken: ClaimedCall[] = [];
    const failed = async (): Promise<void> => {
      for (const each of taken) await each.failed();
    };
    try {
      // All servers take them in the same order, so that none waits for another in a circle.
      for (const key of this.#options.records.keysOf("calls", call.identity)) {
        const claim = (await this.#take(key, undefined, call)) ?? (await this.#known(key, call));
        if (claim.claimed) taken.push(claim);
        else {
          await failed();
          return claim;
        }
      }
    } catch (error) {
      await failed();
      throw error;
    }
    return {
      claimed: true,
      done: async (answer) => {
        for (const each of taken) await each.done(answer);
      },
      failed,
    };
  }

  /** Another server has the call, or had it. */
  async #known(key: string, call: SharedCall): Promise<Claim> {
    const { records, isAlive, instanceId } = this.#options;
    for (let lookMs = LOOK_MS; ; lookMs = Math.min(2 * lookMs, LONGEST_LOOK_MS)) {
      const cell = await records.read(key);
      const record = cell === undefined ? undefined : recordSchema.safeParse(jsonOf(cell.body)).data;
      // It failed there, so that it can be repeated here; or nobody can read it.
      const isFree =
        record === undefined || record.state === "failed" || (record.state === "running" && !(await isRunning(record)));
      const taken = isFree ? await this.#take(key, cell?.version, call) : undefined;
      if (taken !== undefined) return taken;
      if (record !== undefined && record.request !== call.requestDigest) throw usedForAnother();
      if (record?.state === "done") return { claimed: false, answer: this.#answerOf(record, call) };
      await delay(lookMs, undefined, { signal: call.signal }).catch(() => {});
      call.signal.throwIfAborted();
    }
    // Calls of this server are in its memory; a record of its own is from before it was declared dead.
    async function isRunning({ server }: CallRecord): Promise<boolean> {
      return server !== instanceId() && (await isAlive(server));
    }
  }

  async #take(key: string, expected: string | undefined, call: SharedCall): Promise<ClaimedCall | undefined> {
    const { records, instanceId } = this.#options;
    const record = { format: 1 as const, request: call.requestDigest, server: instanceId(), nonce: randomUUID() };
    const running = bodyOf({ ...record, state: "running", answer: null });
    if (!(await records.swap(key, expected, running))) return undefined;
    return {
      claimed: true,
      done: async (answer) => {
        const text = JSON.stringify(answer) ?? "null";
        const kept = text.length > MAX_ANSWER_BYTES ? null : sealText(this.#sealOf(call), text);
        await this.#replace(key, running, bodyOf({ ...record, state: "done", answer: kept }));
      },
      failed: async () => await this.#replace(key, running, bodyOf({ ...record, state: "failed", answer: null })),
    };
  }

  async #replace(key: string, running: Buffer, done: Buffer): Promise<void> {
    const version = await this.#mine(key, running);
    if (version !== undefined) await this.#options.records.swap(key, version, done);
  }

  /** The version of the cell while it has what this server wrote. */
  async #mine(key: string, running: Buffer): Promise<string | undefined> {
    const cell = await this.#options.records.read(key);
    return cell !== undefined && running.equals(cell.body) ? cell.version : undefined;
  }

  #answerOf({ answer }: CallRecord, call: SharedCall): unknown {
    const text = answer === null ? undefined : openText(this.#sealOf(call), answer);
    if (text !== undefined) return JSON.parse(text);
    throw new SandboxerError(
      "bad_request",
      "This call was carried out at another server, which has not kept its answer.",
      {
        hint: "Read what the call created or changed, for example with GET /v1/sandboxes. Use a fresh key for a new call.",
      },
    );
  }

  #sealOf({ identity, credential }: SharedCall): readonly Buffer[] {
    return this.#options.secret.keysFor("answers of calls", identity, credential);
  }
}

/** Covers everything that a repeated call must have in common with the first. */
export function digestOf(request: unknown): string {
  return createHash("sha256").update(JSON.stringify(request)).digest("hex");
}

export interface SharedCallsHolder {
  /** Undefined without a configured store. */
  readonly sharedCalls: SharedCalls | undefined;
  /** A record for other servers could not be written. */
  readonly onRecordFailure: (error: unknown) => void;
}

/** Begins a call once for all servers of the store. `elsewhere`: another server has answered it. */
export async function onceForAll<Begun extends { readonly result: Promise<unknown> }>(
  { sharedCalls, onRecordFailure }: SharedCallsHolder,
  call: SharedCall,
  begin: () => Begun,
  elsewhere: (answer: unknown) => Begun,
): Promise<Begun> {
  const claim = await sharedCalls?.claim(call);
  if (claim?.claimed === false) return elsewhere(claim.answer);
  const begun = begin();
  // The answer does not wait for the record: a repeated call does.
  begun.result
    .then(
      (answer) => untilWritten(async () => await claim?.done(answer)),
      () => untilWritten(async () => await claim?.failed()),
    )
    .catch(onRecordFailure);
  return begun;
}

/** A repeated call waits for the record, so a store that fails for a moment is asked again. */
async function untilWritten(write: () => Promise<void>): Promise<void> {
  for (let left = WRITE_TRIES - 1; ; left -= 1) {
    try {
      return await write();
    } catch (error) {
      if (left === 0) throw error;
      await delay(LONGEST_LOOK_MS);
    }
  }
}

function bodyOf(record: CallRecord & { readonly nonce: string }): Buffer {
  return Buffer.from(`${JSON.stringify(record)}\n`);
}
