import { SandboxerError, SCOPES, type Scope } from "@sandboxer/protocol";

/** The caller. Contains nothing secret: logs and responses may show it. */
export interface Principal {
  /**
   * `anonymous`: anyone, on a server without keys that only this machine reaches. `token`: the holder of one sandbox's
   * token, without a scope. `none`: unknown to the server.
   */
  readonly kind: "key" | "anonymous" | "token" | "none";
  /** `key:3f2a91c04d7e`, `environment:1`, or the kind. */
  readonly id: string;
  readonly name: string;
  readonly scopes: readonly Scope[];
  /** The name of the server key that encrypts data of its sandboxes; absent: the server's own. */
  readonly encryptionKey?: string | undefined;
}

export const ANONYMOUS: Principal = { kind: "anonymous", id: "anonymous", name: "anonymous", scopes: SCOPES };
export const TOKEN_HOLDER: Principal = { kind: "token", id: "token", name: "sandbox token", scopes: [] };
export const NOBODY: Principal = { kind: "none", id: "none", name: "nobody", scopes: [] };

/** Each scope includes the ones before it. */
export function scopesUpTo(scope: Scope): readonly Scope[] {
  return SCOPES.slice(0, SCOPES.indexOf(scope) + 1);
}

export function hasScope(principal: Principal, scope: Scope): boolean {
  return principal.scopes.includes(scope);
}

/** Throws `unauthorized` for an unknown caller, and `permission_denied` for one without the scope. */
export function requireScope(principal: Principal, scope: Scope): void {
  if (hasScope(principal, scope)) return;
  if (principal.kind === "none") {
    throw new SandboxerError("unauthorized", "A valid API key is needed. It must not be revoked or expired.");
  }
  const has = principal.scopes.at(-1) ?? "none";
  throw new SandboxerError("permission_denied", `This needs the scope ${scope}; ${principal.name} has ${has}.`, {
    hint: `Use a key created with \`sandboxer keys create --scope ${scope}\`.`,
    details: { needed: scope, has },
  });
}
