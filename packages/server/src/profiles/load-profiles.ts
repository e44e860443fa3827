import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { isErrno, SandboxerError } from "@sandboxer/protocol";
import { shippedFolder } from "../support/shipped-folder.ts";
import { formatProblem, type Problem } from "../support/source-file/source-document.ts";
import { ProfileCatalog, type ProfileEntry } from "./profile-catalog.ts";
import { readProfile, withDuplicates, type ReadProfile } from "./read-profile.ts";

const BUNDLED_DIRECTORY = shippedFolder("profiles");

export interface LoadOptions {
  /** Folders of `*.yaml` files; a profile replaces one of the same name in an earlier folder, and a bundled one. */
  readonly directories: readonly string[];
}

/**
 * Reads the profiles of the folders. If one is invalid, throws an error with all problems and their lines. The bundled
 * profiles are known to be valid, and are read when a profile is first asked for: most servers start faster without.
 */
export async function loadProfiles({ directories }: LoadOptions): Promise<ProfileCatalog> {
  const bundled = await profileFiles(BUNDLED_DIRECTORY);
  const own = (await Promise.all(directories.map(readProfiles))).flat();
  const problems = own.flatMap((read) => read.problems);
  if (problems.length > 0) throw wrongProfiles(problems);
  return new ProfileCatalog(entriesOf(bundled, own));
}

function* entriesOf(bundled: readonly string[], own: readonly ReadProfile[]): Generator<ProfileEntry> {
  const entries = new Map<string, ProfileEntry>();
  for (const { file, profile, problems } of [...bundled.map(readProfile), ...own]) {
    if (profile === undefined) throw wrongProfiles(problems);
    const overrides = entries.get(profile.name)?.file;
    entries.set(profile.name, { profile, file, bundled: bundled.includes(file), overrides });
  }
  yield* entries.values();
}

/** Every profile file of one folder, valid or not. A missing folder has none. */
export async function readProfiles(directory: string): Promise<readonly ReadProfile[]> {
  try {
    return withDuplicates((await profileFiles(directory)).map(readProfile));
  } catch (error) {
    if (isErrno(error) && error.code === "ENOENT") return [];
    const message = isErrno(error) && error.code === "ENOTDIR" ? "is not a folder." : (error as Error).message;
    return [{ file: directory, profile: undefined, problems: [{ file: directory, message }] }];
  }
}

async function profileFiles(directory: string): Promise<readonly string[]> {
  const names = (await readdir(directory)).filter((name) => /^[^.].*\.ya?ml$/.test(name));
  return names.toSorted().map((name) => join(directory, name));
}

function wrongProfiles(problems: readonly Problem[]): SandboxerError {
  return new SandboxerError(
    "bad_request",
    ["Some profiles are not valid:", ...problems.map(formatProblem)].join("\n  "),
    {
      hint: "Correct them, then run `sandboxer profiles check`. docs/reference/profiles.md lists every key.",
      details: { problems },
    },
  );
}
