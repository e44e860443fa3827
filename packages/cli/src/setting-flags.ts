import { Option, type Command } from "commander";
import { SETTINGS, type ConfigFlags, type Setting, type SettingName } from "@sandboxer/server/config";

/** Declares the flags of some settings, and reads them back under the settings' names. */
export function addSettingFlags(command: Command, names: readonly SettingName[]): Command {
  for (const name of names) {
    const { flag, otherFlag, environment, description }: Setting = SETTINGS[name];
    if (flag !== undefined) command.addOption(new Option(flag, `${description} [$${environment}]`));
    if (otherFlag !== undefined) command.addOption(new Option(otherFlag).hideHelp());
  }
  return command.option(
    "--config <PATH>",
    "settings file, YAML or TOML (docs/reference/configuration.md) [$SANDBOXER_CONFIG]",
  );
}

export function readSettingFlags(options: Readonly<Record<string, unknown>>): ConfigFlags {
  const flags: Partial<Record<SettingName, string>> = {};
  for (const name of Object.keys(SETTINGS) as SettingName[]) {
    const { flag, otherFlag }: Setting = SETTINGS[name];
    if (flag === undefined) continue;
    const option = new Option(flag);
    const other = otherFlag === undefined ? undefined : options[new Option(otherFlag).attributeName()];
    const value = options[option.attributeName()] ?? other;
    if (option.negate) {
      // Without the flag it is true, which means nothing.
      if (value === false) flags[name] = "off";
    } else if (typeof value === "string") flags[name] = value;
    // A flag without a value.
    else if (value === true) flags[name] = "true";
  }
  const config = options["config"];
  return {
    ...flags,
    ...(typeof config === "string" ? { config } : {}),
    defaultStore: options["defaultStore"] === true,
  };
}

export const ALL_SETTINGS = Object.keys(SETTINGS) as SettingName[];
