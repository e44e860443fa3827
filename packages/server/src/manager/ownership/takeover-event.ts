import type { Head } from "@sandboxer/protocol";
import type { ObservingContext } from "../room-contexts.ts";
import type { Track } from "../observing/operations/tracked.ts";

/** Tells of a sandbox that came here from a living server which was asked for it, and for how long nobody ran it. */
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

  /** One that nobody ran before has felt no pause of anybody's making. */
  runs(head: Head, track: Track): void {
    if (this.#from === undefined) return;
    const { nowMs, events } = this.#context;
    const paused_ms = this.#pauseSince(head.checkpoint?.created_at);
    // Else this server knows of its own part alone.
    track.paused(paused_ms ?? nowMs - this.#claimedMs);
    const { epoch, owner: to } = head;
    const data = { from: this.#from, to, epoch, paused_ms, restored_ms: Math.round(nowMs - this.#claimedMs) };
    events.append({ type: "sandbox.taken_over", sandboxId: this.#sandboxId, data });
  }

  /**
   * The owner's clock says when it had saved the sandbox, and this server's when it runs again. The save came after it was
   * asked for: when the two clocks say otherwise, they do not agree, and nothing is said.
   */
  #pauseSince(savedAt: string | undefined): number | null {
    const { nowMs, options } = this.#context;
    const pausedMs = options.clock.wallMs() - Date.parse(savedAt ?? "");
    return pausedMs >= 0 && pausedMs <= nowMs - this.#askedMs ? Math.round(pausedMs) : null;
  }
}
