import { AmbiguousWriteError, type ObjectStore } from "../../src/store/store.ts";

/** `lost_request`: not applied. `lost_reply`: applied. `late`: applied when {@link FaultyStore.deliverLate} is called. */
export type SwapFault = "none" | "lost_request" | "lost_reply" | "late";

/** A store whose swaps go wrong as planned, one fault for each swap in turn. */
export class FaultyStore {
  readonly store: ObjectStore;
  readonly faults: SwapFault[] = [];
  swaps = 0;
  readonly #late: (() => Promise<unknown>)[] = [];

  constructor(inner: ObjectStore) {
    this.store = new Proxy<ObjectStore>(inner, {
      get: (target, property) => {
        if (property === "swapCell") return this.#swapOf(target);
        const value: unknown = Reflect.get(target, property);
        return typeof value === "function" ? (value.bind(target) as unknown) : value;
      },
    });
  }

  async deliverLate(): Promise<void> {
    for (const deliver of this.#late.splice(0)) await deliver();
  }

  #swapOf(target: ObjectStore): ObjectStore["swapCell"] {
    return async (key, expected, body) => {
      this.swaps++;
      const fault = this.faults.shift() ?? "none";
      if (fault === "none") return await target.swapCell(key, expected, body);
      if (fault === "lost_reply") await target.swapCell(key, expected, body);
      if (fault === "late") this.#late.push(async () => await target.swapCell(key, expected, body));
      throw new AmbiguousWriteError(key, new Error(fault));
    };
  }
}
