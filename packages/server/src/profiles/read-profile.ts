import { profileSchema, type Profile } from "@sandboxer/protocol";
import { checkDocument, type Checked } from "../support/source-file/check-document.ts";
import { readSourceFile } from "../support/source-file/read-source-file.ts";
import type { Problem } from "../support/source-file/source-document.ts";

export interface ReadProfile {
  readonly file: string;
  readonly profile: Profile | undefined;
  readonly problems: readonly Problem[];
}

/** Never throws: problems of the file are part of the result. */
export function readProfile(file: string): ReadProfile {
  const checked: Checked<Profile> = checkDocument(readSourceFile(file), profileSchema);
  return { file, profile: checked.value, problems: checked.problems };
}

/** Finds duplicate names in files that were read separately. */
export function withDuplicates(profiles: readonly ReadProfile[]): ReadProfile[] {
  const firstFile = new Map<string, string>();
  return profiles.map((read) => {
    const name = read.profile?.name;
    const other = name === undefined ? undefined : firstFile.get(name);
    if (name !== undefined && other === undefined) firstFile.set(name, read.file);
    if (name === undefined || other === undefined) return read;
    const problem = { file: read.file, message: `${name} is also the name of the profile in ${other}.` };
    return { ...read, profile: undefined, problems: [problem] };
  });
}
