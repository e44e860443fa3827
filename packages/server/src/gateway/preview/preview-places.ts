import { SandboxerError } from "@sandboxer/protocol";

/** One sandbox may have at most this part of all places, so that it does not lock out the others. */
const SHARE = 4;

/** Counts the open requests and connections to ports, so that memory and descriptors stay bounded. */
export class PreviewPlaces {
  readonly #most: number;
  readonly #mostOfSandbox: number;
  readonly #ofSandbox = new Map<string, number>();
  #taken = 0;

  constructor(most: number) {
    this.#most = most;
    this.#mostOfSandbox = Math.ceil(most / SHARE);
  }

  /** Throws `limit_reached`. The returned function gives the place back; calling it again does nothing. */
  take(sandboxId: string): () => void {
    const ofSandbox = this.#ofSandbox.get(sandboxId) ?? 0;
    if (this.#taken >= this.#most) throw full(this.#most, "the server");
    if (ofSandbox >= this.#mostOfSandbox) throw full(this.#mostOfSandbox, "the sandbox");
    this.#taken += 1;
    this.#ofSandbox.set(sandboxId, ofSandbox + 1);
    let isTaken = true;
    return () => {
      if (!isTaken) return;
      isTaken = false;
      this.#taken -= 1;
      const left = (this.#ofSandbox.get(sandboxId) ?? 1) - 1;
      if (left === 0) this.#ofSandbox.delete(sandboxId);
      else this.#ofSandbox.set(sandboxId, left);
    };
  }
}

function full(most: number, whose: string): SandboxerError {
  return new SandboxerError("limit_reached", `There are already ${most} open requests to ports of ${whose}.`, {
    hint: "Wait until some have ended, or raise the server's --max-previews.",
    details: { limit: "max_previews", most, retry_after_seconds: 1 },
  });
}
