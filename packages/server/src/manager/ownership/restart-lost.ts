import { asSandboxerError, type Head, type SandboxerError } from "@sandboxer/protocol";
import { mapAtOnce } from "../../support/map-at-once.ts";
import { shuffled } from "../../support/shuffled.ts";
import { SerialQueue } from "../../support/serial-queue.ts";
import type { ManagerContext } from "../context.ts";
import { hasState } from "../lifecycle/restore.ts";
import { acceptSandbox, reportNotResumed } from "./accept-sandbox.ts";
import { isMisfit } from "./affinity.ts";
import { fitsElsewhere } from "./fitting-servers.ts";
import { offerToPeers } from "./offer-to-peers.ts";
import type { LeftSandbox } from "./peers.ts";
import { wantedByHead } from "./wanted.ts";

/** Servers learn of a death at about the same time: each begins a little later, and in its own order. */
const SPREAD_MS = 1_000;
/** How often a server without room looks again. Another one may have resumed the sandbox by then. */
const AGAIN_MS = 10_000;
const READS_AT_ONCE = 16;

/**
 * Resumes sandboxes of dead servers here, if they promise it (`restart: always`) and no other server is faster. Those
 * that are paused have no owner, and stay paused. Returns a function that stops it.
 */
export function restartLostSandboxes(context: ManagerContext): () => void {
  if (!context.durable.saves) return () => {};
  const { instances } = context.durable.ownership;
  const lost = new LostSandboxes(context);
  const stop = instances.listen({ onDied: () => lost.searchSoon() });
  if (instances.knowsDead) lost.searchSoon();
  return stop;
}

class LostSandboxes {
  readonly #context: ManagerContext;
  readonly #searches = new SerialQueue();
  /** Not resumed, and reported: with their epochs, because somebody may resume them and lose them again. */
  readonly #givenUp = new Map<string, number>();
  /** To be visited again. */
  readonly #left = new Set<string>();
  #isSoon = false;

  constructor(context: ManagerContext) {
    this.#context = context;
  }

  /** One search is enough for all deaths until it begins. */
  searchSoon(): void {
    if (this.#isSoon) return;
    this.#isSoon = true;
    this.#after(Math.random() * SPREAD_MS, async () => {
      this.#isSoon = false;
      await this.#visitAll(await this.#promised());
    });
  }

  /** Tries again after a failure: the promise must not depend on one answer of the store. */
  #after(ms: number, work: () => Promise<void>): void {
    const { ending, options } = this.#context;
    const isOver = options.clock.sleep(ms, ending.signal).then(
      () => true,
      () => false,
    );
    const run = async (): Promise<void> => {
      if (!(await isOver)) return;
      await this.#searches.run(work).catch((error: unknown) => {
        this.#after(AGAIN_MS, work);
        throw error;
      });
    };
    this.#context.inBackground("search for sandboxes of dead servers", run());
  }

  /** Only the heads of these are read: the index knows who promises it, because that never changes. */
  async #promised(): Promise<readonly string[]> {
    const { index } = this.#context.durable.ownership;
    const { sorted } = await index.look();
    return sorted.flatMap(({ sandboxId, restarts }) => (restarts && !index.isDestroyed(sandboxId) ? [sandboxId] : []));
  }

  async #visitAll(sandboxIds: readonly string[]): Promise<void> {
    const { draining, durable } = this.#context;
    if (draining) return;
    const cannot = durable.ownership.instances.frozen || this.#context.room().places === 0;
    if (cannot) return this.#visitAgain(sandboxIds);
    await mapAtOnce(shuffled(sandboxIds), READS_AT_ONCE, (sandboxId) => this.#visit(sandboxId));
  }

  #visitAgain(sandboxIds: readonly string[]): void {
    const isPlanned = this.#left.size > 0;
    for (const sandboxId of sandboxIds) this.#left.add(sandboxId);
    if (isPlanned || this.#left.size === 0) return;
    this.#after(AGAIN_MS, async () => {
      const left = [...this.#left];
      this.#left.clear();
      await this.#visitAll(left);
    });
  }

  async #visit(sandboxId: string): Promise<void> {
    const { head } = await this.#context.durable.ownership.readStored(sandboxId);
    if (head === undefined || !(await this.#isLost(head))) return;
    const { epoch, owner } = head;
    if (owner === null || this.#givenUp.get(sandboxId) === epoch) return;
    const left: LeftSandbox = { sandboxId, epoch, from: owner, reason: "server_died" };
    if (!hasState(head)) {
      this.#givenUp.set(sandboxId, epoch);
      return reportNotResumed(this.#context, left, "The sandbox was never saved, so nothing is left to resume.");
    }
    try {
      const { ended } = await acceptSandbox(this.#context, left);
      const settled = ended.then((error) => (error === undefined ? undefined : this.#onFailed(left, error.row)));
      this.#context.inBackground("resume of a dead server's sandbox", settled);
    } catch (error) {
      if (isMisfit(error)) await this.#onMisfit(left, head, error);
      else this.#onRefused(left, asSandboxerError(error).row);
    }
  }

  /** It is for other servers. One that starts later looks at the deaths before. */
  async #onMisfit(left: LeftSandbox, head: Head, { message }: SandboxerError): Promise<void> {
    const { sandboxId, epoch } = left;
    this.#givenUp.set(sandboxId, epoch);
    const wanted = await wantedByHead(this.#context, sandboxId, head);
    if (!(await fitsElsewhere(this.#context, wanted))) reportNotResumed(this.#context, left, message);
  }

  async #isLost({ state, owner }: Head): Promise<boolean> {
    const { ownership } = this.#context.durable;
    if (state !== "live" || owner === null || owner === ownership.instanceId) return false;
    return !ownership.instances.liveOthers.includes(owner) && (await ownership.isDead(owner));
  }

  /** This server has no room now, or cannot run it at all. */
  #onRefused({ sandboxId, epoch }: LeftSandbox, { retryable }: { readonly retryable: boolean }): void {
    if (retryable) this.#visitAgain([sandboxId]);
    else this.#givenUp.set(sandboxId, epoch);
  }

  /** A restore that fails releases the sandbox: a server with another engine or CPU may be able to run it. */
  async #onFailed(left: LeftSandbox, row: { readonly retryable: boolean }): Promise<void> {
    const { sandboxId, epoch } = left;
    const head = await this.#context.durable.ownership.read(sandboxId);
    if (head?.state === "parked" && head.epoch === epoch + 1) {
      await offerToPeers(this.#context, { ...left, epoch: head.epoch }, head);
    } else this.#onRefused(left, row);
  }
}
