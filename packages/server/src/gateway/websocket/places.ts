import { SandboxerError } from "@sandboxer/protocol";
import { remoteNetwork } from "../access/access-gate.ts";
import type { Principal } from "../access/principal.ts";
import { Networks } from "../access/trusted-proxies.ts";

export interface PlaceLimits {
  readonly maxClients: number;
  /** Limit per address for clients without a key; 0: no limit. Default: half of `maxClients`. */
  readonly maxClientsPerAddress?: number | undefined;
  /** 0: no limit. Default: four fifths of `maxClients`. */
  readonly maxClientsPerKey?: number | undefined;
}

/** One WebSocket, from the request that opens it until it is closed or refused. */
export interface Place {
  /** The client is authorized. */
  readonly admit: () => void;
  /** Idempotent. */
  readonly leave: () => void;
}

export interface Newcomer {
  readonly who: Principal;
  readonly address: string | undefined;
  /** The client sent a sandbox token that is not checked yet. It takes no place from clients with a key. */
  readonly onTrial: boolean;
  /** Another server of the store relays the client, and counts it. */
  readonly isRelayed?: boolean | undefined;
}

/** Counts the WebSockets of a server, so that no caller can lock out the others. */
export class Places {
  readonly #limits: Required<{ [Name in keyof PlaceLimits]: number }>;
  readonly #ofCaller = new Map<string, number>();
  #taken = 0;
  #onTrial = 0;

  constructor({ maxClients, maxClientsPerAddress, maxClientsPerKey }: PlaceLimits) {
    this.#limits = {
      maxClients,
      maxClientsPerAddress: maxClientsPerAddress ?? Math.ceil(maxClients / 2),
      maxClientsPerKey: maxClientsPerKey ?? Math.ceil((maxClients * 4) / 5),
    };
  }

  /** How many clients have a place. */
  get taken(): number {
    return this.#taken;
  }

  /** Throws `limit_reached` with the name of the limit. */
  take(newcomer: Newcomer): Place {
    let { onTrial } = newcomer;
    const { maxClients } = this.#limits;
    if (this.#taken + (onTrial ? this.#onTrial : 0) >= maxClients) throw full("max-clients", maxClients, "the server");
    const caller = this.#admitCaller(newcomer);
    const count = (change: 1 | -1): void => void (onTrial ? (this.#onTrial += change) : (this.#taken += change));
    count(1);
    let left = false;
    return {
      admit: () => {
        if (left || !onTrial) return;
        count(-1);
        onTrial = false;
        count(1);
      },
      leave: () => {
        if (left) return;
        left = true;
        count(-1);
        this.#countCaller(caller, -1);
      },
    };
  }

  #admitCaller({ who, address, isRelayed }: Newcomer): string | undefined {
    if (isRelayed === true || (who.kind === "anonymous" && LOOPBACK.has(address))) return undefined;
    const { maxClientsPerKey, maxClientsPerAddress } = this.#limits;
    const byKey = who.kind === "key";
    const caller = byKey ? who.id : remoteNetwork(address);
    const most = byKey ? maxClientsPerKey : maxClientsPerAddress;
    if (most > 0 && (this.#ofCaller.get(caller) ?? 0) >= most) {
      throw byKey
        ? full("max-clients-per-key", most, "one key")
        : full("max-clients-per-address", most, `the address ${caller}`);
    }
    this.#countCaller(caller, 1);
    return caller;
  }

  #countCaller(caller: string | undefined, change: 1 | -1): void {
    if (caller === undefined) return;
    const count = (this.#ofCaller.get(caller) ?? 0) + change;
    if (count === 0) this.#ofCaller.delete(caller);
    else this.#ofCaller.set(caller, count);
  }
}

const LOOPBACK = new Networks(["127.0.0.0/8", "::1"]);

function full(limit: string, most: number, whose: string): SandboxerError {
  return new SandboxerError("limit_reached", `There are already ${most} WebSockets of ${whose}, which is the limit.`, {
    hint: `Close unused WebSockets, or raise the server's --${limit}.`,
    details: { limit: limit.replaceAll("-", "_"), most },
  });
}
