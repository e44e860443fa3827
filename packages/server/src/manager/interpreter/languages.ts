import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { SandboxerError, type ContextLanguage } from "@sandboxer/protocol";
import { shippedFolder } from "../../support/shipped-folder.ts";
import { FrameReader, type FrameSource } from "./frames.ts";
import { MarkedFrameReader } from "./marked-frames.ts";

interface Driver {
  /** In packages/server/drivers. */
  readonly file: string;
  readonly program: string;
  /** A command that reads this many bytes from its stdin and runs them; the rest of stdin are cells. */
  readonly command: (bytes: number) => readonly string[];
  /** Whether its frames are between the output of programs. */
  readonly marked: boolean;
  /** For an image without the program. */
  readonly hint: string;
}

export interface CellInput {
  readonly id: string;
  readonly code: string;
  readonly env: Readonly<Record<string, string>>;
}

const NODE_LOADER = (bytes: number, language: string): readonly string[] => [
  "node",
  "-e",
  `const fs=require("fs"),b=Buffer.alloc(${bytes});for(let n=0;n<${bytes};)n+=fs.readSync(0,b,n,${bytes}-n);new Function("require","SANDBOXER_LANGUAGE",b.toString())(require,"${language}")`,
];
const NODE = { file: "javascript.js", program: "node", marked: true };
const NODE_HINT = "Create the sandbox from an image with Node, such as node:22-slim.";

const DRIVERS: Readonly<Record<ContextLanguage, Driver>> = {
  python: {
    file: "python.py",
    program: "python3",
    command: (bytes) => [
      "python3",
      "-c",
      `import os\ns=b""\nwhile len(s)<${bytes}:s+=os.read(0,${bytes}-len(s))\nexec(compile(s,"<sandboxer>","exec"),{"__name__":"sandboxer"})`,
    ],
    marked: false,
    hint: "Create the sandbox from an image with Python 3.8 or newer, such as python:3.12-slim.",
  },
  javascript: { ...NODE, command: (bytes) => NODE_LOADER(bytes, "javascript"), hint: NODE_HINT },
  typescript: { ...NODE, command: (bytes) => NODE_LOADER(bytes, "typescript"), hint: NODE_HINT },
  bash: {
    file: "bash.sh",
    program: "bash",
    command: () => ["bash", "--noprofile", "--norc", "--noediting", "-i"],
    marked: true,
    hint: "Create the sandbox from an image with bash.",
  },
};

const programs = new Map<string, Promise<Buffer>>();

/** The start of an interpreter: an argv, and the program for its stdin. Nothing is written to the sandbox's disk. */
export async function driverOf(
  language: ContextLanguage,
): Promise<{ readonly argv: readonly string[]; readonly program: Uint8Array }> {
  const { file, command } = DRIVERS[language];
  const reading = programs.get(file) ?? readFile(join(shippedFolder("drivers"), file));
  programs.set(file, reading);
  const program = await reading;
  return { argv: command(program.length), program };
}

/** The line that makes an interpreter run a cell. */
export function requestLine(language: ContextLanguage, { id, code, env }: CellInput): string {
  if (language !== "bash") return `${JSON.stringify({ id, code, env })}\n`;
  const variables = Object.entries(env).map(([name, value]) => `${name}=${bashQuoted(value)} `);
  return `__sandboxer_start ${id}; ${variables.join("")}eval ${bashQuoted(code)} </dev/null\n`;
}

/** `only`: the frames of this cell; `begun`: its beginning was read before. */
export function frameReaderOf(
  language: ContextLanguage,
  options: { readonly only?: string | undefined; readonly begun?: boolean } = {},
): FrameSource {
  return DRIVERS[language].marked ? new MarkedFrameReader(options) : new FrameReader();
}

/** A failed start, in words that help. */
export function noInterpreter(language: ContextLanguage, error: unknown): unknown {
  if (!(error instanceof SandboxerError) || error.code !== "file_not_found") return error;
  const { program, hint } = DRIVERS[language];
  const message = `The sandbox has no ${program}, or the working folder is missing, so ${language} cannot run: ${error.message}`;
  return new SandboxerError("not_supported", message, { cause: error, hint });
}

/** In one line, whatever is in it. */
function bashQuoted(text: string): string {
  const escapes: Readonly<Record<string, string>> = { "\\": "\\\\", "'": "\\'", "\n": "\\n", "\r": "\\r", "\0": "" };
  return `$'${text.replaceAll(/[\\'\n\r\0]/g, (character) => escapes[character] ?? "")}'`;
}
