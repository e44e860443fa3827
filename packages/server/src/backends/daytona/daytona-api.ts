import type { CreateSandbox, CreateSandboxSnapshot, SandboxLabels } from "@daytona/api-client";
import type { z } from "zod";
import type { HttpJson } from "../../support/http-json.ts";
import { type DaytonaSandbox, sandboxPageSchema, sandboxSchema, snapshotSchema } from "./api-schemas.ts";
import { isMissingEndpoint, vendorStatus } from "./daytona-errors.ts";
import { snapshotEndpointMissing } from "./snapshot-manifest.ts";
import { carries, type Labels } from "./labels.ts";

const PAGE_LIMIT = 100;
/** A longer list is considered broken. */
const MAX_PAGES = 100;

interface Call {
  readonly signal?: AbortSignal | undefined;
}

/** The calls to Daytona's control plane. https://www.daytona.io/docs/en/tools/api/#daytona */
export class DaytonaApi {
  readonly #http: HttpJson;

  constructor(http: HttpJson) {
    this.#http = http;
  }

  create(body: CreateSandbox, call: Call & { readonly timeoutMs?: number } = {}): Promise<DaytonaSandbox> {
    return this.#http.json(sandboxSchema, { method: "POST", path: "/sandbox", json: body, ...call });
  }

  /** By the vendor's id, or by its name. */
  get(idOrName: string, call: Call = {}): Promise<DaytonaSandbox> {
    return this.#http.json(sandboxSchema, { method: "GET", path: pathOf(idOrName), ...call });
  }

  /**
   * The labels go as one parameter with JSON, not as `labels=k=v` for each; the response is a page with a cursor, not
   * an array. https://www.daytona.io/docs/en/tools/api/#daytona/tag/sandbox/GET/sandbox
   */
  async list(labels: Labels, call: Call = {}): Promise<readonly DaytonaSandbox[]> {
    const found: DaytonaSandbox[] = [];
    let cursor: string | undefined;
    for (let page = 0; page < MAX_PAGES; page++) {
      const query = { labels: JSON.stringify(labels), limit: PAGE_LIMIT, cursor };
      const request = { method: "GET", path: "/sandbox", query, ...call } as const;
      const answer: z.output<typeof sandboxPageSchema> = await this.#http.json(sandboxPageSchema, request);
      found.push(...answer.items.filter((sandbox) => carries(sandbox.labels ?? {}, labels)));
      cursor = answer.nextCursor ?? undefined;
      if (cursor === undefined || cursor === "") break;
    }
    return found;
  }

  start(id: string, call: Call = {}): Promise<DaytonaSandbox> {
    return this.#change(id, "start", call);
  }

  /** Keeps the files: https://www.daytona.io/docs/en/sandboxes/#stop-sandbox */
  stop(id: string, call: Call = {}): Promise<DaytonaSandbox> {
    return this.#change(id, "stop", call);
  }

  /** In any state. A missing one is fine. */
  async destroy(idOrName: string, call: Call = {}): Promise<void> {
    try {
      await this.#http.send({ method: "DELETE", path: pathOf(idOrName), query: { force: true }, ...call });
    } catch (thrown) {
      if (vendorStatus(thrown) !== 404) throw thrown;
    }
  }

  /** Documented in the API and the vendor's clients, but not deployed on every installation. */
  async snapshot(id: string, body: CreateSandboxSnapshot, call: Call & { timeoutMs?: number } = {}): Promise<void> {
    try {
      await this.#http.send({ method: "POST", path: `${pathOf(id)}/snapshot`, json: body, ...call });
    } catch (thrown) {
      throw isMissingEndpoint(thrown) ? snapshotEndpointMissing(thrown) : thrown;
    }
  }

  findSnapshot(name: string, call: Call = {}): Promise<z.output<typeof snapshotSchema>> {
    return this.#http.json(snapshotSchema, { method: "GET", path: `/snapshots/${encodeURIComponent(name)}`, ...call });
  }

  /** Replaces all labels. https://www.daytona.io/docs/en/tools/api/#daytona/tag/sandbox */
  async replaceLabels(id: string, labels: Labels, call: Call = {}): Promise<void> {
    const json: SandboxLabels = { labels: { ...labels } };
    try {
      await this.#http.send({ method: "PUT", path: `${pathOf(id)}/labels`, json, idempotent: true, ...call });
    } catch (thrown) {
      // Documented calls are not always deployed, and a sandbox works with its old labels.
      if (!isMissingEndpoint(thrown)) throw thrown;
    }
  }

  /**
   * Read by its name, deleted by its id, as the API demands. A missing one is fine.
   * https://www.daytona.io/docs/en/tools/api/#daytona/tag/snapshots
   */
  async removeSnapshot(name: string, call: Call = {}): Promise<void> {
    try {
      const { id } = await this.findSnapshot(name, call);
      await this.#http.send({ method: "DELETE", path: `/snapshots/${encodeURIComponent(id)}`, ...call });
    } catch (thrown) {
      if (vendorStatus(thrown) !== 404 || isMissingEndpoint(thrown)) throw thrown;
    }
  }

  #change(id: string, verb: "start" | "stop", call: Call): Promise<DaytonaSandbox> {
    const path = `${pathOf(id)}/${verb}`;
    return this.#http.json(sandboxSchema, { method: "POST", path, idempotent: true, ...call });
  }
}

function pathOf(idOrName: string): string {
  return `/sandbox/${encodeURIComponent(idOrName)}`;
}
