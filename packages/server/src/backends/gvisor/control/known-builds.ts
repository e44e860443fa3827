/** The messages of one build of runsc that differ from the others'. */
export interface Dialect {
  /** The method that returns once a restore has loaded everything. Absent: the command `state` is asked repeatedly. */
  readonly waitForRestore?: string;
}

/**
 * The builds whose control sockets are used. The messages are runsc's own affair, and may change with any build: a
 * build is added here after its sources were read and the gVisor suite has passed on it.
 */
const KNOWN_BUILDS: Readonly<Record<string, Dialect>> = {
  "20240729.0": {},
  "0.0.0-20260701204157-69c2d17aea96": { waitForRestore: "containerManager.WaitRestore" },
};

/** Undefined: this build is only driven by commands. */
export function dialectOf(version: string): Dialect | undefined {
  return Object.hasOwn(KNOWN_BUILDS, version) ? KNOWN_BUILDS[version] : undefined;
}
