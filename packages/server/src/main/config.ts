import { SandboxerError } from "@sandboxer/protocol";
import { isAbsolute, join } from "node:path";
import { isIPv4 } from "node:net";
import { configSchema, type ConfigValues } from "./config-schema.ts";
import { flagName, SETTINGS, type SettingName } from "./config-settings.ts";

export { SETTINGS, type SettingName } from "./config-settings.ts";
export type { ConfigValues } from "./config-schema.ts";

/** Everything that the server is told. Nothing below `main` reads the environment. */
export interface ServerConfig extends ConfigValues {
  /** Where each value comes from: `flag --port`, `environment PORT`, `default`. */
  readonly origins: Readonly<Record<SettingName, string>>;
}

export type ConfigFlags = { readonly [name in SettingName]?: string | undefined } & {
  /** Without a store from elsewhere: the one in the data directory. */
  readonly defaultStore?: boolean | undefined;
};

export interface ConfigSources {
  readonly flags: ConfigFlags;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly homeDirectory: string;
}

export function parseConfig({ flags, env, homeDirectory }: ConfigSources): ServerConfig {
  const defaults = defaultTexts(env, homeDirectory);
  const texts: Partial<Record<SettingName, string>> = {};
  const origins = {} as Record<SettingName, string>;
  for (const name of Object.keys(SETTINGS) as SettingName[]) {
    const { environment } = SETTINGS[name];
    const flag = flags[name];
    const fromEnvironment = env[environment];
    // An empty variable is how shells and container files say "not set".
    if (flag !== undefined) [texts[name], origins[name]] = [flag, `flag ${flagName(name) ?? name}`];
    else if (fromEnvironment) [texts[name], origins[name]] = [fromEnvironment, `environment ${environment}`];
    else {
      const text = defaults[name];
      if (text !== undefined) texts[name] = text;
      origins[name] = "default";
    }
  }
  if (texts.store === undefined && flags.defaultStore === true) {
    texts.store = join(texts.dataDirectory ?? "", "store");
    origins.store = "flag --default-store";
  }

  const parsed = configSchema.safeParse(texts);
  if (!parsed.success) throw invalid(parsed.error.issues, texts, origins);
  refuseOpenServer(parsed.data);
  return { ...parsed.data, origins };
}

/** For `doctor` and the log: every setting, its value as text and its origin. Keys are counted, never shown. */
export function describeConfig(config: ServerConfig): { name: SettingName; value: string; origin: string }[] {
  return (Object.keys(SETTINGS) as SettingName[]).map((name) => {
    const value = name === "apiKeys" ? `${config.apiKeys.length} keys` : String(config[name] ?? "none");
    return { name, value, origin: config.origins[name] };
  });
}

export function isLoopback(host: string): boolean {
  if (host === "localhost" || host === "::1" || host === "[::1]") return true;
  return isIPv4(host) && host.startsWith("127.");
}

function defaultTexts(env: ConfigSources["env"], homeDirectory: string): Partial<Record<SettingName, string>> {
  return {
    host: "127.0.0.1",
    port: "8080",
    backend: "gvisor",
    platform: "auto",
    image: "host",
    allowNetwork: "false",
    dataDirectory: join(baseDirectory(env["XDG_DATA_HOME"], join(homeDirectory, ".local", "share")), "sandboxer"),
    cacheDirectory: join(baseDirectory(env["XDG_CACHE_HOME"], join(homeDirectory, ".cache")), "sandboxer"),
    leaseTtlMs: "15s",
    handoffTimeoutMs: "30s",
    defaultIdleTimeoutSeconds: "5m",
    keepCheckpoints: "3",
    maxSandboxes: "100",
    maxClients: "1000",
    maxMessageBytes: "1048576",
    rateLimit: "1000",
    apiKeys: "",
    logLevel: "info",
    searchPath: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
  };
}

/** The XDG specification wants relative values to be ignored. */
function baseDirectory(fromEnvironment: string | undefined, fallback: string): string {
  return fromEnvironment !== undefined && isAbsolute(fromEnvironment) ? fromEnvironment : fallback;
}

function refuseOpenServer(values: ConfigValues): void {
  if (isLoopback(values.host) || values.apiKeys.length > 0) return;
  throw new SandboxerError("bad_request", `Listening on ${values.host} without keys would let anyone run code here.`, {
    hint: `Set ${SETTINGS.apiKeys.environment} to one or more keys, or listen on 127.0.0.1.`,
  });
}

function invalid(
  issues: readonly { readonly path: readonly PropertyKey[]; readonly message: string }[],
  texts: Partial<Record<SettingName, string>>,
  origins: Record<SettingName, string>,
): SandboxerError {
  const problems = issues.map((issue) => {
    const name = issue.path[0] as SettingName;
    const shown = name === "apiKeys" ? "" : ` "${texts[name] ?? ""}"`;
    return `${origins[name]}:${shown} ${issue.message}`;
  });
  return new SandboxerError("bad_request", problems.join("; "), { hint: "Run `sandboxer serve --help`." });
}
