import { PassThrough } from "node:stream";
import { SandboxerError } from "@sandboxer/protocol";
import { shellCommand } from "../../../support/shell-quote.ts";
import type { ExtensionProcess } from "../../extension/extension.ts";
import type { Toolbox } from "../toolbox/toolbox.ts";
import { exitOf } from "./bridge-decoder.ts";
import { BRIDGE_TOOLS } from "./bridge-script.ts";
import { promisedWritable } from "./promised-writable.ts";
import type { BridgeCommand } from "./start-bridge.ts";

/**
 * A program in an image without the tools for streaming: one request, one response. Its output comes at its end, both
 * streams as one; it has no stdin and receives no signals.
 */
export class ExecuteProcess implements ExtensionProcess {
  readonly pid = 0;
  readonly stdout = new PassThrough();
  readonly stderr = new PassThrough();
  readonly stdin = promisedWritable(
    () => Promise.reject(unavailable("stdin")),
    () => Promise.resolve(),
  );
  readonly exited: ExtensionProcess["exited"];
  readonly #over = new AbortController();

  constructor(toolbox: Toolbox, { argv, env, workingFolder }: BridgeCommand) {
    const request = { command: shellCommand(argv), cwd: workingFolder, envs: { ...env } };
    this.exited = toolbox.execute(request, { signal: this.#over.signal }).then(({ exitCode = 0, result }) => {
      this.stdout.end(Buffer.from(result, "utf8"));
      this.stderr.end();
      return exitOf(exitCode);
    });
    this.stdout.on("error", () => {});
    this.exited.catch((thrown: unknown) => {
      this.stdout.destroy(thrown as Error);
      this.stderr.destroy();
    });
  }

  signal(): Promise<void> {
    return Promise.reject(unavailable("signals"));
  }

  abandon(): void {
    this.#over.abort();
  }
}

function unavailable(what: string): SandboxerError {
  return new SandboxerError("not_supported", `This Daytona image lacks the tools that ${what} of processes need.`, {
    hint: `Use an image with sh, ${BRIDGE_TOOLS.slice(0, -1).join(", ")} and ${BRIDGE_TOOLS.at(-1)}, such as Debian's.`,
  });
}
