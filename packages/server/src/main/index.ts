import { setTimeout as delay } from "node:timers/promises";
import { SandboxerError } from "@sandboxer/protocol";
import { mutationAudit } from "../gateway/http/audit.ts";
import { authorizer } from "../gateway/http/authorize.ts";
import type { Service } from "../gateway/http/handler.ts";
import { createService } from "../gateway/http/handlers/index.ts";
import type { SandboxBackend } from "../backends/backend.ts";
import { type FateOf, InstanceFolder, type OpenedBackend } from "../backends/instance-folder.ts";
import type { BackgroundCollection } from "../collection/background-collection.ts";
import { CollectorSeat } from "../collection/collector-seat.ts";
import { E2bGateway } from "../gateway/e2b/e2b-gateway.ts";
import { e2bPreviewRules } from "../gateway/e2b/preview-rules.ts";
import { E2bServices } from "../gateway/e2b/e2b-services.ts";
import { createHttpServer } from "../gateway/http-server.ts";
import { Metrics } from "../gateway/metrics.ts";
import { PreviewAddresses } from "../gateway/preview/preview-address.ts";
import { Previews } from "../gateway/preview/previews.ts";
import { SignedLinks } from "../gateway/preview/signed-links.ts";
import { WebSocketGateway } from "../gateway/websocket/upgrade.ts";
import type { UnsavedSandbox } from "../manager/lifecycle/drain/drain.ts";
import { Outside } from "../egress/outside.ts";
import { SandboxManager } from "../manager/sandbox-manager.ts";
import type { ReportStep } from "../setup/index.ts";
import { systemClock } from "../support/clock.ts";
import { makePrivateFolder } from "../support/private-folder.ts";
import { shippedFolder } from "../support/shipped-folder.ts";
import { advertisedUrl } from "./advertised-url.ts";
import { openServerAccess } from "./access.ts";
import { prepareBackend } from "./backends.ts";
import type { ServerConfig } from "./config.ts";
import { startCollection } from "./collection.ts";
import { fateOf, meetStoredSandboxes, openDurability, sharedState, type Durability } from "./durability.ts";
import { installationId } from "./installation.ts";
import { createObserver, openLog } from "./log.ts";
import { mcpAnswerer } from "./mcp.ts";
import { httpPeers } from "./peers.ts";
import { openProfiles } from "./profiles.ts";
import { assembleBackends } from "./providers.ts";
import { machinesOf } from "../manager/ownership/machine-fit.ts";
import { resourceLimits } from "./resource-limits.ts";
import { scrubSettings } from "./scrub-settings.ts";
import { openSecrets, secretsForSandboxes } from "./secrets.ts";
import { openTls } from "./tls.ts";
import packageFile from "../../package.json" with { type: "json" };

export interface RunningServer {
  readonly url: string;
  readonly store: string | undefined;
  readonly engine: string;
  /** Whether it serves the console at its URL. */
  readonly console: boolean;
  /** Whether there are no keys, so that everyone on this machine can use it. */
  readonly open: boolean;
  /** Settles when the server has ended. */
  readonly closed: Promise<void>;
  /**
   * Refuses new work, drains all sandboxes, tells the clients, and ends. Rejects after the end if the store did not
   * accept every sandbox that can be saved. Idempotent.
   */
  drain(): Promise<void>;
}

/** How long clients may take to receive their last messages. */
const FAREWELL_MS = 2_000;

