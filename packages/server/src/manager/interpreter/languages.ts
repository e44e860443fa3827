import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { SandboxerError, type ContextLanguage } from "@sandboxer/protocol";
import { shippedFolder } from "../../support/shipped-folder.ts";

interface Driver {
  /** In packages/server/drivers. */
  readonly file: string;
  readonly program: string;
  /** A command that reads this many bytes from its stdin and runs them; the rest of stdin are cells. */
  readonly command: (bytes: number) => readonly string[];
  /** For an image without the program. */
  readonly hint: string;
}

const DRIVERS: Readonly<Record<ContextLanguage, Driver>> = {
  python: {
    file: "python.py",
    program: "python3",
    command: (bytes) => [
      "python3",
      "-c",
      `import os\ns=b""\nwhile len(s)<${bytes}:s+=os.read(0,${bytes}-len(s))\nexec(compile(s,"<sandboxer>","exec"),{"__name__":"sandboxer"})`,
    ],
    hint: "Create the sandbox from an image with Python 3.8 or newer, such as python:3.12-slim.",
  },
};

const programs = new Map<string, Promise<Buffer>>();

/** What starts an interpreter: an argv, and the program for its stdin. Nothing is written to the sandbox's disk. */
export async function driverOf(
  language: ContextLanguage,
): Promise<{ readonly argv: readonly string[]; readonly program: Uint8Array }> {
  const { file, command } = DRIVERS[language];
  const reading = programs.get(file) ?? readFile(join(shippedFolder("drivers"), file));
  programs.set(file, reading);
  const program = await reading;
  return { argv: command(program.length), program };
}

/** A failed start, in words that help. */
export function noInterpreter(language: ContextLanguage, error: unknown): unknown {
  if (!(error instanceof SandboxerError) || error.code !== "file_not_found") return error;
  const { program, hint } = DRIVERS[language];
  const message = `The sandbox has no ${program}, or the working folder is missing, so ${language} cannot run: ${error.message}`;
  return new SandboxerError("not_supported", message, { cause: error, hint });
}
