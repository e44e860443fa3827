import { randomUUID } from "node:crypto";
import type {
  CreateSandbox,
  CreateSandboxSnapshot,
  ListSandboxesResponse,
  Sandbox,
  SandboxLabels,
  SandboxListItem,
  SnapshotDto,
} from "@daytona/api-client";
import type { SandboxBackend, SnapshotPayload } from "../../../../src/backends/backend.ts";
import { type Answer, jsonOf, Refusal, type SeenRequest } from "./exchange.ts";
import { VendorSandboxRecord } from "./vendor-sandbox.ts";

type Handler = (request: SeenRequest, id: string) => Promise<Answer> | Answer;

export const ORGANIZATION = "5b6a0000-0000-4000-8000-00000000c0de";

/** A snapshot's dates are sent as texts, whatever the generated types say. */
type SnapshotOnTheWire = Omit<SnapshotDto, "createdAt" | "updatedAt" | "lastUsedAt"> & {
  createdAt: string;
  updatedAt: string;
  lastUsedAt: string | null;
};

interface StoredSnapshot {
  readonly payload: SnapshotPayload;
  readonly described: SnapshotOnTheWire;
}

/** The control plane of the test server: the paths and shapes of the vendor's API, under `/api`. */
export class ControlPlane {
  readonly sandboxes: VendorSandboxRecord[] = [];
  readonly snapshots = new Map<string, StoredSnapshot>();
  /** As on app.daytona.io today, when false. */
  snapshotsDeployed = true;
  maxPageSize = 100;
  toolboxUrl = "";
  readonly #backend: SandboxBackend;
  readonly #routes: readonly (readonly [method: string, path: RegExp, handler: Handler])[];

