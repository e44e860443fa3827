import { describeSource } from "../secrets/secret-definition.ts";
import { fileKey, flagName, SETTING_NAMES, SETTINGS, variablesOf } from "./config-settings.ts";
import type { ConfigLayer, ServerConfig, Setting, SettingName } from "./config-settings.ts";

/** A setting in a form for people and programs. */
export interface DescribedSetting {
  readonly name: SettingName;
  /** The key in the config file; for settings that are not in it, the variable. */
  readonly key: string;
  readonly flag: string | undefined;
  readonly environment: readonly string[];
  /** As text; undefined if there is none. API keys are counted, never shown. */
  readonly value: string | undefined;
  readonly origin: string;
  /** The overridden values, strongest first. */
  readonly overridden: readonly ConfigLayer[];
}

/** Every setting with its value as text, its origin and the overridden values. Secrets are never included. */
export function describeConfig(config: ServerConfig): DescribedSetting[] {
  return SETTING_NAMES.map((name) => ({
    name,
    key: fileKey(name) ?? SETTINGS[name].environment,
    flag: flagName(name),
    environment: variablesOf(name),
    value: valueOf(name, config),
    origin: config.origins[name],
    overridden: config.layers[name].slice(1).filter(({ text }) => text !== ""),
  }));
}

/** The secrets of the config file: names and sources. */
export function describeSecrets({ secrets }: ServerConfig): { name: string; source: string }[] {
  return Object.entries(secrets).map(([name, definition]) => ({ name, source: describeSource(definition) }));
}

function valueOf(name: SettingName, config: ServerConfig): string | undefined {
  const { secret, path }: Setting = SETTINGS[name];
  if (name === "apiKeys") return `${config.apiKeys.length} keys`;
  const value = config[name];
  if (value === undefined) return undefined;
  if (secret === true) return "set";
  // A duration is shown as it was written, and a path resolved.
  return path === true ? String(value) : config.layers[name][0]?.text;
}