/** Assembles the server from its parts and starts it. The only place where concrete parts meet. */
export async function startServer(config: ServerConfig, hooks: { report: ReportStep }): Promise<RunningServer> {
  for (const folder of [config.dataDirectory, config.cacheDirectory]) await makePrivateFolder(folder);
  const log = openLog(config);
  const profiles = await openProfiles(config);
  log.info({ configFile: config.configFile }, "configured");
  const tls = await openTls(config, log);
  const { server: secure } = tls;
  const secureServer =
    secure === undefined
      ? undefined
      : (await import("../gateway/tls/secure-server.ts")).secureServer.bind(undefined, secure);
  const parts: {
    manager?: SandboxManager;
    service?: Service;
    open?: OpenedBackend;
    backends?: ReadonlyMap<string, SandboxBackend>;
    durability?: Durability;
    /** Shows other servers of this machine that this one lives. */
    mark?: InstanceFolder;
    collection?: BackgroundCollection | undefined;
  } = {};
  const { gate, audit } = openServerAccess(config, log, () => parts.durability);
  const secrets = openSecrets(config, (message) => log.warn(message));
  const prepared = await prepareBackend(config, secrets, hooks.report, (message, error) =>
    log.warn({ error: error instanceof Error ? error.message : String(error) }, message),
  );

  const addresses = new PreviewAddresses({
    domain: config.previewDomain,
    ownPort: () => portOf(app, config),
    isSecure: secure !== undefined,
  });
  const links = new SignedLinks(() => parts.durability?.peerSecret);
  const e2bServices = new E2bServices({
    gate,
    audit,
    addresses,
    manager: () => parts.manager,
    peerSecret: () => parts.durability?.peerSecret,
    shared: () => parts.service,
    log,
  });
  const previews = new Previews({
    ...config,
    gate,
    addresses,
    links,
    rules: e2bPreviewRules(e2bServices),
    manager: () => parts.manager,
    peerSecret: () => parts.durability?.peerSecret,
  });
  const e2b = config.e2b ? new E2bGateway(e2bServices, previews) : undefined;
  const app = createHttpServer({
    previews,
    e2b,
    metrics: () => metrics.registry,
    phase: () => (parts.manager === undefined ? "starting" : parts.manager.draining ? "draining" : undefined),
    probe: async () => (await parts.open?.backend.probe()) ?? { ok: false, summary: "starting" },
    readyDetails: () => ({
      backend: prepared.name,
      store: config.store ?? null,
      damaged_images: parts.manager?.integrity.figures.damagedImages ?? 0,
    }),
    peerSecret: () => parts.durability?.peerSecret,
    bodyTimeoutMs: config.bodyTimeoutMs,
    secureServer,
    condition: (image) => parts.manager?.condition(image),
    onRing: (sandboxId) => parts.durability?.instances.rung(sandboxId),
    onOffer: async (left) => {
      if (parts.manager === undefined) throw new SandboxerError("starting", "The server is starting.");
      await parts.manager.accept(left);
    },
    onFailure: (error, request) => log.error({ ...request, err: error }, "a request failed"),
    version: packageFile.version,
    service: () => parts.service,
    gate,
    audit,
    authorize: authorizer(gate, audit),
    onMutation: mutationAudit(audit),
    answerMcp: mcpAnswerer(log),
    consoleFolder: config.console ? shippedFolder("console") : undefined,
    docsFolder: shippedFolder("docs"),
  });
  const gateway = new WebSocketGateway(app.server, {
    ...config,
    gate,
    audit,
    previews,
    manager: () => parts.manager,
    peerSecret: () => parts.durability?.peerSecret,
    log,
  });
  const metrics: Metrics = new Metrics({
    states: () => parts.manager?.states() ?? {},
    dozing: () => parts.manager?.dozingCount() ?? 0,
    clients: () => gateway.clients,
    collected: () => parts.manager?.processes.collected,
    warm: () => parts.manager?.warmPool(),
    atRisk: () => parts.manager?.atRisk() ?? 0,
    integrity: () => parts.manager?.integrity.figures,
    certificateExpiresAtMs: secure === undefined ? undefined : tls.expiresAtMs,
  });
  const url = await listen(app, config);
  const advertised = advertisedUrl(config, url);

  try {
    const onFenced = (error: SandboxerError): void => {
      log.error(error.message);
      void parts.manager?.loseOwnership(error);
    };
    // The registry belongs to this machine: whatever the address, this server is reachable there.
    const reachedAt = config.store === undefined ? (advertised ?? url) : advertised;
    const durability = await openDurability(config, secrets, reachedAt, log, { onFenced, peerTls: tls.peerTls });
    parts.durability = durability;
    const { instances } = durability;
    if (config.store !== undefined) {
      if (advertised === undefined)
        log.warn(
          "Other servers of the store do not know the address of this one, so nothing can be handed off to it. Set --advertise-url.",
        );
      const problem = advertised === undefined ? undefined : tls.nameProblem(advertised);
      if (problem !== undefined)
        log.warn(
          `Other servers of the store cannot call this one at ${advertised}: ${problem}. Set --advertise-url to a name of the certificate.`,
        );
      log.info("store opened");
    }
    const fate: FateOf = (sandboxId) => fateOf(durability, sandboxId);
    const dead = new Set([...durability.dead, ...(await prepared.recover(fate))]);
    // The lease of a server whose run directory has no process need not be awaited.
    for (const instanceId of dead) await instances.markDead(instanceId);
    if (dead.size > 0) log.info({ dead: [...dead] }, "cleaned up after dead servers");
    parts.mark = await InstanceFolder.open(config.dataDirectory, instances.instanceId);
    const { mark } = parts;
    parts.open = await prepared.open(instances.instanceId, () => parts.manager?.placesTaken ?? 0);
    const { open } = parts;
    const { backend, workDirectory } = open;
    parts.backends = await assembleBackends(config, backend, secrets, fate);
    instances.advertise({ labels: config.serverLabels, machines: machinesOf(parts.backends) });
    instances.listen({
      onLaterId: (id) =>
        void Promise.all([open.noteLaterId(id), mark.noteLaterId(id)]).catch((error: unknown) =>
          log.warn({ err: error }, "the new server id could not be recorded"),
        ),
    });
    parts.manager = new SandboxManager({
      backends: parts.backends,
      defaultBackend: backend.name,
      profiles,
      images: prepared.images,
      installation: await installationId(config.dataDirectory),
      resumeTtlMs: config.resumeTtlMs,
      secrets: secretsForSandboxes(config, secrets),
      durable: durability.durable,
      labels: config.serverLabels,
      ...(advertised === undefined ? {} : { url: advertised }),
      peers: httpPeers(durability.peerSecret, tls.peerTls),
      peerTls: tls.peerTls,
      clock: systemClock,
      observer: createObserver(log, () => metrics),
      workDirectory,
      maxSandboxes: config.maxSandboxes,
      maxWakes: config.maxWakes,
      resourceLimits: resourceLimits(config),
      maxCollectedBytes: config.maxCollectedMb * 1024 * 1024,
      defaultIdleTimeoutMs: config.defaultIdleTimeoutSeconds * 1000,
      defaultMaxLoss: config.maxLoss,
      defaultNetwork: config.network,
      outside: new Outside({ allowed: config.networkAllow, nameservers: config.networkNameservers }),
      proveSnapshots: config.proveSnapshots,
      scrub: scrubSettings(config),
      handoffTimeoutMs: config.handoffTimeoutMs,
      drainTimeoutMs: config.drainTimeoutMs,
    });
    parts.manager.settleOrphans(dead);
    parts.manager.publishLeftBehind();
    if (config.store !== undefined) {
      const { durable } = durability;
      const { ownership } = durable;
      const seat = new CollectorSeat(instances.store, {
        me: () => ownership.instanceId,
        isDead: async (instanceId) => await ownership.isDead(instanceId),
      });
      const saved = { store: instances.store, images: durable.integrity?.images, seat };
      parts.collection = startCollection(config, saved, parts.manager.events, log);
    }
    parts.service = createService(parts.manager, {
      version: packageFile.version,
      store: config.store,
      maxClients: config.maxClients,
      addresses,
      links,
      shared: sharedState(durability, log),
    });
  } catch (error) {
    await end();
    throw error;
  }

  async function end(): Promise<readonly UnsavedSandbox[]> {
    const collected = parts.collection?.close();
    const unsaved = (await parts.manager?.drain()) ?? [];
    await gateway.close(FAREWELL_MS);
    for (const backend of parts.backends?.values() ?? []) if (backend !== parts.open?.backend) await backend.close();
    await parts.open?.close();
    await prepared.images?.close();
    // A store that does not answer must not delay the shutdown; the next server finds what was left undone.
    await Promise.race([collected, delay(FAREWELL_MS, undefined, { ref: false })]);
    parts.durability?.durable.ownership.index.close();
    await parts.durability?.instances.close();
    await parts.mark?.close();
    await app.close();
    tls.close();
    return unsaved;
  }

  const closed = Promise.withResolvers<void>();
  let draining: Promise<void> | undefined;
  const drain = (): Promise<void> => {
    log.info("draining");
    draining ??= end()
      .catch((error: unknown) => {
        log.error({ err: error }, "the shutdown was not clean");
        return [];
      })
      .then((unsaved) => {
        closed.resolve();
        if (unsaved.length === 0) return;
        log.error({ unsaved }, "not all sandboxes could be saved to the store");
        throw unsavedError(unsaved);
      });
    return draining;
  };
  log.info({ url, store: config.store, engine: prepared.engine }, "listening");
  if (parts.durability !== undefined) void meetStoredSandboxes(parts.durability.durable, log);
  const { open } = gate.authenticator;
  return {
    url,
    store: config.store,
    engine: prepared.engine,
    console: config.console,
    open,
    closed: closed.promise,
    drain,
  };
}