  constructor(backend: SandboxBackend) {
    this.#backend = backend;
    this.#routes = [
      ["POST", /^\/sandbox$/, (request) => this.#create(request)],
      ["GET", /^\/sandbox$/, (request) => this.#list(request)],
      ["GET", /^\/sandbox\/([^/]+)$/, (_, id) => ok(this.find(id).record)],
      ["DELETE", /^\/sandbox\/([^/]+)$/, (_, id) => this.#delete(id)],
      ["POST", /^\/sandbox\/([^/]+)\/start$/, (_, id) => this.#start(id)],
      ["POST", /^\/sandbox\/([^/]+)\/stop$/, (_, id) => this.#stop(id)],
      ["PUT", /^\/sandbox\/([^/]+)\/labels$/, (request, id) => this.#replaceLabels(request, id)],
      ["POST", /^\/sandbox\/([^/]+)\/snapshot$/, (request, id) => this.#snapshot(request, id)],
      ["GET", /^\/snapshots\/([^/]+)$/, (_, id) => ok(this.#findSnapshot(id, "name").described)],
      ["DELETE", /^\/snapshots\/([^/]+)$/, (_, id) => this.#removeSnapshot(id)],
    ];
  }

  handle(request: SeenRequest): Promise<Answer> | Answer {
    const path = request.path.replace(/^\/api/, "");
    for (const [method, pattern, handler] of this.#routes) {
      const match = method === request.method ? pattern.exec(path) : null;
      if (match !== null) return handler(request, decodeURIComponent(match[1] ?? ""));
    }
    throw new Refusal(404, `Cannot ${request.method} ${request.path}`);
  }

  find(idOrName: string): VendorSandboxRecord {
    const found = this.sandboxes.find(({ id, record }) => id === idOrName || record.name === idOrName);
    if (found === undefined || found.record.state === "destroyed") {
      throw new Refusal(404, `Sandbox with ID or name ${idOrName} not found`);
    }
    return found;
  }

  async close(): Promise<void> {
    for (const sandbox of this.sandboxes) {
      await sandbox.destroy();
      await sandbox.removeFolders();
    }
  }

  #create(request: SeenRequest): Answer {
    const body = jsonOf(request) as CreateSandbox;
    if (Array.isArray(body.env)) throw new Refusal(400, "env must be an object");
    const saved = body.snapshot === undefined ? undefined : this.snapshots.get(body.snapshot);
    if (body.snapshot !== undefined && saved === undefined) {
      throw new Refusal(400, `Snapshot ${body.snapshot} not found. Did you add it through the Daytona Dashboard?`);
    }
    if (saved !== undefined && (body.cpu ?? body.memory ?? body.disk) !== undefined) {
      throw new Refusal(400, "Cannot specify Sandbox resources when using a snapshot");
    }
    const facts = { organizationId: ORGANIZATION, toolboxProxyUrl: this.toolboxUrl };
    const sandbox = new VendorSandboxRecord(this.#backend, body, facts);
    this.sandboxes.push(sandbox);
    void sandbox.start(saved?.payload);
    return ok(sandbox.record);
  }

  #list({ query }: SeenRequest): Answer {
    const labels = JSON.parse(query.get("labels") ?? "{}") as Record<string, string>;
    const matching = this.sandboxes.filter(
      ({ record }) =>
        record.state !== "destroyed" && Object.entries(labels).every(([name, value]) => record.labels[name] === value),
    );
    const from = Number(query.get("cursor") ?? 0);
    const limit = Math.min(Number(query.get("limit") ?? 100), this.maxPageSize);
    const nextCursor = from + limit < matching.length ? String(from + limit) : null;
    const page: ListSandboxesResponse = {
      items: matching.slice(from, from + limit).map(({ record }) => listed(record)),
      nextCursor,
    };
    return ok(page);
  }

  async #delete(id: string): Promise<Answer> {
    const sandbox = this.find(id);
    await sandbox.destroy();
    return ok(sandbox.record);
  }

  #start(id: string): Answer {
    const sandbox = this.find(id);
    if (sandbox.record.state === "started") return ok(sandbox.record);
    if (sandbox.record.state !== "stopped") throw new Refusal(409, "Sandbox state change in progress");
    sandbox.setState("starting");
    void sandbox.start();
    return ok(sandbox.record);
  }

  #stop(id: string): Answer {
    const sandbox = this.find(id);
    if (sandbox.record.state !== "started") throw new Refusal(400, "Sandbox is not started");
    sandbox.setState("stopping");
    void sandbox.stop();
    return ok(sandbox.record);
  }

  #replaceLabels(request: SeenRequest, id: string): Answer {
    const { labels } = jsonOf(request) as SandboxLabels;
    this.find(id).record.labels = { ...labels };
    return ok({ labels });
  }

  async #snapshot(request: SeenRequest, id: string): Promise<Answer> {
    if (!this.snapshotsDeployed) throw new Refusal(404, `Cannot POST ${request.path}`);
    const { name } = jsonOf(request) as CreateSandboxSnapshot;
    const sandbox = this.find(id);
    if (this.snapshots.has(name)) throw new Refusal(409, `Snapshot with name "${name}" already exists`);
    const payload = await sandbox.save();
    this.snapshots.set(name, { payload, described: snapshotNamed(name, sandbox.record) });
    return ok(sandbox.record);
  }

  /** By its id; for reading also by its name. */
  #findSnapshot(given: string, also?: "name"): StoredSnapshot {
    const found = [...this.snapshots.values()].find(
      ({ described }) => described.id === given || (also !== undefined && described[also] === given),
    );
    if (found === undefined) throw new Refusal(404, `Snapshot with ID ${given} not found`);
    return found;
  }

  #removeSnapshot(id: string): Answer {
    this.snapshots.delete(this.#findSnapshot(id).described.name);
    return { status: 200 };
  }
}

function ok(json: unknown): Answer {
  return { status: 200, json };
}

/** Lists have fewer fields than single reads. */
function listed({ env: _env, sandboxClass: _class, ...record }: Sandbox): SandboxListItem {
  return { ...record, sandboxClass: "container" };
}

function snapshotNamed(name: string, { cpu, memory, disk, id }: Sandbox): SnapshotOnTheWire {
  const now = new Date().toISOString();
  return {
    id: randomUUID(),
    organizationId: ORGANIZATION,
    general: false,
    name,
    state: "active",
    size: 0.1,
    entrypoint: null,
    cpu,
    gpu: 0,
    mem: memory,
    disk,
    errorReason: null,
    createdAt: now,
    updatedAt: now,
    lastUsedAt: null,
    sourceSandboxId: id,
  };
}
