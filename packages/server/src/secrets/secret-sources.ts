import { SandboxerError } from "@sandboxer/protocol";
import type { CallOptions } from "../support/call-options.ts";
import { didYouMean } from "../support/nearest-name.ts";
import { runSecretCommand } from "./run-secret-command.ts";
import { describeSource, type SecretDefinition, type SecretDefinitions } from "./secret-definition.ts";
import { Secret, type SecretResolver } from "./secret.ts";
import { constants } from "node:fs";
import { open, type FileHandle } from "node:fs/promises";
import { MAX_SECRET_BYTES, SecretProblem } from "./secret-problem.ts";

export interface SecretSourcesOptions {
  readonly definitions: SecretDefinitions;
  /** For `environment` sources, and for the programs of `command` sources. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly warn: (message: string) => void;
  readonly commandTimeoutMs?: number;
}

const COMMAND_TIMEOUT_MS = 10_000;

/** The secrets of the config file. Nothing is read before it is needed, and nothing is kept. */
export class SecretSources implements SecretResolver {
  readonly #options: SecretSourcesOptions;
  readonly #warned = new Set<string>();

  constructor(options: SecretSourcesOptions) {
    this.#options = options;
  }

  async resolve(name: string, options: CallOptions = {}): Promise<Secret> {
    const { definitions } = this.#options;
    const definition = Object.hasOwn(definitions, name) ? definitions[name] : undefined;
    if (definition === undefined) {
      const meant = didYouMean(name, Object.keys(definitions));
      throw new SandboxerError("secret_unavailable", `There is no secret "${name}" on this server.${meant}`, {
        hint: `Define it under "secrets" in the server's config file.`,
        details: { secret: name },
      });
    }
    options.signal?.throwIfAborted();
    try {
      return new Secret(name, textOf(await this.#read(name, definition, options)));
    } catch (error) {
      if (!(error instanceof SecretProblem)) throw error;
      // No cause: another program's message may contain the value.
      throw new SandboxerError(
        "secret_unavailable",
        `The secret ${name} (${describeSource(definition)}) ${error.message}`,
        {
          details: { secret: name },
        },
      );
    }
  }

  async #read(name: string, definition: SecretDefinition, { signal }: CallOptions): Promise<Buffer> {
    const { environment, commandTimeoutMs = COMMAND_TIMEOUT_MS } = this.#options;
    if (definition.file !== undefined) {
      return readSecretFile(definition.file, (problem) => this.#warnOnce(name, problem));
    }
    if (definition.environment !== undefined) {
      const value = environment[definition.environment];
      if (value === undefined) throw new SecretProblem("is not set.");
      return Buffer.from(value);
    }
    return runSecretCommand(definition.command ?? [], { environment, timeoutMs: commandTimeoutMs, signal });
  }

  #warnOnce(name: string, problem: string): void {
    if (this.#warned.has(name)) return;
    this.#warned.add(name);
    this.#options.warn(`The secret ${name}: ${problem}`);
  }
}

/** One newline at the end comes from the editor and is not part of the secret. */
function textOf(bytes: Buffer): string {
  if (bytes.length > MAX_SECRET_BYTES) throw new SecretProblem(`is larger than ${MAX_SECRET_BYTES} bytes.`);
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes).replace(/\r?\n$/, "");
  } catch {
    throw new SecretProblem("is not UTF-8 text.");
  }
  if (text === "") throw new SecretProblem("is empty.");
  if (text.includes("\0")) throw new SecretProblem("contains NUL, which a variable cannot contain.");
  return text;
}

const OTHERS = 0o077;

async function readSecretFile(path: string, warn: (problem: string) => void): Promise<Buffer> {
  try {
    // A pipe without a writer must not block a creation.
    const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
    try {
      return await readOpened(file, (mode) =>
        warn(`other users can read ${path} (mode ${mode}). Run chmod 600 on it.`),
      );
    } finally {
      await file.close();
    }
  } catch (error) {
    throw error instanceof SecretProblem ? error : new SecretProblem(reason(error as NodeJS.ErrnoException));
  }
}

async function readOpened(file: FileHandle, onTooOpen: (mode: string) => void): Promise<Buffer> {
  const status = await file.stat();
  if (!status.isFile()) throw new SecretProblem("is not a file.");
  if ((status.mode & OTHERS) !== 0) onTooOpen((status.mode & 0o777).toString(8).padStart(4, "0"));
  const bytes = Buffer.alloc(MAX_SECRET_BYTES + 1);
  let length = 0;
  for (let count = -1; count !== 0; length += count) {
    count = (await file.read(bytes, length, bytes.length - length)).bytesRead;
  }
  return bytes.subarray(0, length);
}

function reason({ code }: NodeJS.ErrnoException): string {
  if (code === "ENOENT" || code === "ENOTDIR") return "does not exist.";
  if (code === "EACCES" || code === "EPERM") return "cannot be read by the server's user.";
  return `cannot be read (${code ?? "unknown error"}).`;
}
