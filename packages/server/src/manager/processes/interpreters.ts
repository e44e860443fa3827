import type { Language } from "@sandboxer/protocol";
import type { SandboxHandle } from "../../backends/backend.ts";

/** Linux takes at most 128 KiB in one argument; longer code goes through a file. */
const MAX_ARGUMENT_BYTES = 96 * 1024;

export interface Interpreter {
  readonly command: (code: string) => string[];
  /** Code that runs a file as if its text had been given on the command line. */
  readonly loader: (path: string) => string;
}

export const INTERPRETERS: Readonly<Record<Language, Interpreter>> = {
  python: {
    command: (code) => ["python3", "-u", "-c", code],
    loader: (path) => `exec(compile(open(${JSON.stringify(path)}, encoding="utf-8").read(), "<string>", "exec"))`,
  },
  bash: {
    command: (code) => ["bash", "-c", code],
    loader: (path) => `. ${path}`,
  },
  javascript: {
    command: (code) => ["node", "-e", code],
    loader: (path) => `require("vm").runInThisContext(require("fs").readFileSync(${JSON.stringify(path)}, "utf8"))`,
  },
};

/** For images without bash. */
export const PLAIN_SHELL: Interpreter = { ...INTERPRETERS.bash, command: (code) => ["/bin/sh", "-c", code] };

export function needsFile(code: string): boolean {
  return Buffer.byteLength(code, "utf8") > MAX_ARGUMENT_BYTES;
}

/** Where the code of a process or execution lies when it is too long for an argument. */
export function codePathOf(id: string): string {
  return `/tmp/.sandboxer-${id}`;
}

/**
 * The argv that runs the code, which is put into a file first where it is too long for an argument. With `forOthers`
 * the file is root's: another user than the sandbox's reads it, and nobody changes it.
 */
export async function prepareCode(
  { files, rawFiles }: Pick<SandboxHandle, "files" | "rawFiles">,
  interpreter: Interpreter,
  code: string,
  { id, forOthers }: { readonly id: string; readonly forOthers: boolean },
): Promise<string[]> {
  if (!needsFile(code)) return interpreter.command(code);
  const content = Buffer.from(code, "utf8");
  if (forOthers) await (rawFiles ?? files).write(codePathOf(id), content, { mode: 0o644 });
  else await files.write(codePathOf(id), content, { mode: 0o600 });
  return interpreter.command(interpreter.loader(codePathOf(id)));
}

/** Also if it is root's. */
export async function removeCode({ files, rawFiles }: SandboxHandle, id: string): Promise<void> {
  await (rawFiles ?? files).remove(codePathOf(id)).catch(() => {});
}
