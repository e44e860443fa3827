import { existsSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { SandboxerError } from "@sandboxer/protocol";
import { z } from "zod";
import { secretDefinitionsSchema, type SecretDefinitions } from "../secrets/secret-definition.ts";
import { didYouMean } from "../support/nearest-name.ts";
import { checkDocument } from "../support/source-file/check-document.ts";
import { readSourceFile } from "../support/source-file/read-source-file.ts";
import { formatProblem, problemAt, type Problem, type SourceDocument } from "../support/source-file/source-document.ts";
import { configDirectory } from "./config-defaults.ts";
import { type ConfigSources, fileKey, SETTING_NAMES, SETTINGS, type SettingName } from "./config-settings.ts";

export interface ConfigFile {
  readonly path: string;
  readonly values: ReadonlyMap<SettingName, FileValue>;
  readonly secrets: SecretDefinitions;
}

export interface FileValue {
  readonly text: string;
  /** `file /home/ada/.config/sandboxer/config.yaml:3`. */
  readonly origin: string;
}

const FILE_NAMES = ["config.yaml", "config.toml"];
/** The client's own settings; it reads them itself. */
const CLIENT_KEYS = ["contexts", "current_context"];
const KEYS = new Map(SETTING_NAMES.map((name) => [fileKey(name), name]));

/** The given file, or the one in the config folder, if there is one. */
export function readConfigFile(sources: ConfigSources): ConfigFile | undefined {
  const path = findConfigFile(sources);
  if (path === undefined) return undefined;
  const document = readSourceFile(path);
  const { values, problems } = readSettings(document, sources.homeDirectory);
  const secrets = readSecrets(document, sources.homeDirectory);
  const all = document.problems.length > 0 ? document.problems : [...problems, ...secrets.problems];
  if (all.length > 0) throw wrongFile(all);
  return { path, values, secrets: secrets.definitions };
}

function findConfigFile({ flags, env, homeDirectory }: ConfigSources): string | undefined {
  const named = flags.config ?? (env["SANDBOXER_CONFIG"] || undefined);
  if (named !== undefined) return resolve(named);
  const directory = configDirectory({ env, homeDirectory });
  const present = FILE_NAMES.map((name) => join(directory, name)).filter((path) => existsSync(path));
  if (present.length < 2) return present[0];
  throw new SandboxerError("bad_request", `There are two config files: ${present.join(" and ")}.`, {
    hint: "Keep one of them, or choose one with --config.",
  });
}

function readSettings(
  document: SourceDocument,
  homeDirectory: string,
): { values: Map<SettingName, FileValue>; problems: Problem[] } {
  const values = new Map<SettingName, FileValue>();
  const problems: Problem[] = [];
  const root = document.value ?? {};
  if (typeof root !== "object" || Array.isArray(root)) {
    return { values, problems: [problemAt(document, [], "must be a map of settings.")] };
  }
  for (const [key, value] of Object.entries(root)) {
    const canonical = key.replaceAll("-", "_");
    const name = KEYS.get(canonical);
    const complain = (message: string, part: "key" | "value"): void => {
      problems.push(problemAt(document, [key], `${key}: ${message}`, part));
    };
    if (canonical === "secrets" || CLIENT_KEYS.includes(canonical)) continue;
    if (name === undefined) {
      complain(unknownKey(canonical), "key");
      continue;
    }
    const text = typeof value === "string" ? value : document.textOf([key]);
    if (text === undefined) complain("must be a single value.", "value");
    else if (values.has(name)) complain("is given twice, with - and with _.", "key");
    else {
      const line = document.positionOf([key], "key")?.line ?? 1;
      const isPath = SETTINGS[name].path === true;
      values.set(name, {
        text: isPath ? absolutePath(text, document.file, homeDirectory) : text,
        origin: `file ${document.file}:${line}`,
      });
    }
  }
  return { values, problems };
}

function unknownKey(key: string): string {
  if (key === "api_keys") {
    return `API keys are not allowed in this file. Create them with \`sandboxer keys create\`, or set ${SETTINGS.apiKeys.environment}.`;
  }
  const known = [...KEYS.keys(), "secrets", ...CLIENT_KEYS].filter((name) => name !== undefined);
  return `there is no such setting.${didYouMean(key, known)}`;
}

function readSecrets(
  document: SourceDocument,
  homeDirectory: string,
): { definitions: SecretDefinitions; problems: readonly Problem[] } {
  const schema = z.looseObject({ secrets: secretDefinitionsSchema.optional() });
  if (typeof document.value !== "object" || document.value === null || Array.isArray(document.value)) {
    return { definitions: {}, problems: [] };
  }
  const { value, problems } = checkDocument(document, schema);
  const definitions = Object.entries(value?.secrets ?? {}).map(([name, definition]) => {
    const { file } = definition;
    return [name, file === undefined ? definition : { file: absolutePath(file, document.file, homeDirectory) }];
  });
  return { definitions: Object.fromEntries(definitions) as SecretDefinitions, problems };
}

/** Expands paths as a shell does for flags: a file does not move with the working folder. */
function absolutePath(text: string, file: string, homeDirectory: string): string {
  if (text === "" || /^[a-z][a-z0-9+.-]*:\/\//i.test(text)) return text;
  if (text === "~" || text.startsWith("~/")) return join(homeDirectory, text.slice(1));
  return resolve(dirname(file), text);
}

function wrongFile(problems: readonly Problem[]): SandboxerError {
  const lines = problems.map(formatProblem);
  const message = lines.length === 1 ? (lines[0] ?? "") : ["The config file is not valid:", ...lines].join("\n  ");
  return new SandboxerError("bad_request", message, {
    hint: "Correct the file; docs/reference/configuration.md lists every key.",
    details: { problems },
  });
}
