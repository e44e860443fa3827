import { SandboxerError } from "@sandboxer/protocol";
import { join } from "node:path";
import { isIPv4 } from "node:net";
import { defaultTexts } from "./config-defaults.ts";
import { readConfigFile, type ConfigFile } from "./config-file.ts";
import { keyFilePath } from "../gateway/access/key-file.ts";
import { readKeyFile } from "../gateway/access/key-records.ts";
import { configSchema, type ConfigValues } from "./config-schema.ts";
import { flagName, SETTING_NAMES, SETTINGS, variablesOf } from "./config-settings.ts";
import type { ConfigLayer, ConfigSources, ServerConfig, SettingName } from "./config-settings.ts";

export { describeConfig, describeSecrets, type DescribedSetting } from "./config-description.ts";
export {
  SETTINGS,
  type ConfigFlags,
  type ConfigLayer,
  type ConfigSources,
  type ServerConfig,
  type Setting,
  type SettingName,
} from "./config-settings.ts";
export type { ConfigValues } from "./config-schema.ts";

export function parseConfig(sources: ConfigSources): ServerConfig {
  const file = readConfigFile(sources);
  const defaults = defaultTexts(sources);
  const layers = {} as Record<SettingName, readonly ConfigLayer[]>;
  for (const name of SETTING_NAMES) layers[name] = layersOf(name, sources, file, defaults[name]);
  if (layers.store.length === 0 && sources.flags.defaultStore === true) {
    const text = join(layers.dataDirectory[0]?.text ?? "", "store");
    layers.store = [{ origin: "flag --default-store", text }];
  }

  const texts = Object.fromEntries(SETTING_NAMES.map((name) => [name, layers[name][0]?.text]));
  // Used once: compiling the schema would take longer than checking with it.
  const parsed = configSchema.safeParse(texts, { jitless: true });
  if (!parsed.success) throw invalid(parsed.error.issues, layers);
  if (sources.serving !== false) refuseOpenServer(parsed.data);
  const origins = Object.fromEntries(SETTING_NAMES.map((name) => [name, layers[name][0]?.origin ?? "default"]));
  return {
    ...parsed.data,
    origins: origins as ServerConfig["origins"],
    layers: withoutSecrets(layers),
    configFile: file?.path,
    secrets: file?.secrets ?? {},
  };
}

function layersOf(
  name: SettingName,
  { flags, env }: ConfigSources,
  file: ConfigFile | undefined,
  defaultText: string | undefined,
): readonly ConfigLayer[] {
  const layers: ConfigLayer[] = [];
  const flag = flags[name];
  if (flag !== undefined) layers.push({ origin: `flag ${flagName(name) ?? name}`, text: flag });
  for (const variable of variablesOf(name)) {
    const text = env[variable];
    // Shells and container files use an empty variable for "not set".
    if (text) layers.push({ origin: `environment ${variable}`, text });
  }
  const inFile = file?.values.get(name);
  if (inFile !== undefined) layers.push(inFile);
  if (defaultText !== undefined) layers.push({ origin: "default", text: defaultText });
  return layers;
}

function withoutSecrets(layers: ServerConfig["layers"]): ServerConfig["layers"] {
  const hidden = SETTING_NAMES.filter((name) => SETTINGS[name].secret === true);
  const cleared = hidden.map((name) => [name, layers[name].map(({ origin }) => ({ origin, text: "" }))]);
  return { ...layers, ...(Object.fromEntries(cleared) as Partial<ServerConfig["layers"]>) };
}

export function isLoopback(host: string): boolean {
  if (host === "localhost" || host === "::1" || host === "[::1]") return true;
  return isIPv4(host) && host.startsWith("127.");
}

/** Revoked and expired keys count too: once there were keys, nobody gets in without one. */
function hasStoredKeys(dataDirectory: string): boolean {
  return readKeyFile(keyFilePath(dataDirectory)).keys.length > 0;
}

function refuseOpenServer(values: ConfigValues): void {
  if (isLoopback(values.host) || values.apiKeys.length > 0 || hasStoredKeys(values.dataDirectory)) return;
  throw new SandboxerError(
    "bad_request",
    `Listening on ${values.host} without keys would let anyone run code on this machine.`,
    {
      hint: `Create a key with \`sandboxer keys create\`, set ${SETTINGS.apiKeys.environment}, or listen on 127.0.0.1.`,
    },
  );
}

function invalid(
  issues: readonly { readonly path: readonly PropertyKey[]; readonly message: string }[],
  layers: ServerConfig["layers"],
): SandboxerError {
  const problems = issues.map((issue) => {
    const name = issue.path[0] as SettingName;
    const { origin = "default", text = "" } = layers[name][0] ?? {};
    const shown = SETTINGS[name].secret === true ? "" : ` "${text}"`;
    return `${origin}:${shown} ${issue.message}`;
  });
  return new SandboxerError("bad_request", problems.join("; "), { hint: "Run `sandboxer serve --help`." });
}
