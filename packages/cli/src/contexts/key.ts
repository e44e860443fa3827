import { execFile } from "node:child_process";
import { readFile, stat } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { promisify } from "node:util";
import { SandboxerError } from "@sandboxer/protocol/errors";
import type { Io } from "../io.ts";
import { checkedKey } from "./checked-key.ts";
import { configPath } from "./config-file.ts";
import type { Context } from "./context.ts";

const COMMAND_TIMEOUT_MS = 10_000;
const MAX_KEY_BYTES = 65_536;
/** Users other than the owner can read it. */
const OPEN_TO_OTHERS = 0o077;

/** The key of a context, from its location. Paths are relative to the config file. */
export async function resolveKey(io: Io, name: string, context: Context): Promise<string | undefined> {
  const { api_key_file: file, api_key_env: variable, api_key_command: command } = context;
  if (variable !== undefined) {
    const value = io.env[variable];
    if (!value) throw unavailable(name, `the variable ${variable} is not set`);
    return checkedKey(value, `The variable ${variable}`);
  }
  if (file !== undefined) return readKeyFile(io, name, resolve(dirname(configPath(io)), file));
  if (command !== undefined) return runKeyCommand(io, name, command);
  return undefined;
}

async function readKeyFile(io: Io, name: string, path: string): Promise<string> {
  try {
    const { mode } = await stat(path);
    if ((mode & OPEN_TO_OTHERS) !== 0)
      io.stderr(`sandboxer: other users can read the key in ${path}; run chmod 600 on it.\n`);
    return checkedKey(await readFile(path, "utf8"), `The file ${path}`);
  } catch (error) {
    throw error instanceof SandboxerError ? error : unavailable(name, (error as Error).message);
  }
}

async function runKeyCommand(io: Io, name: string, [program = "", ...rest]: readonly string[]): Promise<string> {
  try {
    const { stdout } = await promisify(execFile)(program, rest, {
      env: io.env,
      timeout: COMMAND_TIMEOUT_MS,
      maxBuffer: MAX_KEY_BYTES,
    });
    return checkedKey(stdout, `The output of ${program}`);
  } catch (error) {
    if (error instanceof SandboxerError) throw error;
    // The message of a failed program may contain its output.
    const { code, signal } = error as { code?: unknown; signal?: unknown };
    throw unavailable(name, `${program} failed (${String(signal ?? code)})`);
  }
}

function unavailable(name: string, reason: string): SandboxerError {
  return new SandboxerError("secret_unavailable", `The key of context "${name}" cannot be read: ${reason}.`, {
    hint: "Check `sandboxer context list`, or give the key with --api-key-file or SANDBOXER_API_KEY.",
  });
}
