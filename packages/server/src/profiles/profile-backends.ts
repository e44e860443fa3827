import { SandboxerError, type Profile } from "@sandboxer/protocol";
import { didYouMean } from "../support/nearest-name.ts";

/** The bundled extensions and their backends. */
const BUILT_IN_EXTENSIONS: ReadonlyMap<string, string> = new Map([
  ["ext.compose-ssh", "compose-ssh"],
  ["ext.saas-stub", "saas-stub"],
]);

/** Bundled extensions have two names: `ext.compose-ssh` and `compose-ssh`. */
export function backendNamed(name: string): string {
  return BUILT_IN_EXTENSIONS.get(name) ?? name;
}

/** Another extension keeps its name (`ext.mine`). */
export function backendsOf(profile: Profile): readonly string[] {
  const { extension, backends } = profile;
  if (extension !== undefined) return [backendNamed(extension)];
  return (backends ?? []).map(backendNamed);
}

/** A request may choose between the profile's backends; on another one its placement and setup would be meaningless. */
export function requestedBackend(profile: Profile, requested: string | undefined): string | undefined {
  if (requested === undefined) return undefined;
  const possible = backendsOf(profile);
  const found = possible.find((name) => name === backendNamed(requested));
  if (found !== undefined) return found;
  throw new SandboxerError(
    "not_supported",
    `${profile.name} does not support the backend "${requested}", only ${possible.join(", ")}.${didYouMean(requested, possible)}`,
    { hint: "Omit the backend, or use a profile that lists it.", details: { backends: possible } },
  );
}
