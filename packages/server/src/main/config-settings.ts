import type { SecretDefinitions } from "../secrets/secret-definition.ts";
import type { ConfigValues } from "./config-schema.ts";

/**
 * Every setting: the flag and the environment variable that set it, and what `--help` says. Flags win over the
 * environment, the environment over the config file, and that over the default. The key in the file is the flag's name.
 */
export const SETTINGS = {
  host: setting("--host <H>", "SANDBOXER_HOST", "address to listen on (default 127.0.0.1)"),
  port: setting("--port <P>", "PORT", "port to listen on; 0 picks a free one (default 8080)", {
    ownEnvironment: "SANDBOXER_PORT",
  }),
  store: setting("--store <URL>", "CHECKPOINT_AND_RESTORE_PATH", "where checkpoints are kept; none: no checkpoints", {
    ownEnvironment: "SANDBOXER_STORE",
    path: true,
  }),
  requireStore: setting(
    "--require-store",
    "SANDBOXER_REQUIRE_STORE",
    "refuse an empty store instead of starting a new one there (default off)",
  ),
  advertiseUrl: setting(
    "--advertise-url <URL>",
    "SANDBOXER_ADVERTISE_URL",
    "where the other servers of the store reach this one (default: where it listens, unless on all addresses)",
  ),
  backend: setting("--backend <NAME>", "SANDBOXER_SANDBOX_BACKEND", "what makes sandboxes (default gvisor)", {
    ownEnvironment: "SANDBOXER_BACKEND",
    otherFlag: "--sandbox-backend <NAME>",
  }),
  platform: setting("--platform <P>", "SANDBOXER_PLATFORM", "gVisor platform: auto, systrap, ptrace, kvm"),
  runscPath: setting("--runsc <PATH>", "SANDBOXER_RUNSC", "use this runsc and no other", { path: true }),
  image: setting("--image <IMAGE>", "SANDBOXER_IMAGE", "root filesystem of new sandboxes (default host)"),
  allowNetwork: setting(
    "--allow-network",
    "SANDBOXER_ALLOW_NETWORK",
    "let sandboxes have a network that ask for one (default off)",
  ),
  dockerHost: setting("--docker-host <URL>", "DOCKER_HOST", "the Docker engine (default unix:///var/run/docker.sock)", {
    ownEnvironment: "SANDBOXER_DOCKER_HOST",
  }),
  dockerImage: setting("--docker-image <IMAGE>", "SANDBOXER_DOCKER_IMAGE", "image of new Docker sandboxes"),
  dockerRuntime: setting("--docker-runtime <NAME>", "SANDBOXER_DOCKER_RUNTIME", "runtime of the engine, such as runsc"),
  dockerNetwork: setting(
    "--docker-network <NAME>",
    "SANDBOXER_DOCKER_NETWORK",
    "network of Docker sandboxes that may have one (default bridge)",
  ),
  dockerMounts: setting(
    "--docker-mounts <PATHS>",
    "SANDBOXER_DOCKER_MOUNTS",
    "what Docker sandboxes may mount: PATH or PATH:rw, comma-separated (default nothing)",
  ),
  dataDirectory: setting("--data-directory <PATH>", "SANDBOXER_DATA_DIRECTORY", "run directories and records", {
    path: true,
  }),
  cacheDirectory: setting("--cache-directory <PATH>", "SANDBOXER_CACHE_DIRECTORY", "engines, agents, verdicts", {
    path: true,
  }),
  extensions: setting("--extensions <PATH>", "SANDBOXER_EXTENSIONS", "the manifest of your extensions", { path: true }),
  repositories: setting(
    "--repositories <PATHS>",
    "SANDBOXER_REPOSITORIES",
    "folders, with colons between, that inputs.repo may be in (default none)",
  ),
  profilesDirectory: setting("--profiles-directory <PATH>", "SANDBOXER_PROFILES_DIRECTORY", "your profiles, *.yaml", {
    path: true,
  }),
  dozeAfterMs: setting(
    "--doze-after <DURATION>",
    "SANDBOXER_DOZE_AFTER",
    "a gVisor sandbox in which nothing runs dozes, until the next request; off: never (default 5s)",
  ),
  leaseTtlMs: setting(
    "--lease-ttl <DURATION>",
    "SANDBOXER_LEASE_TTL",
    "ownership without a renewal ends (default 15s)",
  ),
  resumeTtlMs: setting(
    "--resume-ttl <DURATION>",
    "SANDBOXER_RESUME_TTL",
    "a stopped sandbox with a key is there to be taken up again (default 7d)",
  ),
  handoffTimeoutMs: setting(
    "--handoff-timeout <DURATION>",
    "SANDBOXER_HANDOFF_TIMEOUT",
    "wait for an owner to yield (default 30s)",
  ),
  drainTimeoutMs: setting(
    "--drain-timeout <DURATION>",
    "SANDBOXER_DRAIN_TIMEOUT",
    "when stopping, wait for a store that does not take the sandboxes (default 10m)",
  ),
  defaultIdleTimeoutSeconds: setting(
    "--idle-timeout <DURATION>",
    "SANDBOXER_IDLE_TIMEOUT",
    "for sandboxes that do not say (default 5m)",
  ),
  keepCheckpoints: setting(
    "--keep-checkpoints <RULE>",
    "SANDBOXER_KEEP_CHECKPOINTS",
    "checkpoints kept of each sandbox that does not say: 5, or last=3,hourly=24,daily=7 (default 3)",
  ),
  keepSnapshots: setting(
    "--keep-snapshots <RULE>",
    "SANDBOXER_KEEP_SNAPSHOTS",
    "snapshots without a name kept of each sandbox that does not say: as above, or all (default all)",
  ),
  collectEveryMs: setting(
    "--collect-every <DURATION>",
    "SANDBOXER_COLLECT_EVERY",
    "remove from the store what nothing needs, as `sandboxer gc` does; or off (default 6h)",
  ),
  scrubEvery: setting(
    "--scrub-every <DURATION>",
    "SANDBOXER_SCRUB_EVERY",
    "read all that is stored and check it, as `sandboxer scrub` does; or off (default 7d; off for buckets)",
  ),
  scrubRateMb: setting(
    "--scrub-rate-mb <MB>",
    "SANDBOXER_SCRUB_RATE_MB",
    "at most so many MB in a second for that; 0: no limit (default 20)",
  ),
  encryptionKey: setting(
    "--encryption-key <NAME>",
    "SANDBOXER_ENCRYPTION_KEY_NAME",
    "encrypt what is saved with this secret of the config file (default: it is not encrypted)",
  ),
  encryptionOldKeys: setting(
    "--encryption-old-keys <NAMES>",
    "SANDBOXER_ENCRYPTION_OLD_KEY_NAMES",
    "secrets that were the key before, comma-separated: what is under them can be read (default none)",
  ),
  requireSealed: setting(
    "--require-sealed",
    "SANDBOXER_REQUIRE_SEALED",
    "refuse records in the store that no server with the encryption key has written (default off)",
  ),
  packCacheMb: setting(
    "--pack-cache-mb <MB>",
    "SANDBOXER_PACK_CACHE_MB",
    "what is kept here of a store that is elsewhere (default 4096)",
  ),
  imageCacheMb: setting(
    "--image-cache-mb <MB>",
    "SANDBOXER_IMAGE_CACHE_MB",
    "unpacked images kept here for the next restore (default 2048)",
  ),
  maxLoss: setting(
    "--max-loss <LOSS>",
    "SANDBOXER_MAX_LOSS",
    "save live sandboxes so often that no more is lost: 5m, or 10 executions (default: only when asked)",
  ),
  proveSnapshots: setting(
    "--prove-snapshots",
    "SANDBOXER_PROVE_SNAPSHOTS",
    "restore each new snapshot once, out of reach, to prove that it can be (default off)",
  ),
  maxSandboxes: setting("--max-sandboxes <N>", "SANDBOXER_MAX_SANDBOXES", "live sandboxes at once (default 100)"),
  maxResources: setting(
    "--max-resources <LIST>",
    "SANDBOXER_MAX_RESOURCES",
    "the most for one sandbox: memory=8g,cpus=4,processes=4096,disk=20g (default: what the machine has)",
  ),
  maxTotalMemory: setting(
    "--max-total-memory <SIZE>",
    "SANDBOXER_MAX_TOTAL_MEMORY",
    "memory that all sandboxes here may ask for together: 20g, or 90% of the machine's (default 90%)",
  ),
  warmPoolMax: setting(
    "--warm-pool-max <N>",
    "SANDBOXER_WARM_POOL_MAX",
    "gVisor sandboxes started ahead of the need, at most; 0: none (default 4)",
  ),
  maxClients: setting("--max-clients <N>", "SANDBOXER_MAX_CLIENTS", "connected clients at once (default 1000)"),
  maxClientsPerAddress: setting(
    "--max-clients-per-address <N>",
    "SANDBOXER_MAX_CLIENTS_PER_ADDRESS",
    "of them from one address without a key; 0: no limit (default half of --max-clients)",
  ),
  maxClientsPerKey: setting(
    "--max-clients-per-key <N>",
    "SANDBOXER_MAX_CLIENTS_PER_KEY",
    "of them with one key; 0: no limit (default four fifths of --max-clients)",
  ),
  maxMessageBytes: setting(
    "--max-message-bytes <N>",
    "SANDBOXER_MAX_MESSAGE_BYTES",
    "largest message of a client (default 1048576)",
  ),
  maxCollectedMb: setting(
    "--max-collected-mb <MB>",
    "SANDBOXER_MAX_COLLECTED_MB",
    "memory for output that is collected for answers of exec; programs wait beyond it (default 256)",
  ),
  keyHeader: setting(
    "--key-header <NAME>",
    "SANDBOXER_KEY_HEADER",
    "the only header that keys are read from, so that Authorization is free for a proxy's token",
  ),
  rateLimit: setting(
    "--rate-limit <N>",
    "SANDBOXER_RATE_LIMIT",
    "requests of a key, or of an address, in a second; 0: no limit (default 1000)",
  ),
  rateBurst: setting("--rate-burst <N>", "SANDBOXER_RATE_BURST", "requests at once (default twice the rate limit)"),
  trustedProxies: setting(
    "--trusted-proxy <ADDRESSES>",
    "SANDBOXER_TRUSTED_PROXY",
    "proxies whose X-Forwarded-For is believed: addresses or networks, comma-separated (default none)",
  ),
  bodyTimeoutMs: setting(
    "--body-timeout <DURATION>",
    "SANDBOXER_BODY_TIMEOUT",
    "cut a request whose body stalls for so long, or brings fewer than 500 bytes a second beyond it (default 30s)",
  ),
  auditFile: setting("--audit-file <PATH>", "SANDBOXER_AUDIT_FILE", "also append the audit lines to this file", {
    path: true,
  }),
  apiKeys: setting(undefined, "SANDBOXER_API_KEYS", "comma-separated keys that clients must send", { secret: true }),
  console: setting(
    "--no-console",
    "SANDBOXER_CONSOLE",
    "serve no web console at /; SANDBOXER_CONSOLE=off says the same",
  ),
  logLevel: setting(
    "--log-level <L>",
    "SANDBOXER_LOG_LEVEL",
    "trace, debug, info, warn, error, fatal, silent (default info)",
  ),
  daytonaApiKey: setting(undefined, "DAYTONA_API_KEY", "key of the daytona backend, as the secret daytona-api-key", {
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
    "Daytona's control plane (default app.daytona.io)",
  ),
  daytonaToolboxUrl: setting(
    "--daytona-toolbox-url <URL>",
    "DAYTONA_TOOLBOX_URL",
    "host of the toolboxes (default: what each sandbox says)",
  ),
  daytonaTarget: setting("--daytona-target <REGION>", "DAYTONA_TARGET", "region of new Daytona sandboxes"),
  searchPath: setting(undefined, "PATH", "where programs are looked for"),
} as const satisfies Record<string, Setting>;

export type SettingName = keyof typeof SETTINGS;

export const SETTING_NAMES = Object.keys(SETTINGS) as readonly SettingName[];

export interface Setting {
  /** As commander declares it. Secrets have none: a command line is visible to every process. */
  readonly flag: string | undefined;
  /** Another name of the flag, which `--help` does not show. */
  readonly otherFlag?: string;
  readonly environment: string;
  readonly description: string;
  /** Wins over `environment`, where that is a name of others'. */
  readonly ownEnvironment?: string;
  /** In the config file: relative to the file, and `~/` is the home directory. */
  readonly path?: boolean;
  /** Never shown, and not taken from the config file. */
  readonly secret?: boolean;
}

/** `--port` of `--port <P>`. */
export function flagName(name: SettingName): string | undefined {
  return SETTINGS[name].flag?.split(" ")[0];
}

/** `lease_ttl` of `--lease-ttl <DURATION>`, `console` of `--no-console`; what has no flag is not in the file. */
export function fileKey(name: SettingName): string | undefined {
  return flagName(name)
    ?.replace(/^--(no-)?/, "")
    .replaceAll("-", "_");
}

/** The variables of a setting, the strongest first. */
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
  /** Without a store from elsewhere: the one in the data directory. */
  readonly defaultStore?: boolean | undefined;
};

export interface ConfigSources {
  readonly flags: ConfigFlags;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly homeDirectory: string;
  /** False for commands that start no server: where one would listen is then of no matter. */
  readonly serving?: boolean;
}

/** Everything that the server is told. Nothing below `main` reads the environment. */
export interface ServerConfig extends ConfigValues {
  /** Where each value comes from: `flag --port`, `environment PORT`, `file /…/config.yaml:3`, `default`. */
  readonly origins: Readonly<Record<SettingName, string>>;
  /** Every place that says something about a setting, the strongest first. Of secrets the text is left out. */
  readonly layers: Readonly<Record<SettingName, readonly ConfigLayer[]>>;
  readonly configFile: string | undefined;
  /** Where secrets come from, by name. */
  readonly secrets: SecretDefinitions;
}
