import type { CallOptions } from "../support/call-options.ts";

/** A value that is never shown by accident: printed, logged or converted to JSON it is its name. */
export class Secret {
  readonly name: string;
  readonly #value: string;

  constructor(name: string, value: string) {
    this.name = name;
    this.#value = value;
  }

  /** The value. Call it only where the value is used, and do not keep it. */
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

/** Secrets by name. Stored sandboxes have names only; any server that starts one uses its own resolver. */
export interface SecretResolver {
  /**
   * Reads the secret from its source, each time. `secret_unavailable` names the secret and its source, never the value.
   */
  resolve(name: string, options?: CallOptions): Promise<Secret>;
}

/** Variables inside a sandbox, and their secrets. As JSON it is empty. */
export type SecretEnvironment = ReadonlyMap<string, Secret>;

/** All secrets of a sandbox (`secret_refs`: variable to name), or the first failure. Each is read once. */
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
