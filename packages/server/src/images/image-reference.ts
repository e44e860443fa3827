import { SandboxerError } from "@sandboxer/protocol";

/** The name of an image in a registry, such as `docker.io/library/python:3.12-slim`. */
export interface ImageReference {
  /** `docker.io`, `registry.example:5000`. */
  readonly registry: string;
  readonly repository: string;
  /** Absent if only a digest is given. */
  readonly tag?: string;
  /** `sha256:…`; then the tag does not matter. */
  readonly digest?: string;
}

export const DOCKER_HUB = "docker.io";
const HUB_ALIASES = new Set(["docker.io", "index.docker.io", "registry-1.docker.io"]);

const HOST = /^(?:[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?|\[[0-9A-Fa-f:]+\])(?::[0-9]{1,5})?$/;
const REPOSITORY = /^[a-z0-9]+(?:(?:\.|_{1,2}|-+)[a-z0-9]+)*(?:\/[a-z0-9]+(?:(?:\.|_{1,2}|-+)[a-z0-9]+)*)*$/;
const TAG = /^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$/;
export const DIGEST = /^sha256:[0-9a-f]{64}$/;
const MAX_REPOSITORY_LENGTH = 255;

/**
 * `python`, `python:3.12`, `team/tool@sha256:…`, `registry.example:5000/team/tool:1`. As with other container tools, the
 * first part is a registry if it has a dot or a port, or is `localhost`.
 */
export function parseReference(text: string, defaultRegistry: string): ImageReference {
  const [, named = "", digest] = /^([^@]*)(?:@(.*))?$/s.exec(text) ?? [];
  if (digest !== undefined && !DIGEST.test(digest)) throw invalid(text, "the digest must be sha256: and 64 hex digits");
  const slash = named.indexOf("/");
  const first = named.slice(0, Math.max(0, slash));
  const hasHost = first.includes(".") || first.includes(":") || first === "localhost";
  const registry = hubName(hasHost ? first : defaultRegistry);
  if (!isRegistryHost(registry)) throw invalid(text, `${JSON.stringify(registry)} is not the address of a registry`);
  const rest = hasHost ? named.slice(slash + 1) : named;
  const [, path = "", tag] = /^([^:]*)(?::(.*))?$/s.exec(rest) ?? [];
  if (tag !== undefined && !TAG.test(tag)) throw invalid(text, `the tag ${JSON.stringify(tag)} is not valid`);
  if (!REPOSITORY.test(path) || path.length > MAX_REPOSITORY_LENGTH) {
    throw invalid(text, "the name must have small letters, digits, and single . _ - / between them");
  }
  const repository = registry === DOCKER_HUB && !path.includes("/") ? `library/${path}` : path;
  if (digest !== undefined) return { registry, repository, ...(tag === undefined ? {} : { tag }), digest };
  return { registry, repository, tag: tag ?? "latest" };
}

/** The full name with its tag; undefined: it has none. */
export function taggedName({ registry, repository, tag }: ImageReference): string | undefined {
  return tag === undefined ? undefined : `${registry}/${repository}:${tag}`;
}

/** The name that always means the same content. */
export function pinnedName({ registry, repository }: ImageReference, digest: string): string {
  return `${registry}/${repository}@${digest}`;
}

/** For messages. */
export function fullName(reference: ImageReference): string {
  const { digest } = reference;
  return digest === undefined ? (taggedName(reference) ?? "") : pinnedName(reference, digest);
}

export function isRegistryHost(text: string): boolean {
  return HOST.test(text);
}

export function hubName(registry: string): string {
  return HUB_ALIASES.has(registry) ? DOCKER_HUB : registry;
}

function invalid(text: string, why: string): SandboxerError {
  return new SandboxerError("bad_request", `The image name ${JSON.stringify(text)} is not valid: ${why}.`, {
    hint: "Use a name such as python:3.12-slim, registry.example/team/tool:1 or NAME@sha256:…; or host, dir:PATH, tar:PATH, docker:NAME, oci:PATH:TAG.",
  });
}
