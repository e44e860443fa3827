import type { CallOptions } from "../support/call-options.ts";

/** A value that nobody sees by accident: printed, logged or turned into JSON it is its name. */
export class Secret {
  readonly name: string;
  readonly #value: string;

  constructor(name: string, value: string) {
    this.name = name;
    this.#value = value;
  }

  /** The value. Call it where the value is handed over, and keep what it gives nowhere. */
  reveal(): string {
    return this.#value;
  }

  toString(): string {
    return `[secret ${this.name}]`;
  }

  toJSON(): string {
    return this.toString();
  }

  [Symbol.for("nodejs.util.inspect.custom")](): string {
    return this.toString();
  }
}

/** Secrets by name. What is stored of a sandbox has names only; any server that starts it asks its own resolver. */
export interface SecretResolver {
  /**
   * Reads the secret from where it comes from, each time. `secret_unavailable` names the secret and its source, and
   * never the value.
   */
  resolve(name: string, options?: CallOptions): Promise<Secret>;
}

/** Variables inside a sandbox, and the secrets that they hold. As JSON it is empty. */
export type SecretEnvironment = ReadonlyMap<string, Secret>;

/** All the secrets of a sandbox (`secret_refs`: variable to name), or the first failure. Each is read once. */
export async function resolveSecretRefs(
  secretRefs: Readonly<Record<string, string>>,
  resolver: SecretResolver,
  options: CallOptions = {},
): Promise<SecretEnvironment> {
  const reads = new Map<string, Promise<Secret>>();
  const pairs = Object.entries(secretRefs).map(async ([variable, name]) => {
    const read = reads.get(name) ?? resolver.resolve(name, options);
    reads.set(name, read);
    return [variable, await read] as const;
  });
  return new Map(await Promise.all(pairs));
}

/** For the environment of one process, at the moment it is started. */
export function revealEnvironment(secrets: SecretEnvironment): Record<string, string> {
  return Object.fromEntries([...secrets].map(([variable, secret]) => [variable, secret.reveal()]));
}
