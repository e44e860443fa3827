import { headSchema } from "@sandboxer/protocol";
import { z } from "zod";

/** A server process, by what others can ask whether it still lives. */
const holderSchema = z.looseObject({ url: z.string().nullable(), host: z.string(), pid: z.number().int() });
export type Holder = z.infer<typeof holderSchema>;

/**
 * What is known of a sandbox that lives on without its server, because its provider keeps it. It has no head: nothing of
 * its state is in a store.
 */
export const sandboxRecordSchema = headSchema
  .pick({
    backend: true,
    spec: true,
    flags: true,
    idle_timeout: true,
    token_hash: true,
    about: true,
    lineage: true,
    createdAt: true,
  })
  .extend({
    /** Since when it is stopped; null while a server runs it. */
    stopped_at: z.string().nullable(),
    /** The server that runs it. */
    holder: holderSchema.nullable().default(null),
  });
export type OutlivingRecord = z.infer<typeof sandboxRecordSchema>;

export interface SandboxRecords {
  get(sandboxId: string): Promise<OutlivingRecord | undefined>;
  list(): Promise<ReadonlyMap<string, OutlivingRecord>>;
  put(sandboxId: string, record: OutlivingRecord): Promise<void>;
  /** Puts a record in the place of one that was read, if that is still there as it was. Says whether it did. */
  swap(sandboxId: string, expected: OutlivingRecord, record: OutlivingRecord): Promise<boolean>;
  remove(sandboxId: string): Promise<void>;
}
