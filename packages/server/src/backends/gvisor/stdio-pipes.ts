import { execFile, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { closeSync, constants, openSync } from "node:fs";
import { rm } from "node:fs/promises";
import { Socket, type SocketConstructorOpts } from "node:net";
import { join } from "node:path";
import { promisify } from "node:util";

const execFileAsync = promisify(execFile);
/** Node's own 64 KiB would split nearly every frame of output. */
const READ_BYTES = 256 * 1024;

export interface StdioPipes {
  /** To the agent. */
  readonly input: Socket;
  /** From the agent. Its chunks are only valid until the next one: they share memory. */
  readonly output: Socket;
  /** The sandbox's ends, for `spawn`; closed here once it has them. */
  readonly childInput: number;
  readonly childOutput: number;
  closeChildEnds(): void;
}

/** Pipes that are created in advance: a pair takes two programs, 5 to 15 ms. */
export class PipeSupply {
  readonly #directory: string;
  readonly #agentPath: string;
  #next: Promise<StdioPipes> | undefined;
  #closed = false;

  /** `agentPath` is this server's own agent, which is also the program that enlarges a pipe. */
  constructor(directory: string, agentPath: string) {
    this.#directory = directory;
    this.#agentPath = agentPath;
  }

  /** Starts creating a pair, unless one exists or is in progress. */
  prepare(): void {
    if (this.#closed) return;
    this.#next ??= openStdioPipes(this.#directory, this.#agentPath);
    this.#next.catch(() => {});
  }

  async take(): Promise<StdioPipes> {
    this.prepare();
    const taken = this.#next;
    this.#next = undefined;
    return taken ?? openStdioPipes(this.#directory, this.#agentPath);
  }

  async close(): Promise<void> {
    this.#closed = true;
    const unused = await this.#next?.catch(() => undefined);
    this.#next = undefined;
    unused?.closeChildEnds();
    unused?.input.destroy();
    unused?.output.destroy();
  }
}

/**
 * Real pipes for the agent. Node connects a child by socket pairs, and gVisor cannot save a connected host socket. Each
 * end is open once, here or in the sandbox, so that the death of either side is an end of file on the other. Opening
 * does not block: the read ends come first and do not wait for a writer.
 */
export async function openStdioPipes(directory: string, agentPath?: string): Promise<StdioPipes> {
  const name = randomUUID();
  const [inputPath, outputPath] = [join(directory, `${name}.stdin`), join(directory, `${name}.stdout`)];
  await execFileAsync("mkfifo", ["-m", "600", inputPath, outputPath]);
  const opened: number[] = [];
  const openEnd = (path: string, flags: number): number => {
    const descriptor = openSync(path, flags);
    opened.push(descriptor);
    return descriptor;
  };
  try {
    const childInput = openEnd(inputPath, constants.O_RDONLY | constants.O_NONBLOCK);
    const input = openEnd(inputPath, constants.O_WRONLY | constants.O_NONBLOCK);
    const output = openEnd(outputPath, constants.O_RDONLY | constants.O_NONBLOCK);
    const childOutput = openEnd(outputPath, constants.O_WRONLY | constants.O_NONBLOCK);
    if (agentPath !== undefined) await enlarge(output, input, agentPath);
    return {
      input: new Socket({ fd: input, readable: false, writable: true }),
      output: reader(output),
      childInput,
      childOutput,
      closeChildEnds: () => [childInput, childOutput].forEach((descriptor) => closeSync(descriptor)),
    };
  } catch (error) {
    opened.forEach((descriptor) => closeSync(descriptor));
    throw error;
  } finally {
    await Promise.all([rm(inputPath, { force: true }), rm(outputPath, { force: true })]);
  }
}

/** Enlarges pipes to 1 MiB, so that a burst is one turn of this process. Node cannot do it; the agent can. */
async function enlarge(output: number, input: number, agentPath: string): Promise<void> {
  const program = spawn(agentPath, ["grow-pipe"], { stdio: [output, input, "ignore"] });
  // A pipe of the usual size works too.
  await new Promise((resolve) => program.once("error", resolve).once("exit", resolve));
}

/** Reads into one buffer: a chunk is valid until its listeners have returned. */
function reader(descriptor: number): Socket {
  const options: SocketConstructorOpts & { onread: object } = {
    fd: descriptor,
    readable: true,
    writable: false,
    onread: {
      buffer: Buffer.allocUnsafeSlow(READ_BYTES),
      callback: (bytes: number, buffer: Uint8Array) => socket.emit("data", buffer.subarray(0, bytes)),
    },
  };
  const socket = new Socket(options);
  return socket;
}
