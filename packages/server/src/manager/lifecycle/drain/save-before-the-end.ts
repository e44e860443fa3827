import { asSandboxerError, SandboxerError } from "@sandboxer/protocol";
import type { Unpublished, UnpublishedOwner } from "../../../checkpoints/unpublished/unpublished-checkpoints.ts";
import { unlessAborted } from "../../../support/unless-aborted.ts";
import type { GiveBack } from "../../../support/places.ts";
import type { ManagerContext } from "../../context.ts";
import { keyChoiceOf } from "../../encryption.ts";
import type { LiveSandbox } from "../../live-sandbox.ts";
import type { Track } from "../../observing/operations/tracked.ts";
import { abandonCopy } from "../../ownership/residence.ts";
import { publishUnpublished } from "../../ownership/publish-unpublished.ts";
import type { Captured } from "../../saving/save.ts";
import { CalledOff, endCopy, storeAndGiveUp, whilePausing, withLastCapture } from "../pause.ts";
import type { Drain, UnsavedSandbox } from "./drain.ts";

const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 5_000;
/** After this many failures to capture a sandbox, the engine is expected to fail again. */
const MOST_CAPTURES = 3;
const NO_ANSWER = Symbol("no answer");

/**
 * Saves a sandbox with its executions, and ends the local copy. While the store does not accept it, the copy stays
 * frozen and a complete image of it lies on this machine, so that nothing is lost whatever happens to this process.
 * Returns a report about a sandbox that is not in the store when the drain is over. `not running`: something else has
 * paused or ended it before.
 */
export async function saveBeforeTheEnd(
  context: ManagerContext,
  drain: Drain,
  sandbox: LiveSandbox,
  giveBack: GiveBack,
): Promise<UnsavedSandbox | "saved" | "not running"> {
  const saving = new LastSave(context, drain, sandbox);
  let failure: SandboxerError | undefined;
  const lastCheck = (): void => {
    // Nothing else is in progress now: this pause was called off, and left the sandbox stopped.
    if (sandbox.state === "saving") sandbox.moveTo("running");
    if (sandbox.state !== "running") throw new CalledOff();
  };
  const save = async (track: Track): Promise<void> => {
    try {
      await saving.run(track, giveBack);
    } catch (thrown) {
      failure = asSandboxerError(thrown);
      throw saving.kept === undefined ? failure : keptHere(failure);
    }
  };
  try {
    await whilePausing(context, sandbox, "drain", { lastCheck }, save, endUnsaved);
    return "saved";
  } catch (thrown) {
    if (thrown instanceof CalledOff) return "not running";
    const { message: reason } = failure ?? asSandboxerError(thrown);
    return { sandboxId: sandbox.id, reason, folder: saving.kept?.folder };
  } finally {
    drain.waitsNoMore(sandbox.id);
  }
}

/**
 * Ends a copy that was not saved, so that nobody waits for it. Its ownership ends with this server's lease. A provider
 * keeps its sandbox.
 */
export async function endUnsaved(context: ManagerContext, sandbox: LiveSandbox): Promise<void> {
  if (sandbox.state === "gone") return;
  sandbox.moveTo("gone");
  await context.reported("end of a sandbox that could not be paused", abandonCopy(sandbox));
}

class LastSave {
  /** The image on this machine; undefined: there is none. */
  kept: Unpublished | undefined;
  readonly #context: ManagerContext;
  readonly #drain: Drain;
  readonly #sandbox: LiveSandbox;
  #owner: UnpublishedOwner | undefined;
  /** An attempt that the store has not answered. Its image is also kept on this machine. */
  #unanswered: Promise<void> | undefined;
  #failedCaptures = 0;
  #isSetAside = false;

  constructor(context: ManagerContext, drain: Drain, sandbox: LiveSandbox) {
    this.#context = context;
    this.#drain = drain;
    this.#sandbox = sandbox;
  }

