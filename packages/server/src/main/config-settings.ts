import type { SecretDefinitions } from "../secrets/secret-definition.ts";
import type { ConfigValues } from "./config-schema.ts";

/**
 * Every setting: its flag, its environment variable, and its text in `--help`. Flags override the environment, the
 * environment overrides the config file, and that overrides the default. The key in the file is the flag's name.
 */
export const SETTINGS = {
  host: setting("--host <H>", "SANDBOXER_HOST", "address to listen on (default 127.0.0.1)"),
  port: setting("--port <P>", "PORT", "port to listen on; 0 picks a free one (default 8080)", {
    ownEnvironment: "SANDBOXER_PORT",
  }),
  tlsCert: setting(
    "--tls-cert <PATH>",
    "SANDBOXER_TLS_CERT",
    "serve HTTPS with this certificate chain in PEM; read again when it changes (default: HTTP)",
    { path: true },
  ),
  tlsKey: setting("--tls-key <PATH>", "SANDBOXER_TLS_KEY", "private key of --tls-cert, in PEM", { path: true }),
  peerCa: setting(
    "--peer-ca <PATH>",
    "SANDBOXER_PEER_CA",
    "call other servers over HTTPS only, with certificates of these authorities in PEM (default: HTTP, or HTTPS with Node's authorities)",
    { path: true },
  ),
  requirePeerCert: setting(
    "--require-peer-cert",
    "SANDBOXER_REQUIRE_PEER_CERT",
    "accept calls of other servers only with a certificate of --peer-ca (default off)",
  ),
  store: setting(
    "--store <URL>",
    "CHECKPOINT_AND_RESTORE_PATH",
    "where checkpoints are stored; without it, sandboxes cannot be checkpointed",
    {
      ownEnvironment: "SANDBOXER_STORE",
      path: true,
    },
  ),
  requireStore: setting(
    "--require-store",
    "SANDBOXER_REQUIRE_STORE",
    "fail if the store is empty instead of initializing it (default off)",
  ),
  previewDomain: setting(
    "--preview-domain <DOMAIN>",
    "SANDBOXER_PREVIEW_DOMAIN",
    "open ports of sandboxes at https://PORT-SANDBOX.DOMAIN (default: at http://PORT-SANDBOX.localhost only)",
  ),
  maxPreviews: setting(
    "--max-previews <N>",
    "SANDBOXER_MAX_PREVIEWS",
    "maximum number of open requests to ports; one sandbox may have a quarter, one address half (default 1000)",
  ),
  maxWakes: setting(
    "--max-wakes <N>",
    "SANDBOXER_MAX_WAKES",
    "how many paused sandboxes are resumed at once for requests to their ports (default: one per processor, at least 2)",
  ),
  wakeTimeoutMs: setting(
    "--wake-timeout <DURATION>",
    "SANDBOXER_WAKE_TIMEOUT",
    "how long a request waits until a paused sandbox is resumed (default 1m)",
  ),
  advertiseUrl: setting(
    "--advertise-url <URL>",
    "SANDBOXER_ADVERTISE_URL",
    "URL at which other servers of the store reach this one (default: its listening address, unless it is all addresses)",
  ),
  serverLabels: setting(
    "--server-labels <LIST>",
    "SANDBOXER_SERVER_LABELS",
    "facts about this server that sandboxes can require or prefer: zone=eu-1,pool=gpu (default none)",
  ),
  backend: setting("--backend <NAME>", "SANDBOXER_SANDBOX_BACKEND", "default backend of sandboxes (default gvisor)", {
    ownEnvironment: "SANDBOXER_BACKEND",
    otherFlag: "--sandbox-backend <NAME>",
  }),
  platform: setting("--platform <P>", "SANDBOXER_PLATFORM", "gVisor platform: auto, systrap, ptrace, kvm"),
  runscPath: setting("--runsc <PATH>", "SANDBOXER_RUNSC", "path of the runsc of new sandboxes", { path: true }),
  fetchEngines: setting(
    "--no-fetch-engines",
    "SANDBOXER_FETCH_ENGINES",
    "do not fetch or build gVisor engines: neither newer ones nor those that checkpoints need",
  ),
  image: setting("--image <IMAGE>", "SANDBOXER_IMAGE", "root filesystem of new sandboxes (default host)"),
  defaultRegistry: setting(
    "--default-registry <HOST>",
    "SANDBOXER_DEFAULT_REGISTRY",
    "registry of image names without one (default docker.io)",
  ),
  registries: setting(
    "--registries <HOSTS>",
    "SANDBOXER_REGISTRIES",
    "registries that images may come from, comma-separated (default all)",
  ),
  registryMirrors: setting(
    "--registry-mirrors <LIST>",
    "SANDBOXER_REGISTRY_MIRRORS",
    "mirrors that are asked first: docker.io=https://mirror.example, comma-separated (default none)",
  ),
  insecureRegistries: setting(
    "--insecure-registry <HOSTS>",
    "SANDBOXER_INSECURE_REGISTRY",
    "registries without TLS, such as localhost:5000, comma-separated (default none)",
  ),
  registrySecrets: setting(
    "--registry-secrets <LIST>",
    "SANDBOXER_REGISTRY_SECRETS",
    "secrets with USER:PASSWORD of registries: registry.example=NAME, comma-separated (default none)",
  ),
  layerCacheMb: setting(
    "--layer-cache-mb <MB>",
    "SANDBOXER_LAYER_CACHE_MB",
    "MB of container images kept locally; the least recently used ones are removed (default 20480)",
  ),
  maxImageMb: setting(
    "--max-image-mb <MB>",
    "SANDBOXER_MAX_IMAGE_MB",
    "largest container image in MB, unpacked (default 20480)",
  ),
  dockerConfig: setting(undefined, "DOCKER_CONFIG", "folder with Docker's config.json, for credentials of registries"),
  // They may contain a password.
  httpProxy: setting(undefined, "HTTP_PROXY", "proxy for registries without TLS", {
    ownEnvironment: "http_proxy",
    secret: true,
  }),
  httpsProxy: setting(undefined, "HTTPS_PROXY", "proxy for registries", {
    ownEnvironment: "https_proxy",
    secret: true,
  }),
  noProxy: setting(undefined, "NO_PROXY", "hosts that are reached without a proxy, comma-separated", {
    ownEnvironment: "no_proxy",
  }),
  network: setting(
    "--network <POLICY>",
    "SANDBOXER_NETWORK",
    "network policy of new sandboxes that do not set one: none, open, or entries such as pypi.org,*.example.com:443 (default none)",
  ),
  networkMode: setting(
    "--network-mode <MODE>",
    "SANDBOXER_NETWORK_MODE",
    "how sandboxes reach the network: proxy, namespace, auto, or off for never (default proxy)",
  ),
  networkAllow: setting(
    "--network-allow <CIDRS>",
    "SANDBOXER_NETWORK_ALLOW",
    "private networks that sandboxes may reach, comma-separated (default none)",
  ),
  networkNameservers: setting(
    "--network-nameservers <ADDRESSES>",
    "SANDBOXER_NETWORK_NAMESERVERS",
    "nameservers for the names that sandboxes ask for, comma-separated (default: the host's)",
  ),
  allowNetwork: setting(
    "--allow-network",
    "SANDBOXER_ALLOW_NETWORK",
    "earlier name of --network-mode auto (default off)",
  ),
  rootInside: setting(
    "--root-inside <BACKENDS>",
    "SANDBOXER_ROOT_INSIDE",
    "backends whose sandboxes may run programs as root: gvisor, docker, gvisor,docker or off (default gvisor)",
  ),
  dockerHost: setting(
    "--docker-host <URL>",
    "DOCKER_HOST",
    "address of the Docker engine (default unix:///var/run/docker.sock)",
    {
      ownEnvironment: "SANDBOXER_DOCKER_HOST",
    },
  ),
  dockerImage: setting("--docker-image <IMAGE>", "SANDBOXER_DOCKER_IMAGE", "image of new Docker sandboxes"),
  dockerRuntime: setting(
    "--docker-runtime <NAME>",
    "SANDBOXER_DOCKER_RUNTIME",
    "container runtime of the engine, such as runsc",
  ),
  dockerNetwork: setting(
    "--docker-network <NAME>",
    "SANDBOXER_DOCKER_NETWORK",
    "network of Docker sandboxes with network access (default bridge)",
  ),
  dockerMounts: setting(
    "--docker-mounts <PATHS>",
    "SANDBOXER_DOCKER_MOUNTS",
    "host paths that Docker sandboxes may mount: PATH or PATH:rw, comma-separated (default none)",
  ),
  dataDirectory: setting(
    "--data-directory <PATH>",
    "SANDBOXER_DATA_DIRECTORY",
    "folder for run directories and records",
    {
      path: true,
    },
  ),
  cacheDirectory: setting(
    "--cache-directory <PATH>",
    "SANDBOXER_CACHE_DIRECTORY",
    "folder for downloaded engines, agents and test results",
    {
      path: true,
    },
  ),
  extensions: setting("--extensions <PATH>", "SANDBOXER_EXTENSIONS", "manifest of your extensions", { path: true }),
  repositories: setting(
    "--repositories <PATHS>",
    "SANDBOXER_REPOSITORIES",
    "colon-separated folders that may contain inputs.repo (default none)",
  ),
  profilesDirectory: setting(
    "--profiles-directory <PATH>",
    "SANDBOXER_PROFILES_DIRECTORY",
    "folder with your profiles, *.yaml",
    {
      path: true,
    },
  ),
  dozeAfterMs: setting(
    "--doze-after <DURATION>",
    "SANDBOXER_DOZE_AFTER",
    "let a gVisor sandbox doze (use no CPU) after this long with nothing running in it; or off (default 5s)",
  ),
  leaseTtlMs: setting(
    "--lease-ttl <DURATION>",
    "SANDBOXER_LEASE_TTL",
    "how long ownership lasts without a renewal (default 15s)",
  ),
  resumeTtlMs: setting(
    "--resume-ttl <DURATION>",
    "SANDBOXER_RESUME_TTL",
    "how long a stopped sandbox with a key is kept (default 7d)",
  ),
  handoffTimeoutMs: setting(
    "--handoff-timeout <DURATION>",
    "SANDBOXER_HANDOFF_TIMEOUT",
    "how long to wait for another server to hand off a sandbox (default 30s)",
  ),
  drainTimeoutMs: setting(
    "--drain-timeout <DURATION>",
    "SANDBOXER_DRAIN_TIMEOUT",
    "how long a stopping server waits for a store that does not accept its sandboxes (default 10m)",
  ),
  defaultIdleTimeoutSeconds: setting(
    "--idle-timeout <DURATION>",
    "SANDBOXER_IDLE_TIMEOUT",
    "idle timeout of sandboxes that do not set one (default 5m)",
  ),
  keepCheckpoints: setting(
    "--keep-checkpoints <RULE>",
    "SANDBOXER_KEEP_CHECKPOINTS",
    "checkpoint retention of sandboxes that do not set it: 5, or last=3,hourly=24,daily=7 (default 3)",
  ),
  keepSnapshots: setting(
    "--keep-snapshots <RULE>",
    "SANDBOXER_KEEP_SNAPSHOTS",
    "retention of unnamed snapshots of sandboxes that do not set it: 5, last=3,hourly=24,daily=7 or all (default all)",
  ),
  collectEveryMs: setting(
    "--collect-every <DURATION>",
    "SANDBOXER_COLLECT_EVERY",
    "how often to remove garbage from the store, as `sandboxer gc` does; or off (default 6h)",
  ),
  scrubEvery: setting(
    "--scrub-every <DURATION>",
    "SANDBOXER_SCRUB_EVERY",
    "how often to check all stored data, as `sandboxer scrub` does; or off (default 7d; off for buckets)",
  ),
  scrubRateMb: setting(
    "--scrub-rate-mb <MB>",
    "SANDBOXER_SCRUB_RATE_MB",
    "MB per second that a scrub may read; 0 for no limit (default 20)",
  ),
  encryptionKey: setting(
    "--encryption-key <NAME>",
    "SANDBOXER_ENCRYPTION_KEY_NAME",
    "name of the secret that encrypts saved data (default: no encryption)",
  ),
  encryptionOldKeys: setting(
    "--encryption-old-keys <NAMES>",
    "SANDBOXER_ENCRYPTION_OLD_KEY_NAMES",
    "comma-separated secrets that were the encryption key before; data encrypted with them can still be read (default none)",
  ),
  requireSealed: setting(
    "--require-sealed",
    "SANDBOXER_REQUIRE_SEALED",
    "reject stored records that were not written by a server with the encryption key (default off)",
  ),
  packCacheMb: setting(
    "--pack-cache-mb <MB>",
    "SANDBOXER_PACK_CACHE_MB",
    "MB of local cache for a remote store (default 4096)",
  ),
  imageCacheMb: setting(
    "--image-cache-mb <MB>",
    "SANDBOXER_IMAGE_CACHE_MB",
    "MB of unpacked images kept locally for the next restore (default 2048)",
  ),
  maxLoss: setting(
    "--max-loss <LOSS>",
    "SANDBOXER_MAX_LOSS",
    "checkpoint running sandboxes so that at most this much is lost: 5m, or 10 executions (default: only on request)",
  ),
  proveSnapshots: setting(
    "--prove-snapshots",
    "SANDBOXER_PROVE_SNAPSHOTS",
    "test-restore each new snapshot in isolation (default off)",
  ),
  maxSandboxes: setting(
    "--max-sandboxes <N>",
    "SANDBOXER_MAX_SANDBOXES",
    "maximum number of live sandboxes (default 100)",
  ),
  maxResources: setting(
    "--max-resources <LIST>",
    "SANDBOXER_MAX_RESOURCES",
    "maximum resources of one sandbox: memory=8g,cpus=4,processes=4096,disk=20g (default: all of the machine)",
  ),
  maxTotalMemory: setting(
    "--max-total-memory <SIZE>",
    "SANDBOXER_MAX_TOTAL_MEMORY",
    "memory limit of all sandboxes together: 20g, or 90% of the machine (default 90%)",
  ),
  maxTotalCpus: setting(
    "--max-total-cpus <N>",
    "SANDBOXER_MAX_TOTAL_CPUS",
    "CPUs that all sandboxes may request together (default: no limit)",
  ),
  warmPoolMax: setting(
    "--warm-pool-max <N>",
    "SANDBOXER_WARM_POOL_MAX",
    "size of the warm pool of started gVisor sandboxes; 0 for none (default 4)",
  ),
  maxClients: setting(
    "--max-clients <N>",
    "SANDBOXER_MAX_CLIENTS",
    "maximum number of connected clients (default 1000)",
  ),
  maxClientsPerAddress: setting(
    "--max-clients-per-address <N>",
    "SANDBOXER_MAX_CLIENTS_PER_ADDRESS",
    "maximum number of clients from one address without a key; 0 for no limit (default half of --max-clients)",
  ),
  maxClientsPerKey: setting(
    "--max-clients-per-key <N>",
    "SANDBOXER_MAX_CLIENTS_PER_KEY",
    "maximum number of clients with one key; 0 for no limit (default four fifths of --max-clients)",
  ),
  maxMessageBytes: setting(
    "--max-message-bytes <N>",
    "SANDBOXER_MAX_MESSAGE_BYTES",
    "maximum size of a client message in bytes (default 1048576)",
  ),
  maxCollectedMb: setting(
    "--max-collected-mb <MB>",
    "SANDBOXER_MAX_COLLECTED_MB",
    "MB of memory for collected exec output; programs wait when it is full (default 256)",
  ),
  keyHeader: setting(
    "--key-header <NAME>",
    "SANDBOXER_KEY_HEADER",
    "read keys only from this header, so that a proxy can use Authorization",
  ),
  rateLimit: setting(
    "--rate-limit <N>",
    "SANDBOXER_RATE_LIMIT",
    "requests per second of one key or address; 0 for no limit (default 1000)",
  ),
  rateBurst: setting("--rate-burst <N>", "SANDBOXER_RATE_BURST", "burst of requests (default twice the rate limit)"),
  trustedProxies: setting(
    "--trusted-proxy <ADDRESSES>",
    "SANDBOXER_TRUSTED_PROXY",
    "proxies whose X-Forwarded-For is trusted: addresses or networks, comma-separated (default none)",
  ),
  bodyTimeoutMs: setting(
    "--body-timeout <DURATION>",
    "SANDBOXER_BODY_TIMEOUT",
    "abort a request whose body stalls this long, or then sends fewer than 500 bytes per second (default 30s)",
  ),
  auditFile: setting("--audit-file <PATH>", "SANDBOXER_AUDIT_FILE", "also append audit records to this file", {
    path: true,
  }),
  apiKeys: setting(undefined, "SANDBOXER_API_KEYS", "comma-separated API keys that the server accepts", {
    secret: true,
  }),
  console: setting(
    "--no-console",
    "SANDBOXER_CONSOLE",
    "do not serve the web console at / (same as SANDBOXER_CONSOLE=off)",
  ),
  e2b: setting(
    "--no-e2b",
    "SANDBOXER_E2B",
    "do not serve E2B's API below /e2b, for E2B's SDKs (same as SANDBOXER_E2B=off)",
  ),
  logLevel: setting(
    "--log-level <L>",
    "SANDBOXER_LOG_LEVEL",
    "trace, debug, info, warn, error, fatal, silent (default info)",
  ),
  daytonaApiKey: setting(undefined, "DAYTONA_API_KEY", "API key of the daytona backend (the secret daytona-api-key)", {
    secret: true,
  }),
  daytonaOrganizationId: setting(
    "--daytona-organization-id <ID>",
    "DAYTONA_ORGANIZATION_ID",
    "organization that the Daytona key belongs to",
  ),
  daytonaApiUrl: setting(
    "--daytona-api-url <URL>",
    "DAYTONA_API_URL",
    "URL of Daytona's control plane (default app.daytona.io)",
  ),
  daytonaToolboxUrl: setting(
    "--daytona-toolbox-url <URL>",
    "DAYTONA_TOOLBOX_URL",
    "host of the toolboxes (default: as reported by each sandbox)",
  ),
  daytonaTarget: setting("--daytona-target <REGION>", "DAYTONA_TARGET", "region of new Daytona sandboxes"),
  searchPath: setting(undefined, "PATH", "search path of programs"),
} as const satisfies Record<string, Setting>;

