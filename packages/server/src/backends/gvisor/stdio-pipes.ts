import { execFile } from "node:child_process";
import { closeSync, constants, openSync } from "node:fs";
import { rm } from "node:fs/promises";
import { Socket } from "node:net";
import { join } from "node:path";
import { promisify } from "node:util";

const execFileAsync = promisify(execFile);

export interface StdioPipes {
  /** To the agent. */
  readonly input: Socket;
  /** From the agent. */
  readonly output: Socket;
  /** The sandbox's ends, for `spawn`; closed here once it has them. */
  readonly childInput: number;
  readonly childOutput: number;
  closeChildEnds(): void;
}

/**
 * Real pipes for the agent. Node connects a child by socket pairs, and gVisor cannot save a connected host socket.
 * Each end is open once, here or in the sandbox, so that the death of either side is an end of file on the other.
 * Opening does not block: the read ends come first and do not wait for a writer.
 */
export async function openStdioPipes(directory: string): Promise<StdioPipes> {
  const [inputPath, outputPath] = [join(directory, "stdin"), join(directory, "stdout")];
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
    return {
      input: new Socket({ fd: input, readable: false, writable: true }),
      output: new Socket({ fd: output, readable: true, writable: false }),
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
