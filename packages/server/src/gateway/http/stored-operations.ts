import { operationRecordSchema, type OperationRecordBody, parseObject, SandboxerError } from "@sandboxer/protocol";
import { z } from "zod";
import type { Operation } from "../../manager/observing/operations/operation.ts";
import type { SharedRecords } from "../access/shared-records.ts";
import { jsonOf } from "../../support/json.ts";
import type { PeerSecret } from "../access/peer-secret.ts";
import { openText, sealText } from "../access/sealed-text.ts";
import type { Caller } from "./handler.ts";

const MAX_RESULT_BYTES = 256 * 1024;

const cellSchema = z.looseObject({
  format: z.literal(1),
  record: operationRecordSchema,
  result: z.string().nullable(),
});

/**
 * The ended operations whose callers got an id instead of a response. While their server lives, it answers; its record
 * in the store is for the time after.
 */
export class StoredOperations {
  readonly #records: SharedRecords;
  readonly #secret: PeerSecret;

  constructor(records: SharedRecords, secret: PeerSecret) {
    this.#records = records;
    this.#secret = secret;
  }

  /** Waits for the end of the operation. */
  async keep(operation: Operation, caller: Caller): Promise<void> {
    await operation.ended;
    const { result, ...record } = operation.recordFor(caller.id);
    const text = JSON.stringify(result);
    const sealed =
      result === null || text.length > MAX_RESULT_BYTES ? null : sealText(this.#keys(record.id, caller), text);
    const body = Buffer.from(`${JSON.stringify({ format: 1, record: { ...record, result: null }, result: sealed })}\n`);
    await this.#records.swap(this.#records.keyOf("operations", operation.id), undefined, body);
  }

  /** Throws `operation_not_found`. */
  async get(id: string, caller: Caller): Promise<OperationRecordBody> {
    const found = await this.#records.find(this.#records.keysOf("operations", id));
    const kept = found === undefined ? undefined : cellSchema.safeParse(jsonOf(found.cell.body)).data;
    if (kept === undefined || kept.record.id !== id) {
      throw new SandboxerError("operation_not_found", `No server of the store has the operation ${id}.`);
    }
    const text = kept.result === null ? undefined : openText(this.#keys(id, caller), kept.result);
    return { ...kept.record, result: text === undefined ? null : (parseObject(text) ?? JSON.parse(text)) };
  }

  /** Only the caller's own key opens the result, which may contain a token. */
  #keys(id: string, { id: callerId, authorization }: Caller): readonly Buffer[] {
    return this.#secret.keysFor("results of operations", id, callerId, authorization);
  }
}
