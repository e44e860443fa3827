/** Small records that all servers of a store share for a few hours; `store/shared-records.ts` keeps them. */
export interface SharedRecords {
  /** The key of a new record; `atMs`: a time that every server knows, if the record is not to be looked for. */
  keyOf(kind: RecordKind, name: string, atMs?: number): string;
  /**
   * Where a record may be that was written within the last two hours, oldest first: one key, or two around midnight. Of
   * two servers that ask at the same time, each has a key that the other has too.
   */
  keysOf(kind: RecordKind, name: string): readonly string[];
  /** The first of these that exists. */
  find(keys: readonly string[]): Promise<{ readonly key: string; readonly cell: SharedRecord } | undefined>;
  read(key: string): Promise<SharedRecord | undefined>;
  /** Whether this body is now in the record; it was not if the record had another version. */
  swap(key: string, expected: string | undefined, body: Uint8Array): Promise<boolean>;
}

type RecordKind = "calls" | "operations" | "logouts";

interface SharedRecord {
  readonly body: Uint8Array;
  readonly version: string;
}
