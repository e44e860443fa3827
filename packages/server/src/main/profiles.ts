import { existsSync } from "node:fs";
import { SandboxerError } from "@sandboxer/protocol";
import { loadProfiles } from "../profiles/load-profiles.ts";
import type { ProfileCatalog } from "../profiles/profile-catalog.ts";
import type { ServerConfig } from "./config.ts";

export { readProfiles } from "../profiles/load-profiles.ts";
export type { ProfileCatalog, ProfileEntry } from "../profiles/profile-catalog.ts";
export { readProfile, withDuplicates, type ReadProfile } from "../profiles/read-profile.ts";
export type { Problem } from "../support/source-file/source-document.ts";

/** The bundled profiles and the user's. Throws with all errors in them. */
export async function openProfiles(config: ServerConfig): Promise<ProfileCatalog> {
  requireProfilesDirectory(config);
  return await loadProfiles({ directories: [config.profilesDirectory] });
}

/** The default folder may be missing; a folder that was given must exist. */
export function requireProfilesDirectory({ profilesDirectory, origins }: ServerConfig): void {
  if (origins.profilesDirectory === "default" || existsSync(profilesDirectory)) return;
  throw new SandboxerError(
    "bad_request",
    `${origins.profilesDirectory}: the folder ${profilesDirectory} does not exist.`,
    {
      hint: "Create it, or give the folder that has your profiles.",
    },
  );
}
