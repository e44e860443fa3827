/** A power of two. A change copies one bucket and the list of them: with 10,000 entries, 40 entries and 256 references. */
const BUCKETS = 256;

type Bucket<Value> = ReadonlyMap<string, Value>;

const NOTHING: readonly Bucket<never>[] = Array.from({ length: BUCKETS }, () => new Map<string, never>());

/** A map that is never changed: a changed one shares nearly everything with it. For states with thousands of entries. */
export class BucketMap<Value> {
  readonly size: number;
  readonly #buckets: readonly Bucket<Value>[];

  private constructor(buckets: readonly Bucket<Value>[], size: number) {
    this.#buckets = buckets;
    this.size = size;
  }

  static empty<Value>(): BucketMap<Value> {
    return new BucketMap<Value>(NOTHING, 0);
  }

  static of<Value>(entries: Iterable<readonly [string, Value]>): BucketMap<Value> {
    const buckets = Array.from({ length: BUCKETS }, () => new Map<string, Value>());
    for (const [key, value] of entries) buckets[bucketOf(key)]?.set(key, value);
    return new BucketMap(
      buckets,
      buckets.reduce((sum, { size }) => sum + size, 0),
    );
  }

  get(key: string): Value | undefined {
    return this.#buckets[bucketOf(key)]?.get(key);
  }

  /** Undefined removes the entry. */
  with(key: string, value: Value | undefined): BucketMap<Value> {
    const at = bucketOf(key);
    const before = this.#buckets[at] ?? new Map<string, Value>();
    if (before.get(key) === value) return this;
    const bucket = new Map(before);
    if (value === undefined) bucket.delete(key);
    else bucket.set(key, value);
    return new BucketMap(this.#buckets.with(at, bucket), this.size + bucket.size - before.size);
  }

  *values(): Generator<Value, void, undefined> {
    for (const bucket of this.#buckets) yield* bucket.values();
  }

  *keys(): Generator<string, void, undefined> {
    for (const bucket of this.#buckets) yield* bucket.keys();
  }
}

function bucketOf(key: string): number {
  let hash = 0;
  for (let at = 0; at < key.length; at++) hash = (hash * 31 + key.charCodeAt(at)) | 0;
  return (hash ^ (hash >>> 16)) & (BUCKETS - 1);
}
