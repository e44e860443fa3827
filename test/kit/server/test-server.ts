import { mkdtemp, rm } from "node:fs/promises";
import type { Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type MaxLoss, type NetworkPolicy, SandboxerError, type ServerLabels } from "@sandboxer/protocol";
import { type Logger, pino } from "pino";
import { onTestFinished } from "vitest";
import { machinesOf } from "../../../packages/server/src/manager/ownership/machine-fit.ts";
import type { Health, SandboxBackend } from "../../../packages/server/src/backends/backend.ts";
import { FakeBackend } from "../../../packages/server/src/backends/fake/index.ts";
import { CheckpointRepository } from "../../../packages/server/src/checkpoints/checkpoint-repository.ts";
import { type MasterKeys, NO_MASTER_KEYS } from "../../../packages/server/src/checkpoints/keys/master-keys.ts";
import { StoredDataKeys } from "../../../packages/server/src/checkpoints/keys/stored-data-keys.ts";
import { ImageStore } from "../../../packages/server/src/checkpoints/image-store.ts";
import { ScrubRecords } from "../../../packages/server/src/checkpoints/scrub/scrub-records.ts";
import { SnapshotFile, SnapshotMirror } from "../../../packages/server/src/checkpoints/snapshot-file.ts";
import { SnapshotRepository } from "../../../packages/server/src/checkpoints/snapshot-repository.ts";
import { UnpublishedCheckpoints } from "../../../packages/server/src/checkpoints/unpublished/unpublished-checkpoints.ts";
import { Outside, type OutsideOptions } from "../../../packages/server/src/egress/outside.ts";
import { openAccess, type AccessOptions, type Fleet } from "../../../packages/server/src/gateway/access/open-access.ts";
import { PeerSecret } from "../../../packages/server/src/gateway/access/peer-secret.ts";
import { E2bGateway } from "../../../packages/server/src/gateway/e2b/e2b-gateway.ts";
import { e2bPreviewRules } from "../../../packages/server/src/gateway/e2b/preview-rules.ts";
import { E2bServices } from "../../../packages/server/src/gateway/e2b/e2b-services.ts";
import { type E2bTokenKind, E2bTokens } from "../../../packages/server/src/gateway/e2b/tokens.ts";
import { mutationAudit } from "../../../packages/server/src/gateway/http/audit.ts";
import { authorizer } from "../../../packages/server/src/gateway/http/authorize.ts";
import { createService } from "../../../packages/server/src/gateway/http/handlers/index.ts";
import { createHttpServer } from "../../../packages/server/src/gateway/http-server.ts";
import type { McpEndpointOptions } from "../../../packages/server/src/gateway/mcp/mcp-endpoint.ts";
import { Metrics } from "../../../packages/server/src/gateway/metrics.ts";
import { PreviewAddresses } from "../../../packages/server/src/gateway/preview/preview-address.ts";
import { Previews } from "../../../packages/server/src/gateway/preview/previews.ts";
import { SignedLinks } from "../../../packages/server/src/gateway/preview/signed-links.ts";
import { secureServer, type SecureServerOptions } from "../../../packages/server/src/gateway/tls/secure-server.ts";
import { WebSocketGateway } from "../../../packages/server/src/gateway/websocket/upgrade.ts";
import type { ImageLibrary } from "../../../packages/server/src/images/image-library.ts";
import { Instances } from "../../../packages/server/src/lease/instances.ts";
import type { PeerTls } from "../../../packages/server/src/manager/ownership/peers.ts";
import { KeyClaims } from "../../../packages/server/src/lease/key-claims.ts";
import { Ownership } from "../../../packages/server/src/lease/ownership.ts";
import type { DurableStore } from "../../../packages/server/src/manager/durable-store.ts";
import type { ScrubSettings } from "../../../packages/server/src/manager/observing/integrity/integrity-context.ts";
import { live, type LiveSandbox } from "../../../packages/server/src/manager/live-sandbox.ts";
import type { OperationRecord } from "../../../packages/server/src/manager/observing/observer.ts";
import type { UnsavedSandbox } from "../../../packages/server/src/manager/lifecycle/drain/drain.ts";
import type { ResourceLimits } from "../../../packages/server/src/manager/resource-limits.ts";
import { SandboxManager } from "../../../packages/server/src/manager/sandbox-manager.ts";
import { sealedStore } from "../../../packages/server/src/main/encryption.ts";
import { mcpAnswerer } from "../../../packages/server/src/main/mcp.ts";
import { httpPeers, ringOver } from "../../../packages/server/src/main/peers.ts";
import { ProfileCatalog } from "../../../packages/server/src/profiles/profile-catalog.ts";
import type { SecretResolver } from "../../../packages/server/src/secrets/secret.ts";
import { SecretSources } from "../../../packages/server/src/secrets/secret-sources.ts";
import { DirectoryStore } from "../../../packages/server/src/store/directory/directory-store.ts";
import { openStore } from "../../../packages/server/src/store/open-store.ts";
import { openPeerSecret } from "../../../packages/server/src/store/peer-secret.ts";
import { SharedRecords } from "../../../packages/server/src/store/shared-records.ts";
import type { ObjectStore } from "../../../packages/server/src/store/store.ts";
import { systemClock } from "../../../packages/server/src/support/clock.ts";
import { RawClient, type RawClientOptions } from "./raw-client.ts";
import { REMOVAL } from "../temporary-folder.ts";

