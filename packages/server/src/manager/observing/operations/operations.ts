import { type OperationKind, type OperationRecordBody } from "@sandboxer/protocol";
import type { Clock } from "../../../support/clock.ts";
import type { EventLog } from "../events/event-log.ts";
import { operationId } from "./operation-id.ts";
import { Operation, type OperationChange, type OperationSubject } from "./operation.ts";

const KEEP_ENDED = 1000;
/** Progress is reported to listeners at most this often. */
const TELL_MS = 200;

/** The operations of this server: the running ones, and the last finished ones. */
export class Operations {
  readonly #clock: Clock;
  readonly #events: EventLog;
  readonly #instanceId: () => string;
  /** Oldest first. */
  readonly #operations = new Map<string, Operation>();
  readonly #toldMs = new WeakMap<Operation, number>();

  /** `instanceId`: the present id of this server. */
  constructor(clock: Clock, events: EventLog, instanceId: () => string) {
    this.#clock = clock;
    this.#events = events;
    this.#instanceId = instanceId;
  }

  /** `callerId`: the only caller who may see the response. */
  open(kind: OperationKind, subject: OperationSubject, callerId?: string): Operation {
    const onChange = (changed: Operation, change: OperationChange): void => this.#tell(changed, change);
    const operation = new Operation(operationId(this.#instanceId()), kind, subject, callerId, this.#clock, onChange);
    this.#operations.set(operation.id, operation);
    this.#forgetOld();
    return operation;
  }

  find(id: string): Operation | undefined {
    return this.#operations.get(id);
  }

  /** Newest first. */
  records(): OperationRecordBody[] {
    return [...this.#operations.values()].toReversed().map((operation) => operation.record());
  }

  #forgetOld(): void {
    if (this.#operations.size <= KEEP_ENDED) return;
    for (const [id, operation] of this.#operations) {
      if (operation.running) continue;
      this.#operations.delete(id);
      return;
    }
  }

  #tell(operation: Operation, change: OperationChange): void {
    if (change === "progress") {
      const nowMs = this.#clock.monotonicMs();
      if (nowMs - (this.#toldMs.get(operation) ?? -TELL_MS) < TELL_MS) return;
      this.#toldMs.set(operation, nowMs);
    }
    const { result: _result, ...record } = operation.record();
    const event = { type: `operation.${change}`, sandboxId: record.sandbox_id, data: record };
    if (change === "progress") this.#events.tell(event);
    else this.#events.append(event);
  }
}
