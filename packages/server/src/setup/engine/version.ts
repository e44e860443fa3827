/** Older versions lose state: no safe save of a running sandbox, no established TCP connections, other image format. */
export const OLDEST_ENGINE_DATE = "20240101";

/** Tested: Debian's package and the official release of the same day. */
export const PINNED_ENGINE_VERSION = "20240729.0";

/** Tested: the newest that the Go module proxy has. */
export const NEWEST_ENGINE_VERSION = "0.0.0-20260701204157-69c2d17aea96";

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
  const date = /(?:^|[^0-9])(20[0-9]{6})(?:[0-9]{6})?(?:[^0-9]|$)/.exec(name)?.[1];
  return { name, date };
}

export function isNewEnough(version: EngineVersion): boolean {
  return version.date !== undefined && version.date >= OLDEST_ENGINE_DATE;
}
