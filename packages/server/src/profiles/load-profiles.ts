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

/** Reads every profile. If one is invalid, throws an error with all problems and their lines. */
export async function loadProfiles({ directories }: LoadOptions): Promise<ProfileCatalog> {
  const entries = new Map<string, ProfileEntry>();
  const problems: Problem[] = [];
  for (const directory of [BUNDLED_DIRECTORY, ...directories]) {
    for (const read of await readProfiles(directory)) {
      problems.push(...read.problems);
      if (read.profile === undefined) continue;
      const { name } = read.profile;
      const overrides = entries.get(name)?.file;
      entries.set(name, {
        profile: read.profile,
        file: read.file,
        bundled: directory === BUNDLED_DIRECTORY,
        overrides,
      });
    }
  }
  if (problems.length > 0) throw wrongProfiles(problems);
  return new ProfileCatalog(entries.values());
}

/** Every profile file of one folder, valid or not. A missing folder has none. */
export async function readProfiles(directory: string): Promise<readonly ReadProfile[]> {
  let names: string[];
  try {
    names = await readdir(directory);
  } catch (error) {
    if (isErrno(error) && error.code === "ENOENT") return [];
    const message = isErrno(error) && error.code === "ENOTDIR" ? "is not a folder." : (error as Error).message;
    return [{ file: directory, profile: undefined, problems: [{ file: directory, message }] }];
  }
  const files = names.filter((name) => /^[^.].*\.ya?ml$/.test(name)).toSorted();
  return withDuplicates(files.map((name) => readProfile(join(directory, name))));
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
