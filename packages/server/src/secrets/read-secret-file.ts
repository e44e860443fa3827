import { constants } from "node:fs";
import { open, type FileHandle } from "node:fs/promises";
import { MAX_SECRET_BYTES, SecretProblem } from "./secret-problem.ts";

const OTHERS = 0o077;

export async function readSecretFile(path: string, warn: (problem: string) => void): Promise<Buffer> {
  try {
    // A pipe that nobody writes must not hold a creation up.
    const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
    try {
      return await readOpened(file, (mode) =>
        warn(`other users may read ${path} (mode ${mode}). Run chmod 600 on it.`),
      );
    } finally {
      await file.close();
    }
  } catch (error) {
    throw error instanceof SecretProblem ? error : new SecretProblem(reason(error as NodeJS.ErrnoException));
  }
}

async function readOpened(file: FileHandle, onTooOpen: (mode: string) => void): Promise<Buffer> {
  const status = await file.stat();
  if (!status.isFile()) throw new SecretProblem("is not a file.");
  if ((status.mode & OTHERS) !== 0) onTooOpen((status.mode & 0o777).toString(8).padStart(4, "0"));
  const bytes = Buffer.alloc(MAX_SECRET_BYTES + 1);
  let length = 0;
  for (let count = -1; count !== 0; length += count) {
    count = (await file.read(bytes, length, bytes.length - length)).bytesRead;
  }
  return bytes.subarray(0, length);
}

function reason({ code }: NodeJS.ErrnoException): string {
  if (code === "ENOENT" || code === "ENOTDIR") return "is not there.";
  if (code === "EACCES" || code === "EPERM") return "may not be read by the server's user.";
  return `cannot be read (${code ?? "unknown error"}).`;
}