  /** Resolves when the sandbox is in the store and its local copy has ended; throws if the drain is over before. */
  async run(track: Track, giveBack: GiveBack): Promise<void> {
    const { over, late, places } = this.#drain;
    // Read it while it is known: a server that was declared dead forgets what it owned.
    this.#owner = ownerOf(this.#context, this.#sandbox);
    for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(2 * pauseMs, LONGEST_PAUSE_MS)) {
      try {
        if (pauseMs === FIRST_PAUSE_MS) await this.#try(track);
        else
          await unlessAborted(
            places.run(() => this.#try(track)),
            late,
          );
        return endCopy(this.#context, this.#sandbox);
      } catch (error) {
        // Other sandboxes may use the slot while this one waits.
        giveBack();
        if (over.aborted || this.#isHopeless) throw error;
        this.#drain.waitsFor(this.#sandbox.id, error);
        track.options.onProgress?.({ phase: "waiting for the store" });
        await this.#context.options.clock.sleep(pauseMs, over).catch(() => {});
        if (over.aborted) throw error;
      }
    }
  }

  get #isHopeless(): boolean {
    if (this.kept !== undefined) return this.#isSetAside;
    return this.#sandbox.state !== "saving" || this.#failedCaptures >= MOST_CAPTURES;
  }

  async #try(track: Track): Promise<void> {
    if (this.kept === undefined) await this.#captureAndStore(track);
    else if (this.#unanswered === undefined) await this.#publishKept(this.kept);
    else await this.#hearAnswer(this.kept, this.#unanswered);
  }

  async #captureAndStore(track: Track): Promise<void> {
    let isCaptured = false;
    try {
      await withLastCapture(this.#context, this.#sandbox, track, async (captured) => {
        isCaptured = true;
        await this.#storeOrKeep(captured, track);
      });
    } catch (error) {
      if (!isCaptured && asSandboxerError(error).code !== "no_space") this.#failedCaptures += 1;
      throw error;
    }
  }

  /** Throws if the store did not accept the image, or did not answer while this server cannot renew its lease. */
  async #storeOrKeep(captured: Captured, track: Track): Promise<void> {
    const stored = this.#stored(captured, track);
    const failure = await this.#failureOf(stored);
    if (failure === undefined) return;
    try {
      this.kept = await this.#keep(captured, track);
    } catch (error) {
      const { observer } = this.#context.options;
      observer.problem("the state of a sandbox could not be saved on this machine", {
        sandboxId: captured.sandbox.id,
        error,
      });
      if (failure === NO_ANSWER) return await unlessAborted(stored, this.#drain.late);
      throw failure;
    }
    if (failure !== NO_ANSWER) throw failure;
    this.#unanswered = stored;
    stored.catch(() => {});
    throw new SandboxerError("store_unavailable", "The store does not answer.");
  }

  /** A pause that the drain called off saved the same state: the sandbox has not run since. */
  async #stored(captured: Captured, track: Track): Promise<void> {
    const { unansweredSave } = this.#sandbox;
    this.#sandbox.unansweredSave = undefined;
    await (unansweredSave ?? storeAndGiveUp(this.#context, captured, "drain", track));
  }

  /** Undefined: the publication is done. */
  async #failureOf(stored: Promise<void>): Promise<unknown> {
    const settled = new AbortController();
    const outcome = stored.then(
      () => undefined,
      (error: unknown) => error,
    );
    const silence = async (): Promise<typeof NO_ANSWER> => {
      await this.#drain.untilSilent(settled.signal);
      return NO_ANSWER;
    };
    return await Promise.race([outcome, silence()]).finally(() => settled.abort());
  }

  async #keep({ sandbox, state, wallMs }: Captured, track: Track): Promise<Unpublished> {
    if (this.#owner === undefined) throw new SandboxerError("lease_lost", "This server no longer owns the sandbox.");
    const options = { ...track.options, wallMs, parent: sandbox.parentCheckpoint, ...keyChoiceOf(sandbox) };
    return await this.#context.durable.unpublished.keep(sandbox.id, this.#owner, state, options);
  }

  async #publishKept(kept: Unpublished): Promise<void> {
    this.#isSetAside = (await publishUnpublished(this.#context, kept)) === "set aside";
    if (this.#isSetAside) throw new SandboxerError("lease_lost", "Another server owns the sandbox now.");
  }

  async #hearAnswer(kept: Unpublished, unanswered: Promise<void>): Promise<void> {
    try {
      await unlessAborted(unanswered, this.#drain.late);
    } catch (error) {
      if (!this.#drain.late.aborted) this.#unanswered = undefined;
      throw error;
    }
    await this.#context.durable.unpublished.remove(kept);
  }
}

function ownerOf({ durable }: ManagerContext, sandbox: LiveSandbox): UnpublishedOwner | undefined {
  const held = durable.ownership.holds(sandbox) ? durable.ownership.held(sandbox.id) : undefined;
  if (held === undefined || held.owner === null) return undefined;
  return { owner: { instance_id: held.owner, epoch: held.epoch }, replaces: held.checkpoint?.name ?? null };
}

function keptHere(error: SandboxerError): SandboxerError {
  return new SandboxerError(error.code, `${error.message} The sandbox's state is saved on the server's machine.`, {
    cause: error,
    hint: "The next server on that machine saves it to the store.",
    details: error.details,
  });
}
