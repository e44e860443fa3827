const MAX_ADDRESSES = 4096;
const MAX_NAMES = 8;

/** The addresses that a sandbox got for names: they show which name a connection is for. */
export class GivenAddresses {
  /** The least recently given first. */
  readonly #names = new Map<string, readonly string[]>();

  note(name: string, addresses: readonly string[]): void {
    for (const address of addresses) {
      const others = this.namesOf(address).filter((other) => other !== name);
      this.#names.delete(address);
      this.#names.set(address, [name, ...others].slice(0, MAX_NAMES));
    }
    for (const address of this.#names.keys()) {
      if (this.#names.size <= MAX_ADDRESSES) return;
      this.#names.delete(address);
    }
  }

  /** The most recently asked first; several if they share the address. */
  namesOf(address: string): readonly string[] {
    return this.#names.get(address) ?? [];
  }
}
