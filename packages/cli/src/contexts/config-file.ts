import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { isAbsolute, join, resolve } from "node:path";
import { SandboxerError } from "@sandboxer/protocol/errors";
import type { Io } from "../io.ts";
import type { Context } from "./context.ts";

export interface Contexts {
  readonly contexts: ReadonlyMap<string, Context>;
  readonly current: string | undefined;
  /** The path, even if the file does not exist. */
  readonly path: string;
}

/** The file that also has the server's settings; contexts use their own keys in it. */
export function configPath(io: Pick<Io, "env" | "homeDirectory" | "workingDirectory">): string {
  const named = io.env["SANDBOXER_CONFIG"];
  if (named) return resolve(io.workingDirectory, named);
  const base = io.env["XDG_CONFIG_HOME"];
  const folder = join(base !== undefined && isAbsolute(base) ? base : join(io.homeDirectory, ".config"), "sandboxer");
  const toml = join(folder, "config.toml");
  return existsSync(toml) ? toml : join(folder, "config.yaml");
}

export async function readContexts(io: Pick<Io, "env" | "homeDirectory" | "workingDirectory">): Promise<Contexts> {
  const path = configPath(io);
  const text = await readConfigText(path);
  if (text === undefined) return { contexts: new Map(), current: undefined, path };
  const { parseContexts } = await import("./context.ts");
  const parsed = parseContexts(await parseFile(path, text), path);
  return { contexts: new Map(Object.entries(parsed.contexts)), current: parsed.current_context, path };
}

/** Undefined if there is no such file. */
export async function readConfigText(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw new SandboxerError("bad_request", `${path} cannot be read.`, {
      cause: error,
      hint: (error as Error).message,
    });
  }
}

async function parseFile(path: string, text: string): Promise<unknown> {
  try {
    if (path.endsWith(".toml")) return (await import("smol-toml")).parse(text);
    return (await import("yaml")).parse(text);
  } catch (error) {
    const hint = error instanceof Error ? (error.message.split("\n\n")[0] ?? "") : String(error);
    throw new SandboxerError("bad_request", `${path} is not valid.`, { cause: error, hint });
  }
}
