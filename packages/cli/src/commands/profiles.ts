import { statSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import { Command } from "commander";
import { ERRORS } from "@sandboxer/protocol";
import { parseConfig, type ServerConfig } from "@sandboxer/server/config";
import type { ReadProfile } from "@sandboxer/server/profiles";
import { withExamples, type Examples } from "../define-command.ts";
import type { Io } from "../io.ts";
import { checkJson, formatCheck, formatProfiles, profileJson, type ProfileCheck } from "../output/profiles.ts";
import { addSettingFlags, readSettingFlags } from "../setting-flags.ts";

const EXAMPLES = {
  list: [
    "sandboxer profiles list",
    "sandboxer profiles list --profiles-directory ./profiles",
    "sandboxer profiles list --json | jq -r '.profiles[].name'",
  ],
  get: [
    "sandboxer profiles get profile.gvisor-default",
    "sandboxer profiles get profile.compose-e2e > ~/.config/sandboxer/profiles/mine.yaml",
    "sandboxer profiles get profile.gvisor-default --json | jq -r .source.file",
  ],
  check: [
    "sandboxer profiles check",
    "sandboxer profiles check mine.yaml",
    "sandboxer profiles check ./profiles --json | jq -r '.files[].problems[].message'",
  ],
} as const satisfies Readonly<Record<string, Examples>>;

type Options = Readonly<Record<string, unknown>>;

/** Works on the folders of this machine, as a server that is started here would; needs no server. */
export function profilesCommand(io: Io, setExitCode: (code: number) => void): Command {
  const { list, get, check } = EXAMPLES;
  const profiles = withExamples(new Command(), [list[0], get[1], check[1]]);
  const commands: readonly [Command, Examples][] = [
    [listCommand(io), list],
    [getCommand(io), get],
    [checkCommand(io, setExitCode), check],
  ];
  for (const [command, examples] of commands) {
    withExamples(command.option("--json", "print JSON"), examples);
    profiles.addCommand(addSettingFlags(command, ["profilesDirectory"]));
  }
  return profiles;
}

function listCommand(io: Io): Command {
  return new Command("list")
    .alias("ls")
    .description("List all profiles: built-in ones and yours.")
    .action(async (options: Options) => {
      const { openProfiles } = await import("@sandboxer/server/profiles");
      const entries = (await openProfiles(readConfig(io, options))).entries();
      if (options["json"] === true) io.stdout(`${JSON.stringify({ profiles: entries.map(profileJson) })}\n`);
      else io.stdout(formatProfiles(entries));
    });
}

function getCommand(io: Io): Command {
  return new Command("get")
    .description("Print the file of a profile.")
    .argument("<name>", "full name, such as profile.gvisor-default")
    .action(async (name: string, options: Options) => {
      const { openProfiles } = await import("@sandboxer/server/profiles");
      const entry = (await openProfiles(readConfig(io, options))).entry(name);
      if (options["json"] === true) io.stdout(`${JSON.stringify(profileJson(entry))}\n`);
      else {
        io.stderr(`From ${entry.file}${entry.overrides === undefined ? "" : `, in place of ${entry.overrides}`}\n`);
        io.stdout(await readFile(entry.file, "utf8"));
      }
    });
}

function checkCommand(io: Io, setExitCode: (code: number) => void): Command {
  return new Command("check")
    .description("Check profiles and list all errors with file, line and column.")
    .argument("[file...]", "profile files or folders (default: your profiles folder)")
    .action(async (files: readonly string[], options: Options) => {
      const config = readConfig(io, options);
      const checks = (await readAll(io, config, files)).map((read) => withWarnings(read, config));
      const ok = checks.every(({ problems }) => problems.length === 0);
      if (options["json"] === true) io.stdout(`${JSON.stringify({ ok, files: checks.map(checkJson) })}\n`);
      else {
        io.stdout(formatCheck(checks));
        io.stderr(summary(checks, config, files));
      }
      if (!ok) setExitCode(ERRORS.bad_request.exitCode);
    });
}

async function readAll(io: Io, config: ServerConfig, files: readonly string[]): Promise<readonly ReadProfile[]> {
  const { readProfile, readProfiles, requireProfilesDirectory, withDuplicates } =
    await import("@sandboxer/server/profiles");
  if (files.length === 0) {
    requireProfilesDirectory(config);
    return await readProfiles(config.profilesDirectory);
  }
  const reads = files.map(async (file) => {
    const path = resolve(io.workingDirectory, file);
    const isFolder = statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
    return isFolder ? await readProfiles(path) : [readProfile(path)];
  });
  return withDuplicates((await Promise.all(reads)).flat());
}

/** A secret that is not defined here may be defined where the profile is used, so it is not an error. */
function withWarnings(read: ReadProfile, { secrets }: ServerConfig): ProfileCheck {
  const warnings = Object.entries(read.profile?.secret_refs ?? {})
    .filter(([, name]) => !Object.hasOwn(secrets, name))
    .map(([variable, name]) => `secret_refs.${variable}: the config file on this machine has no secret ${name}.`);
  return { ...read, warnings };
}

function summary(
  checks: readonly ProfileCheck[],
  { profilesDirectory }: ServerConfig,
  files: readonly string[],
): string {
  if (checks.length === 0) {
    return `No profiles found in ${files.length === 0 ? profilesDirectory : files.join(", ")}.\n`;
  }
  const wrong = checks.filter(({ problems }) => problems.length > 0).length;
  return wrong === 0 ? `${checks.length} checked, no errors.\n` : `${wrong} of ${checks.length} have errors.\n`;
}

function readConfig(io: Io, options: Options): ServerConfig {
  const flags = readSettingFlags(options);
  return parseConfig({ flags, env: io.env, homeDirectory: io.homeDirectory, serving: false });
}
