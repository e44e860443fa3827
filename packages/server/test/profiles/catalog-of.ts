import { profileSchema } from "@sandboxer/protocol";
import { ProfileCatalog } from "../../src/profiles/profile-catalog.ts";

export function catalogOf(...profiles: object[]): ProfileCatalog {
  const entries = profiles.map((profile) => profileSchema.parse(profile));
  return new ProfileCatalog(
    entries.map((profile) => ({ profile, file: "test", bundled: false, overrides: undefined })),
  );
}