export interface TestServerOptions {
  /** A folder that servers share; absent: one of its own; null: none is configured. */
  readonly store?: string | null;
  readonly backend?: FakeBackend;
  /** Wraps the backend, to intercept calls of the manager. */
  readonly wrapBackend?: (backend: FakeBackend) => SandboxBackend;
  readonly wrapStore?: (store: ObjectStore) => ObjectStore;
  readonly apiKeys?: readonly string[];
  /** Other rules of access than none. */
  readonly access?: Partial<AccessOptions>;
  readonly maxClients?: number;
  readonly maxClientsPerAddress?: number;
  readonly maxClientsPerKey?: number;
  readonly maxSandboxes?: number;
  /** The server's labels, for the affinity of sandboxes. */
  readonly labels?: ServerLabels;
  readonly resourceLimits?: ResourceLimits;
  readonly maxCollectedBytes?: number;
  readonly firstMessageMs?: number;
  readonly bodyTimeoutMs?: number;
  /** Serves HTTPS; its clients must know the certificate. */
  readonly tls?: SecureServerOptions;
  readonly peerTls?: () => PeerTls | undefined;
  readonly previewDomain?: string;
  readonly maxPreviews?: number;
  readonly maxWakes?: number;
  readonly wakeTimeoutMs?: number;
  readonly pageAfterMs?: number;
  /** The probe of `/readyz`. */
  readonly probe?: () => Promise<Health>;
  readonly retention?: DurableStore["retention"];
  readonly defaultMaxLoss?: MaxLoss;
  readonly proveSnapshots?: boolean;
  readonly defaultNetwork?: NetworkPolicy;
  /** The destinations that sandboxes may reach. */
  readonly outside?: OutsideOptions;
  readonly scrub?: ScrubSettings;
  readonly leaseTtlMs?: number;
  readonly handoffTimeoutMs?: number;
  readonly drainTimeoutMs?: number;
  /** The address that other servers use for it; absent: its own. */
  readonly advertiseUrl?: string;
  /** Whether servers ring one another over HTTP (default), besides in the store. */
  readonly ring?: boolean;
  readonly profiles?: ProfileCatalog;
  /** Container images; absent: it has none. */
  readonly images?: ImageLibrary;
  readonly moreBackends?: readonly SandboxBackend[];
  /** Where records of this machine are kept; absent: a folder of its own. */
  readonly dataFolder?: string;
  readonly secrets?: SecretResolver;
  /** The keys that encrypt saved states; absent: at most those of clients. */
  readonly masterKeys?: MasterKeys;
  /** Whether records without a good seal are refused. */
  readonly requireSealed?: boolean;
  /** Absent: no console. */
  readonly consoleFolder?: string;
  readonly docsFolder?: string;
  /** The implementation at /mcp, instead of our tools. */
  readonly answerMcp?: McpEndpointOptions["answerMcp"];
  /** The gateway's log; absent: it is dropped. */
  readonly log?: Logger;
}

