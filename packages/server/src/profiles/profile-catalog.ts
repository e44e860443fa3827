import { SandboxerError, type Profile } from "@sandboxer/protocol";
import { didYouMean } from "../support/nearest-name.ts";

/** A profile and its file. */
export interface ProfileEntry {
  readonly profile: Profile;
  readonly file: string;
  /** Bundled with sandboxer. */
  readonly bundled: boolean;
  /** The file whose profile of the same name this one replaces. */
  readonly overrides: string | undefined;
}

/** The available profiles, by name. The given entries are not iterated before a profile is first asked for. */
export class ProfileCatalog {
  readonly #given: Iterable<ProfileEntry>;
  #known: ReadonlyMap<string, ProfileEntry> | undefined;

  constructor(entries: Iterable<ProfileEntry>) {
    this.#given = entries;
  }

  get #entries(): ReadonlyMap<string, ProfileEntry> {
    if (this.#known !== undefined) return this.#known;
    const byName = [...this.#given].toSorted((first, second) => (first.profile.name < second.profile.name ? -1 : 1));
    return (this.#known = new Map(byName.map((entry) => [entry.profile.name, entry])));
  }

  list(): readonly Profile[] {
    return this.entries().map(({ profile }) => profile);
  }

  /** `profile_not_found` suggests the name that was probably meant, without using it. */
  get(name: string): Profile {
    return this.entry(name).profile;
  }

  /** For profiles in records: they may no longer exist. */
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
