import { Readable, Writable } from "node:stream";
import { SandboxerError } from "@sandboxer/protocol";
import type { ExtensionProcess } from "../../extension/extension.ts";
import type { StartShell } from "../../extension/shell/run-shell.ts";
import { shellCommand } from "../../../support/shell-quote.ts";
import type { Toolbox } from "../toolbox/toolbox.ts";

/**
 * The daemon returns both streams as one text. This returns each separately, byte for byte: base64 of stdout, a dot,
 * base64 of stderr, a dot, the exit code. The script runs in the existing shell: processes are expensive in some
 * sandboxes.
 */
const RUN = `d=$(mktemp -d) || exit 125
s=$1
shift
( eval "$s" ) >"$d/o" 2>"$d/e" </dev/null
c=$?
base64 "$d/o"; echo .; [ ! -s "$d/e" ] || base64 "$d/e"; echo .; echo "$c"
exec rm -rf "$d"`;

/** Marks this backend's own commands, so that the process table can leave them out. */
export const RUN_MARK = "sandboxer-run";

export interface ScriptResult {
  readonly code: number;
  readonly stdout: Buffer;
  readonly stderr: Buffer;
}

/** Runs a script of ours inside; arguments stay arguments. */
export async function runScript(
  toolbox: Toolbox,
  script: string,
  args: readonly string[] = [],
  signal?: AbortSignal,
): Promise<ScriptResult> {
  const command = shellCommand(["sh", "-c", RUN, RUN_MARK, script, ...args]);
  const { exitCode, result } = await toolbox.execute({ command, envs: { LC_ALL: "C" } }, { signal, timeoutMs: 60_000 });
  const match = /^([A-Za-z0-9+/=\s]*)\.\n([A-Za-z0-9+/=\s]*)\.\n(\d+)\s*$/.exec(result);
  if (match === null) {
    const said = result.trim().slice(0, 200);
    throw new SandboxerError(
      "sandbox_failed",
      `A script in the sandbox returned no result (exit ${exitCode ?? "none"}): ${said}`,
    );
  }
  const [, stdout = "", stderr = "", code = ""] = match;
  return { code: Number(code), stdout: Buffer.from(stdout, "base64"), stderr: Buffer.from(stderr, "base64") };
}

/** For the parts shared by files, process table and extensions: scripts without input, complete when returned. */
export function shellOf(toolbox: Toolbox): StartShell {
  return async (script, args): Promise<ExtensionProcess> => {
    const { code, stdout, stderr } = await runScript(toolbox, script, args);
    return {
      pid: 0,
      stdin: new Writable({ write: (_chunk, _encoding, done) => done() }),
      stdout: Readable.from([stdout]),
      stderr: Readable.from([stderr]),
      exited: Promise.resolve({ code, signal: undefined }),
      signal: () => Promise.resolve(),
      abandon: () => {},
    };
  };
}