export type SettingName = keyof typeof SETTINGS;

export const SETTING_NAMES = Object.keys(SETTINGS) as readonly SettingName[];

export interface Setting {
  /** As commander declares it. Secrets have no flag: a command line is visible to every process. */
  readonly flag: string | undefined;
  /** An alias of the flag that `--help` does not show. */
  readonly otherFlag?: string;
  readonly environment: string;
  readonly description: string;
  /** Overrides `environment`, if that is a name that other programs use too. */
  readonly ownEnvironment?: string;
  /** In the config file: relative to the file, and `~/` is the home directory. */
  readonly path?: boolean;
  /** Never shown, and not read from the config file. */
  readonly secret?: boolean;
}

/** `--port` of `--port <P>`. */
export function flagName(name: SettingName): string | undefined {
  return SETTINGS[name].flag?.split(" ")[0];
}

/**
 * `lease_ttl` of `--lease-ttl <DURATION>`, `console` of `--no-console`; a setting without a flag is not in the file.
 */
export function fileKey(name: SettingName): string | undefined {
  return flagName(name)
    ?.replace(/^--(no-)?/, "")
    .replaceAll("-", "_");
}

/** The variables of a setting, strongest first. */
export function variablesOf(name: SettingName): readonly string[] {
  const { environment, ownEnvironment }: Setting = SETTINGS[name];
  return ownEnvironment === undefined ? [environment] : [ownEnvironment, environment];
}