async function listen(
  app: ReturnType<typeof createHttpServer>,
  { host, port, tlsCert }: ServerConfig,
): Promise<string> {
  try {
    await app.listen({ host, port });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EADDRINUSE") throw error;
    throw new SandboxerError("bad_request", `Port ${port} on ${host} is in use.`, {
      hint: "Choose another with --port, or --port 0 for a free one.",
    });
  }
  const scheme = tlsCert === undefined ? "http" : "https";
  return `${scheme}://${host.includes(":") ? `[${host.replace(/[[\]]/g, "")}]` : host}:${portOf(app, { port })}`;
}

function portOf(app: ReturnType<typeof createHttpServer>, { port }: Pick<ServerConfig, "port">): number {
  const address = app.server.address();
  return typeof address === "object" && address !== null ? address.port : port;
}

/** The report about sandboxes that are not in the store when the server ends, one per line. */
function unsavedError(unsaved: readonly UnsavedSandbox[]): SandboxerError {
  const lines = unsaved.map(({ sandboxId, reason, folder }) =>
    folder === undefined
      ? `  ${sandboxId}: changes since its last checkpoint are lost: ${reason}`
      : `  ${sandboxId}: kept in ${folder}: ${reason}`,
  );
  const what = unsaved.length === 1 ? "A sandbox is" : `${unsaved.length} sandboxes are`;
  const hint = unsaved.some(({ folder }) => folder !== undefined)
    ? "Start a server on this machine with the same data directory and store: it saves these sandboxes to the store."
    : "Earlier checkpoints are intact. See the log for the failure.";
  return new SandboxerError("checkpoint_failed", `${what} not in the store:\n${lines.join("\n")}`, {
    hint,
    details: { sandboxes: unsaved.map(({ sandboxId, folder }) => ({ id: sandboxId, folder: folder ?? null })) },
  });
}
