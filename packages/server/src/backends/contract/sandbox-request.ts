import type { NetworkPolicy } from "@sandboxer/protocol";
import type { CallOptions } from "../../support/call-options.ts";

export interface AcquireRequest {
  /** Identifies the sandbox to its user forever; the backend may give each incarnation its own name. */
  readonly sandboxId: string;
  readonly spec: SandboxSpec;
  /** The identity by which it is found again; a backend whose sandboxes outlive the server marks them with it. */
  readonly identity?: SandboxIdentity;
  /** The caller. Anything prepared for one caller is never given to another. Absent: unknown. */
  readonly tenant?: string;
  /** For the server's own use: uses nothing from the pool for users, and triggers no preparation. */
  readonly skipWarmPool?: boolean;
  /** The names in `spec.env` whose values are secrets: only for programs, and never kept or shown. */
  readonly secretVariables?: readonly string[];
}

export interface SandboxIdentity {
  /** Chosen by its user: the same key means the same sandbox. */
  readonly key: string;
  /** The hash of the spec, see `spec-hash.ts`: another one means another sandbox. */
  readonly specHash: string;
  /** The installation that created it: a server may only treat its own sandboxes as orphans. */
  readonly owner: string;
  /** A sandbox that was stopped for longer than this counts as deleted. */
  readonly idleTtlMs: number;
}

export interface ForgetOptions extends CallOptions {
  /** The placement of the captured sandbox, from its profile. */
  readonly placement?: Readonly<Record<string, string>>;
}

/** The settings of a sandbox; stored with it, so that a restore uses the same. */
export interface SandboxSpec {
  /** `host`, `python:3.12`, `dir:/path`, `tar:/path`, `docker:NAME`, `oci:PATH:TAG`; absent: the backend's default. */
  readonly image?: string;
  /** The user of its programs and files; absent: the image's, then `user` with the uid 1000. */
  readonly user?: string;
  readonly env: Readonly<Record<string, string>>;
  readonly resources: Resources;
  readonly network: NetworkPolicy;
  /** Variables, and the names of their secrets. A backend never sees it: it gets the values in `env`. */
  readonly secretRefs?: Readonly<Record<string, string>>;
  /** Named values from its user for the backend, such as `repo`. */
  readonly inputs?: Readonly<Record<string, string>>;
  /** Its placement from the profile: the host, the base folder, the region. */
  readonly placement?: Readonly<Record<string, string>>;
  /** Commands to run once, after it was created and before it is used. */
  readonly setup?: readonly string[];
}

export interface Resources {
  readonly cpus?: number;
  readonly memoryBytes?: number;
  readonly processes?: number;
  readonly diskBytes?: number;
  readonly fileBytes?: number;
}
