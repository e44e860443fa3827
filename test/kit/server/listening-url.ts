import type { ChildProcess } from "node:child_process";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";

/** The address in the first line of `sandboxer serve --json`. Fails if the server ends before, or is late. */
export async function listeningUrl(
  child: ChildProcess,
  deadlineMs: number,
  log: () => string = () => "",
): Promise<string> {
  const line = await new Promise<string>((resolve, reject) => {
    const fail = (why: string): void => reject(new Error(`${why}:\n${log()}`));
    const timer = setTimeout(() => fail(`No server after ${deadlineMs} ms`), deadlineMs);
    timer.unref();
    createInterface(child.stdout as Readable).once("line", resolve);
    child.once("exit", (code, signal) => fail(`The server ended with ${signal ?? code}`));
  });
  const { event, url } = JSON.parse(line) as { event: string; url: string };
  if (event !== "listening") throw new Error(`The first line is not the address: ${line}`);
  return url;
}
