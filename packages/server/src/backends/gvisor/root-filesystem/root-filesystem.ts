/**
 * The root filesystem of a sandbox. It is never written to: each sandbox has its own writable layer above it.
 *
 * An image contains no copy of it, so the same content must exist at a restore; `identity` is compared.
 */
export interface RootFilesystem {
  /**
   * As the user named it: `host`, `dir:…`, `tar:…`, `docker:…`, `oci:…`. For an image from a registry its pinned name,
   * `registry/name@sha256:…`, by which another server finds the same content.
   */
  readonly image: string;
  readonly path: string;
  readonly mounts: readonly { readonly source: string; readonly destination: string }[];
  readonly identity: RootFilesystemIdentity;
  /** The defaults for programs from the image's config; absent: it has no config. */
  readonly defaults?: RootFilesystemDefaults;
  /** Call it when nothing uses the files any more: until then they are not removed. Idempotent. */
  readonly release?: () => void;
}

export interface RootFilesystemDefaults {
  readonly env: Readonly<Record<string, string>>;
  /** A name or a number, with an optional group after a colon. */
  readonly user?: string | undefined;
  readonly workingFolder?: string | undefined;
  readonly entrypoint?: readonly string[] | undefined;
  readonly command?: readonly string[] | undefined;
}

export interface RootFilesystemIdentity {
  readonly kind: string;
  readonly digest: string;
  /** The compared facts, in a form that lets an error name the difference. */
  readonly parts: Readonly<Record<string, string>>;
}

/** The first differences between two identities, for people; empty if they are equal. */
export function identityDifferences(wanted: RootFilesystemIdentity, found: RootFilesystemIdentity): string[] {
  if (wanted.digest === found.digest) return [];
  if (wanted.kind !== found.kind)
    return [`the image was saved with a root filesystem of kind ${wanted.kind}, this server has ${found.kind}`];
  const names = new Set([...Object.keys(wanted.parts), ...Object.keys(found.parts)]);
  const different = [...names].filter((name) => wanted.parts[name] !== found.parts[name]).toSorted();
  const lines = different
    .slice(0, 5)
    .map(
      (name) =>
        `${name} was ${wanted.parts[name] ?? "missing"}, on this server it is ${found.parts[name] ?? "missing"}`,
    );
  return lines.length > 0 ? lines : [`its digest was ${wanted.digest}, on this server it is ${found.digest}`];
}
