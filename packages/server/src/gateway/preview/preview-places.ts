import { SandboxerError } from "@sandboxer/protocol";
import { remoteNetwork } from "../access/access-gate.ts";
import type { Principal } from "../access/principal.ts";

/** At most these parts of all places, so that nobody locks out the others. */
const OF_SANDBOX = 1 / 4;
const OF_ADDRESS = 1 / 2;
const OF_KEY = 4 / 5;

interface Visitor {
  readonly who: Principal;
  readonly address: string | undefined;
}

/** Counts the open requests and connections to ports, so that memory and descriptors stay bounded. */
export class PreviewPlaces {
  readonly #most: number;
  /** By sandbox and by visitor. */
  readonly #taken = new Map<string, number>();
  #all = 0;

  constructor(most: number) {
    this.#most = most;
  }

  /** Throws `limit_reached`. The returned function gives the place back; calling it again does nothing. */
  take(sandboxId: string, visitor: Visitor): () => void {
    if (this.#all >= this.#most) throw full(this.#most, "the server");
    const shares = [{ of: sandboxId, whose: "the sandbox", part: OF_SANDBOX }, ...shareOf(visitor)];
    for (const { of, whose, part } of shares) {
      const most = Math.ceil(this.#most * part);
      if ((this.#taken.get(of) ?? 0) >= most) throw full(most, whose);
    }
    const count = (change: 1 | -1): void => {
      this.#all += change;
      for (const { of } of shares) {
        const taken = (this.#taken.get(of) ?? 0) + change;
        if (taken === 0) this.#taken.delete(of);
        else this.#taken.set(of, taken);
      }
    };
    count(1);
    let isTaken = true;
    return () => {
      if (isTaken) count(-1);
      isTaken = false;
    };
  }
}

/** A server without keys has one user. */
function shareOf({ who, address }: Visitor): { of: string; whose: string; part: number }[] {
  if (who.kind === "anonymous") return [];
  if (who.kind === "key") return [{ of: `key ${who.id}`, whose: "sandboxes by one key", part: OF_KEY }];
  const network = remoteNetwork(address);
  return [{ of: `address ${network}`, whose: `sandboxes from the address ${network}`, part: OF_ADDRESS }];
}

function full(most: number, whose: string): SandboxerError {
  return new SandboxerError("limit_reached", `There are already ${most} open requests to ports of ${whose}.`, {
    hint: "Wait until some have ended, or raise the server's --max-previews.",
    details: { limit: "max_previews", most, retry_after_seconds: 1 },
  });
}