/** A server of the real parts, in this process, over the fake backend. */
export interface TestServer {
  readonly url: string;
  readonly httpUrl: string;
  readonly backend: FakeBackend;
  readonly manager: SandboxManager;
  /** The token of a sandbox for E2B's clients. */
  readonly e2bToken: (sandboxId: string, kind?: E2bTokenKind) => string;
  readonly durable: DurableStore;
  readonly instances: Instances;
  readonly storeFolder: string | undefined;
  /** The record of snapshots on this machine. */
  readonly snapshotFile: SnapshotFile;
  /** The server's ends of its TCP connections. */
  readonly sockets: ReadonlySet<Socket>;
  readonly operations: readonly OperationRecord[];
  readonly problems: readonly string[];
  connect(path: string, options?: RawClientOptions): RawClient;
  /** A client with a running sandbox; the messages until then are taken. */
  create(configuration?: object, options?: RawClientOptions): Promise<CreatedClient>;
  attach(sandboxId: string, query?: string, options?: RawClientOptions): RawClient;
  /** Attaches as soon as the server has noticed that the previous client has left. */
  attachWhenFree(sandboxId: string): Promise<RawClient>;
  /** The manager's record of a sandbox that runs here. */
  live(sandboxId: string): Promise<LiveSandbox>;
  /** Returns the sandboxes that the store has not accepted. */
  drain(): Promise<readonly UnsavedSandbox[]>;
}

export interface CreatedClient {
  readonly client: RawClient;
  readonly id: string;
  readonly token: string;
}

