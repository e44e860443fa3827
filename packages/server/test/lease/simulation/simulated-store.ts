import type { Head } from "@sandboxer/protocol";
import type { ListedRecord, Reply } from "../../../src/lease/core/messages.ts";
import type { StoreRequest } from "../../../src/lease/core/effects.ts";
import type { LivenessRecord } from "../../../src/lease/liveness-record.ts";
import type { Ledger } from "./ledger.ts";

interface Stored<Body> {
  readonly body: Body;
  readonly version: string;
}

/** A store that keeps its contract: each request takes effect at one moment, and versions never repeat. */
export class SimulatedStore {
  readonly heads = new Map<string, Stored<Head>>();
  readonly records = new Map<string, Stored<LivenessRecord>>();
  readonly #ledger: Ledger;
  #versions = 0;

  constructor(ledger: Ledger) {
    this.#ledger = ledger;
  }

  apply(request: StoreRequest, writer: string): Reply {
    switch (request.kind) {
      case "read-head": {
        const stored = this.heads.get(request.sandboxId);
        if (stored === undefined) return { outcome: "absent" };
        return { outcome: "head", stored: { head: stored.body }, version: stored.version };
      }
      case "read-record": {
        const stored = this.records.get(request.instanceId);
        if (stored === undefined) return { outcome: "absent" };
        return { outcome: "record", record: stored.body, version: stored.version };
      }
      case "list-records":
        return { outcome: "list", records: [...this.records].map(listed) };
      case "swap-head":
        if (this.heads.get(request.sandboxId)?.version !== request.expected) return { outcome: "conflict" };
        return this.putHead(request.sandboxId, request.next, writer);
      case "swap-record": {
        if (this.records.get(request.instanceId)?.version !== request.expected) return { outcome: "conflict" };
        const version = this.#nextVersion();
        this.records.set(request.instanceId, { body: request.next, version });
        return { outcome: "written", version };
      }
    }
  }

  putHead(sandboxId: string, head: Head, writer: string): Reply {
    this.#ledger.onHead(sandboxId, head, writer);
    const version = this.#nextVersion();
    this.heads.set(sandboxId, { body: head, version });
    return { outcome: "written", version };
  }

  #nextVersion(): string {
    return `v${++this.#versions}`;
  }
}

/** A list shows neither versions nor contents. */
function listed([instanceId, { body, version }]: [string, Stored<LivenessRecord>]): ListedRecord {
  return { instanceId, mark: `mark of ${version}`, sizeBytes: JSON.stringify(body).length };
}
