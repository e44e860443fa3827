import { spawn } from "node:child_process";
import { MAX_SECRET_BYTES, SecretProblem } from "./secret-problem.ts";
import { killGroupOf } from "../support/kill.ts";

export interface SecretCommandOptions {
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly timeoutMs: number;
  readonly signal: AbortSignal | undefined;
}

/**
 * The stdout of a program. There is no shell and no stdin, and stderr is dropped, because it might repeat the value.
 * The program and its children are dead when this settles.
 */
export async function runSecretCommand(argv: readonly string[], options: SecretCommandOptions): Promise<Buffer> {
  const [program = "", ...rest] = argv;
  const child = spawn(program, rest, {
    env: { ...options.environment },
    stdio: ["ignore", "pipe", "ignore"],
    shell: false,
    detached: true,
  });
  const killGroup = (): void => killGroupOf(child);
  const chunks: Buffer[] = [];
  let length = 0;
  const ended = Promise.withResolvers<void>();
  const fail = (message: string): void => ended.reject(new SecretProblem(message));
  child.stdout.on("data", (chunk: Buffer) => {
    length += chunk.length;
    if (length > MAX_SECRET_BYTES) fail(`printed more than ${MAX_SECRET_BYTES} bytes.`);
    else chunks.push(chunk);
  });
  child.once("error", (error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") fail("cannot be run: the program does not exist.");
    else fail(`cannot be run (${error.code ?? "unknown error"}).`);
  });
  child.once("close", (code, signal) => {
    if (code === 0) ended.resolve();
    else fail(`failed: ${code === null ? `ended by ${signal ?? "a signal"}` : `exit code ${code}`}.`);
  });
  const timer = setTimeout(() => fail(`did not answer in ${options.timeoutMs / 1000} s.`), options.timeoutMs);
  const onAbort = (): void => ended.reject(options.signal?.reason);
  options.signal?.addEventListener("abort", onAbort, { once: true });
  process.once("exit", killGroup);
  try {
    await ended.promise;
    return Buffer.concat(chunks);
  } finally {
    clearTimeout(timer);
    killGroup();
    process.removeListener("exit", killGroup);
    options.signal?.removeEventListener("abort", onAbort);
  }
}
