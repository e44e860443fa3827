import type { CallOptions } from "../../support/call-options.ts";

export interface AcquireRequest {
  /** Identifies the sandbox to its user for ever; the backend may give each incarnation a name of its own. */
  readonly sandboxId: string;
  readonly spec: SandboxSpec;
  /** By what others find it again; a backend whose sandboxes outlive the server marks them with it. */
  readonly identity?: SandboxIdentity;
  /** Who asks. What is prepared because of one who asked is never given to another. Absent: nobody says. */
  readonly tenant?: string;
  /** For the server's own ends: nothing is taken that was started ahead for users, and nothing is because of it. */
  readonly skipWarmPool?: boolean;
  /** The names in `spec.env` whose values are secrets: those are for programs, and for nothing that is kept or shown. */
  readonly secretVariables?: readonly string[];
}

export interface SandboxIdentity {
  /** Chosen by its user: the same key asks for the same sandbox. */
  readonly key: string;
  /** Of the spec, see `spec-hash.ts`: another one asks for another sandbox. */
  readonly specHash: string;
  /** The installation that made it: only its own sandboxes may a server take for orphans. */
  readonly owner: string;
  /** One that was stopped for longer than this counts as gone. */
  readonly idleTtlMs: number;
}

export interface ForgetOptions extends CallOptions {
  /** Where the captured sandbox lived, as its profile said. */
  readonly placement?: Readonly<Record<string, string>>;
}

/** What a sandbox is made of; stored with it, so that a restore asks for the same. */
export interface SandboxSpec {
  /** `host`, `dir:/path`, `tar:/path`, `docker:NAME`, `oci:PATH:TAG`; absent: the backend's default. */
  readonly image?: string;
  readonly env: Readonly<Record<string, string>>;
  readonly resources: Resources;
  readonly network: "none" | "sandbox";
  /** Variables, and the names of the secrets that they hold. A backend never sees it: it gets the values, in `env`. */
  readonly secretRefs?: Readonly<Record<string, string>>;
  /** What its user hands to the backend by name, such as `repo`. */
  readonly inputs?: Readonly<Record<string, string>>;
  /** Where it is to live, as the profile says: the host, the base folder, the region. */
  readonly placement?: Readonly<Record<string, string>>;
  /** Commands to run once, after it was made and before it is given out. */
  readonly setup?: readonly string[];
}

export interface Resources {
  readonly cpus?: number;
  readonly memoryBytes?: number;
  readonly processes?: number;
  readonly diskBytes?: number;
  readonly fileBytes?: number;
}
