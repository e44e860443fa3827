import { createHash } from "node:crypto";

/** Millions of names in 8 bytes each: a hash of 52 bits stands for a name. */
export class NameSet {
  #hashes = new Float64Array(1024);
  #size = 0;
  #isSorted = true;

  add(name: string): void {
    if (this.#size === this.#hashes.length) {
      const larger = new Float64Array(this.#hashes.length * 2);
      larger.set(this.#hashes);
      this.#hashes = larger;
    }
    this.#hashes[this.#size++] = hashOf(name);
    this.#isSorted = false;
  }

  has(name: string): boolean {
    if (!this.#isSorted) this.#hashes.subarray(0, this.#size).sort();
    this.#isSorted = true;
    const wanted = hashOf(name);
    let [low, high] = [0, this.#size];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#hashes[middle] ?? 0) < wanted) low = middle + 1;
      else high = middle;
    }
    return low < this.#size && this.#hashes[low] === wanted;
  }
}

function hashOf(name: string): number {
  return Number(createHash("sha1").update(name).digest().readBigUInt64BE() >> 12n);
}