export async function startTestServer(options: TestServerOptions = {}): Promise<TestServer> {
  const folder = await mkdtemp(join(tmpdir(), "sandboxer-test-"));
  const storeFolder = options.store === undefined ? join(folder, "store") : (options.store ?? undefined);
  const snapshotFile = new SnapshotFile(join(folder, "snapshots.json"));
  const log = options.log ?? pino({ level: "silent" });
  const backend = options.backend ?? new FakeBackend();
  const { maxClients = 5000 } = options;
  const operations: OperationRecord[] = [];
  const problems: string[] = [];
  const sockets = new Set<Socket>();

  let fleet: Fleet | undefined;
  const { gate, audit } = openAccess({
    apiKeys: options.apiKeys ?? [],
    keyFile: undefined,
    loopbackOnly: true,
    rateLimit: 0,
    fleet: () => fleet,
    clock: systemClock,
    log,
    ...options.access,
  });
  const addresses = new PreviewAddresses({
    domain: options.previewDomain,
    ownPort: () => port,
    isSecure: options.tls !== undefined,
  });
  const links = new SignedLinks(() => durability.peerSecret);
  const e2bServices = new E2bServices({
    gate,
    audit,
    addresses,
    manager: () => manager,
    peerSecret: () => durability.peerSecret,
    shared: () => service,
    log,
  });
  const previews = new Previews({
    gate,
    addresses,
    links,
    rules: e2bPreviewRules(e2bServices),
    keyHeader: options.access?.keyHeader,
    maxPreviews: options.maxPreviews ?? 1000,
    wakeTimeoutMs: options.wakeTimeoutMs ?? 20_000,
    ...(options.pageAfterMs === undefined ? {} : { pageAfterMs: options.pageAfterMs }),
    manager: () => manager,
    peerSecret: () => durability.peerSecret,
  });
  const app = createHttpServer({
    previews,
    e2b: new E2bGateway(e2bServices, previews),
    metrics: () => metrics.registry,
    phase: () => (manager.draining ? "draining" : undefined),
    probe: options.probe ?? (async () => ({ ok: true, summary: "fine" })),
    readyDetails: () => ({ store: storeFolder ?? null }),
    peerSecret: () => durability.peerSecret,
    bodyTimeoutMs: options.bodyTimeoutMs ?? 30_000,
    ...(options.tls === undefined ? {} : { secureServer: secureServer.bind(undefined, options.tls) }),
    condition: (image) => manager.condition(image),
    onRing: (sandboxId) => durability.instances.rung(sandboxId),
    onOffer: (left) => manager.accept(left),
    onFailure: (error, { method, route }) =>
      problems.push(`${method} ${route}: ${error instanceof Error ? error.message : String(error)}`),
    version: "test",
    service: () => service,
    gate,
    audit,
    authorize: authorizer(gate, audit),
    onMutation: mutationAudit(audit),
    answerMcp: options.answerMcp ?? mcpAnswerer(log),
    consoleFolder: options.consoleFolder,
    docsFolder: options.docsFolder ?? "/nonexistent",
  });
  const gateway = new WebSocketGateway(app.server, {
    gate,
    audit,
    previews,
    maxClients,
    maxClientsPerAddress: options.maxClientsPerAddress,
    maxClientsPerKey: options.maxClientsPerKey,
    maxMessageBytes: 1024 * 1024,
    ...(options.firstMessageMs === undefined ? {} : { firstMessageMs: options.firstMessageMs }),
    manager: () => manager,
    peerSecret: () => durability.peerSecret,
    log,
  });
  const metrics: Metrics = new Metrics({
    states: () => manager.states(),
    dozing: () => manager.dozingCount(),
    clients: () => gateway.clients,
    collected: () => manager.processes.collected,
    warm: () => manager.warmPool(),
    atRisk: () => manager.atRisk(),
    integrity: () => manager.integrity.figures,
  });
  app.server.on("connection", (socket) => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
  });
  await app.listen({ host: "127.0.0.1", port: 0 });
  const address = app.server.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  const scheme = options.tls === undefined ? "http" : "https";
  const httpUrl = `${scheme}://127.0.0.1:${port}`;

  const backends: ReadonlyMap<string, SandboxBackend> = new Map([
    ["fake", options.wrapBackend?.(backend) ?? backend],
    ...(options.moreBackends ?? []).map((more) => [more.name, more] as const),
  ]);
  const durability = await openDurability(
    storeFolder ?? join(options.dataFolder ?? folder, "registry"),
    options.dataFolder ?? folder,
    snapshotFile,
    options,
    options.advertiseUrl ?? httpUrl,
    (error) => void manager.loseOwnership(error),
    backends,
  );
  const { instances, peerSecret } = durability;
  const records = options.store === null ? undefined : new SharedRecords(instances.store, systemClock);
  fleet = { peerSecret, records, servers: () => 1 + instances.liveOthers.length };
  const manager: SandboxManager = new SandboxManager({
    backends,
    defaultBackend: "fake",
    profiles: options.profiles ?? new ProfileCatalog([]),
    installation: "test",
    resumeTtlMs: 86_400_000,
    images: options.images,
    secrets: options.secrets ?? new SecretSources({ definitions: {}, environment: {}, warn: () => {} }),
    durable: durability.durable,
    url: httpUrl,
    labels: options.labels,
    peers: httpPeers(durability.peerSecret, options.peerTls),
    ...(options.peerTls === undefined ? {} : { peerTls: options.peerTls }),
    clock: systemClock,
    observer: {
      operation: (record) => {
        operations.push(record);
        metrics.operation(record);
      },
      state: () => {},
      output: (bytes) => metrics.output(bytes),
      problem: (message, { error }) => problems.push(error instanceof Error ? `${message}: ${error.message}` : message),
    },
    workDirectory: folder,
    maxSandboxes: options.maxSandboxes ?? 5000,
    maxWakes: options.maxWakes,
    ...(options.resourceLimits === undefined ? {} : { resourceLimits: options.resourceLimits }),
    ...(options.maxCollectedBytes === undefined ? {} : { maxCollectedBytes: options.maxCollectedBytes }),
    defaultIdleTimeoutMs: 300_000,
    defaultMaxLoss: options.defaultMaxLoss,
    proveSnapshots: options.proveSnapshots ?? false,
    defaultNetwork: options.defaultNetwork ?? "none",
    outside: new Outside(options.outside),
    scrub: options.scrub,
    handoffTimeoutMs: options.handoffTimeoutMs ?? 60_000,
    ...(options.drainTimeoutMs === undefined ? {} : { drainTimeoutMs: options.drainTimeoutMs }),
  });

  manager.publishLeftBehind();
  const onFailure = (error: unknown): void => void problems.push(String(error));
  const shared = records === undefined ? undefined : { records, secret: peerSecret, onFailure };
  const service = createService(manager, { version: "test", store: storeFolder, maxClients, addresses, links, shared });

  let draining: Promise<readonly UnsavedSandbox[]> | undefined;
  const drain = (): Promise<readonly UnsavedSandbox[]> => (draining ??= end());
  const end = async (): Promise<readonly UnsavedSandbox[]> => {
    const unsaved = await manager.drain();
    await gateway.close(500);
    await backend.close();
    await durability.instances.close();
    await app.close();
    return unsaved;
  };
  onTestFinished(async () => {
    backend.faults.clear();
    await drain();
    await rm(folder, REMOVAL);
  });

  const url = httpUrl.replace(/^http/, "ws");
  const connect = (path: string, clientOptions?: RawClientOptions): RawClient =>
    new RawClient(url + path, clientOptions);
  const attach: TestServer["attach"] = (sandboxId, query = "", clientOptions) =>
    connect(`/attach/${sandboxId}${query}`, clientOptions);
  return {
    url,
    httpUrl,
    backend,
    manager,
    e2bToken: (sandboxId, kind = "envd") => new E2bTokens(() => durability.peerSecret).of(kind, sandboxId),
    durable: durability.durable,
    instances: durability.instances,
    storeFolder,
    snapshotFile,
    sockets,
    operations,
    problems,
    connect,
    create: async (configuration = {}, clientOptions) => {
      const client = connect("/create", clientOptions).send(configuration);
      await client.until("RUNNING");
      const { sandbox_id: id, sandbox_token: token } = await client.event("sandbox_id");
      return { client, id, token };
    },
    attach,
    attachWhenFree: async (sandboxId) => {
      for (;;) {
        const client = attach(sandboxId);
        if ((await client.outcome()).includes("RUNNING")) return client;
      }
    },
    live: async (sandboxId) => live(await manager.running(sandboxId)),
    drain,
  };
}

