import { Command } from "commander";
import { describeConfig, describeSecrets, parseConfig, type ServerConfig } from "@sandboxer/server/config";
import { withExamples } from "../define-command.ts";
import type { Io } from "../io.ts";
import { formatTable } from "../output/table.ts";
import { addSettingFlags, ALL_SETTINGS, readSettingFlags } from "../setting-flags.ts";

/** The settings of a server that is started here, now and with these flags. */
export function configCommand(io: Io): Command {
  const command = withExamples(new Command(), [
    "sandboxer config",
    "sandboxer config --explain",
    "sandboxer config --json --config ./sandboxer.toml",
  ])
    .option("--explain", "also show where each value comes from and what it overrides")
    .option("--default-store", "store checkpoints in the data directory by default, as `npm start` does")
    .option("--json", "print JSON");
  return addSettingFlags(command, ALL_SETTINGS).action((options: Record<string, unknown>) => {
    const flags = readSettingFlags(options);
    const config = parseConfig({ flags, env: io.env, homeDirectory: io.homeDirectory, serving: false });
    const explain = options["explain"] === true;
    if (options["json"] === true) {
      io.stdout(`${JSON.stringify(explain ? explained(config) : plain(config))}\n`);
      return;
    }
    io.stderr(`${config.configFile === undefined ? "No config file found." : `Config file ${config.configFile}`}\n`);
    io.stdout(explain ? formatExplained(config) : formatPlain(config));
  });
}

function plain(config: ServerConfig): object {
  return {
    config_file: config.configFile ?? null,
    settings: Object.fromEntries(describeConfig(config).map(({ key, value }) => [key, value ?? null])),
    secrets: describeSecrets(config).map(({ name }) => name),
  };
}

function explained(config: ServerConfig): object {
  const settings = describeConfig(config).map(({ key, value, origin, flag, environment, overridden }) => [
    key,
    {
      value: value ?? null,
      origin,
      overridden: overridden.map((layer) => ({ value: layer.text, origin: layer.origin })),
      flag: flag ?? null,
      environment,
    },
  ]);
  return {
    config_file: config.configFile ?? null,
    settings: Object.fromEntries(settings) as object,
    secrets: Object.fromEntries(describeSecrets(config).map(({ name, source }) => [name, { source }])),
  };
}

function formatPlain(config: ServerConfig): string {
  const settings = describeConfig(config).map(({ key, value }) => [key, value ?? "none"]);
  return formatTable([...settings, ...describeSecrets(config).map(({ name }) => [`secrets.${name}`, "not shown"])]);
}

/** Values come last, since some are long. */
function formatExplained(config: ServerConfig): string {
  const settings = describeConfig(config).flatMap(({ key, value, origin, overridden }) => [
    [key, origin, value ?? "none"],
    ...overridden.map((layer) => ["", `  overrides ${layer.origin}`, `  ${layer.text}`]),
  ]);
  const secrets = describeSecrets(config).map(({ name, source }) => [`secrets.${name}`, source, "not shown"]);
  return formatTable([...settings, ...secrets]);
}
