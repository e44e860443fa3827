/** Older versions lose state: no safe save of a running sandbox, no established TCP connections, other image format. */
export const OLDEST_ENGINE_DATE = "20240101";

/** Tested: Debian's package and the official release of the same day. */
export const PINNED_ENGINE_VERSION = "20240729.0";

/** Tested: the newest that the Go module proxy has. */
export const NEWEST_ENGINE_VERSION = "0.0.0-20260701204157-69c2d17aea96";

/** The last official release before those sources. Only the self-test has seen it: we never had its bytes. */
export const OFFICIAL_ENGINE_VERSION = "20260622.0";

export interface EngineVersion {
  /** As a name of one build: `20240729.0`, `0.0.0-20260701204157-69c2d17aea96`. */
  readonly name: string;
  /** YYYYMMDD, by which versions are ordered. Undefined for a build without a version. */
  readonly date: string | undefined;
}

/** Parses the output of `runsc --version`. Undefined if it is not runsc's. */
export function parseEngineVersion(output: string): EngineVersion | undefined {
  const text = /^runsc version\s+(\S.*)$/m.exec(output)?.[1]?.trim();
  if (text === undefined) return undefined;
  const name = text.replace(/^release-/, "").replace(/^0\.0~/, "");
  return { name, date: engineDate(name) };
}

/** YYYYMMDD; undefined for a name without a date. */
export function engineDate(name: string): string | undefined {
  return /(?:^|[^0-9])(20[0-9]{6})(?:[0-9]{6})?(?:[^0-9]|$)/.exec(name)?.[1];
}

/**
 * The order in which engines become the default: the official release and the build that belong to this version of
 * sandboxer, then the newest.
 */
export function byPreference(left: string, right: string): number {
  return preference(right).localeCompare(preference(left));
}

function preference(name: string): string {
  if (name === OFFICIAL_ENGINE_VERSION) return "C";
  return name === NEWEST_ENGINE_VERSION ? "B" : `A${engineDate(name) ?? ""}`;
}

/** Whether a newer engine was tested with this version of sandboxer. */
export function isOutdated(name: string): boolean {
  return (engineDate(name) ?? "") < engineDate(OFFICIAL_ENGINE_VERSION)!;
}

/** The missing features of an engine of 2024; undefined: none. */
export function lacks(name: string): string | undefined {
  if ((engineDate(name) ?? "") >= "20250101") return undefined;
  return `runsc ${name} has no network namespaces for sandboxes, and an idle sandbox with a program in it costs 2 to 5 % of a core`;
}

export function isNewEnough(version: EngineVersion): boolean {
  return version.date !== undefined && version.date >= OLDEST_ENGINE_DATE;
}
