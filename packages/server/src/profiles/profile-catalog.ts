import { SandboxerError, type Profile } from "@sandboxer/protocol";
import { didYouMean } from "../support/nearest-name.ts";

/** A profile and where it comes from. */
export interface ProfileEntry {
  readonly profile: Profile;
  readonly file: string;
  /** It came with sandboxer. */
  readonly bundled: boolean;
  /** The file whose profile of the same name this one replaces. */
  readonly overrides: string | undefined;
}

/** The profiles that sandboxes can be made with, by name. */
export class ProfileCatalog {
  readonly #entries: ReadonlyMap<string, ProfileEntry>;

  constructor(entries: Iterable<ProfileEntry>) {
    const byName = [...entries].toSorted((first, second) => (first.profile.name < second.profile.name ? -1 : 1));
    this.#entries = new Map(byName.map((entry) => [entry.profile.name, entry]));
  }

  list(): readonly Profile[] {
    return this.entries().map(({ profile }) => profile);
  }

  /** `profile_not_found` names the one that was probably meant; it is never taken by guess. */
  get(name: string): Profile {
    return this.entry(name).profile;
  }

  /** For profiles that records name: they may be gone by now. */
  find(name: string): Profile | undefined {
    return this.#entries.get(name)?.profile;
  }

  entries(): readonly ProfileEntry[] {
    return [...this.#entries.values()];
  }

  entry(name: string): ProfileEntry {
    const entry = this.#entries.get(name);
    if (entry !== undefined) return entry;
    const shown = JSON.stringify(name.slice(0, 128));
    throw new SandboxerError(
      "profile_not_found",
      `There is no profile ${shown}.${didYouMean(name, this.#entries.keys())}`,
      { details: { profiles: [...this.#entries.keys()] } },
    );
  }
}
