import type { Head } from "@sandboxer/protocol";
import type { ObservingContext } from "../room-contexts.ts";
import type { Track } from "../observing/operations/tracked.ts";

/** Reports a sandbox that came here from a live server, and for how long it did not run. */
export class TakeoverEvent {
  readonly #context: ObservingContext;
  readonly #sandboxId: string;
  #from: string | undefined;
  #askedMs = 0;
  #claimedMs = 0;

  constructor(context: ObservingContext, sandboxId: string) {
    this.#context = context;
    this.#sandboxId = sandboxId;
  }

  asked(owner: string): void {
    this.#from ??= owner;
    this.#askedMs = this.#context.nowMs;
  }

  claimed(): void {
    this.#claimedMs = this.#context.nowMs;
  }

  /** A sandbox that was not running before had no pause. */
  runs(head: Head, track: Track): void {
    if (this.#from === undefined) return;
    const { nowMs, events } = this.#context;
    const paused_ms = this.#pauseSince(head.checkpoint?.created_at);
    // Otherwise this server knows only its own part.
    track.paused(paused_ms ?? nowMs - this.#claimedMs);
    const { epoch, owner: to } = head;
    const data = { from: this.#from, to, epoch, paused_ms, restored_ms: Math.round(nowMs - this.#claimedMs) };
    events.append({ type: "sandbox.taken_over", sandboxId: this.#sandboxId, data });
  }

  /**
   * The owner's clock says when it saved the sandbox, and this server's clock when it runs again. The save came after
   * the request: if the clocks contradict that, they disagree, and nothing is reported.
   */
  #pauseSince(savedAt: string | undefined): number | null {
    const { nowMs, options } = this.#context;
    const pausedMs = options.clock.wallMs() - Date.parse(savedAt ?? "");
    return pausedMs >= 0 && pausedMs <= nowMs - this.#askedMs ? Math.round(pausedMs) : null;
  }
}