async function openDurability(
  folder: string,
  dataFolder: string,
  snapshotFile: SnapshotFile,
  options: TestServerOptions,
  url: string,
  onFenced: (error: SandboxerError) => void,
  backends: ReadonlyMap<string, SandboxBackend>,
): Promise<{ durable: DurableStore; instances: Instances; peerSecret: PeerSecret }> {
  const saves = options.store !== null;
  const opened = await openStore(folder);
  const { masterKeys = NO_MASTER_KEYS, requireSealed = false } = options;
  const { store: sealed, keys: ownKeys } = await sealedStore(opened, { requireSealed }, masterKeys, () => {});
  const store = options.wrapStore?.(sealed) ?? sealed;
  const peerSecret = new PeerSecret(await openPeerSecret(opened), ownKeys);
  const instances = await Instances.register({
    store,
    clock: systemClock,
    ttlMs: options.leaseTtlMs ?? 15_000,
    url,
    ...(options.ring === false ? {} : { ring: ringOver(peerSecret, pino({ level: "silent" }), options.peerTls) }),
    onFenced: (reason) => onFenced(new SandboxerError("lease_lost", reason)),
    onError: () => {},
    advert: { labels: options.labels, machines: machinesOf(backends) },
  });
  const ownership = new Ownership(instances);
  const keys = new StoredDataKeys(store, options.masterKeys);
  const images = new ImageStore(store, {
    publisher: () => instances.instanceId,
    dataKeys: keys,
    packsHaveOwners: async () => await instances.allKnow("owned-packs"),
    bindsOrigin: async () => await instances.allKnow("image-origin"),
  });
  const checkpoints = new CheckpointRepository(store, images);
  const mirror = new SnapshotMirror(snapshotFile, () => {});
  const publisher = (): string => instances.instanceId;
  const snapshots = new SnapshotRepository(store, { publisher, images, onChange: mirror.put, keepsBytes: saves });
  await mirror.rebuild(snapshots);
  return {
    instances,
    peerSecret,
    durable: {
      saves,
      ownership,
      claims: new KeyClaims(store),
      checkpoints,
      snapshots,
      unpublished: new UnpublishedCheckpoints(join(dataFolder, "unpublished"), {
        store: store.address,
        masters: options.masterKeys ?? NO_MASTER_KEYS,
        openFolder: (path) => DirectoryStore.open(path),
      }),
      ...(saves ? { keys, integrity: { images, records: new ScrubRecords(store) } } : {}),
      retention: options.retention ?? { checkpoints: { keep_last: 3 } },
    },
  };
}