function setting(
  flag: string | undefined,
  environment: string,
  description: string,
  more: Partial<Setting> = {},
): Setting {
  return { flag, environment, description, ...more };
}

export interface ConfigLayer {
  readonly origin: string;
  readonly text: string;
}

export type ConfigFlags = { readonly [name in SettingName]?: string | undefined } & {
  /** The config file; otherwise `SANDBOXER_CONFIG`, otherwise the one in the config folder. */
  readonly config?: string | undefined;
  /** If no store is set: use the one in the data directory. */
  readonly defaultStore?: boolean | undefined;
};

export interface ConfigSources {
  readonly flags: ConfigFlags;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly homeDirectory: string;
  /** False for commands that start no server: their listening address does not matter. */
  readonly serving?: boolean;
}

/** All settings of the server. Nothing below `main` reads the environment. */
export interface ServerConfig extends ConfigValues {
  /** The origin of each value: `flag --port`, `environment PORT`, `file /…/config.yaml:3`, `default`. */
  readonly origins: Readonly<Record<SettingName, string>>;
  /** Every origin that sets a value, strongest first. Texts of secrets are left out. */
  readonly layers: Readonly<Record<SettingName, readonly ConfigLayer[]>>;
  readonly configFile: string | undefined;
  /** The sources of secrets, by name. */
  readonly secrets: SecretDefinitions;
}
