import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test } from "vitest";

const EXAMPLE = fileURLToPath(new URL("../../../../../examples/three-servers/", import.meta.url));

/** A script of the example, and what it says, line by line. */
class Script {
  readonly child: ChildProcess;
  readonly exited: Promise<unknown[]>;
  readonly #lines: string[] = [];
  #wake = Promise.withResolvers<void>();

  constructor(name: string, args: readonly string[]) {
    this.child = spawn(process.execPath, [`${EXAMPLE}${name}`, ...args], { stdio: ["pipe", "pipe", "ignore"] });
    this.exited = once(this.child, "exit");
    createInterface({ input: this.child.stdout as Readable }).on("line", (line) => {
      this.#lines.push(line);
      this.#wake.resolve();
      this.#wake = Promise.withResolvers();
    });
    onTestFinished(async () => {
      this.child.kill("SIGTERM");
      await this.exited;
    });
  }

  lastLine(): string {
    return this.#lines.at(-1) ?? "";
  }

  /** The first line that fits, once it is there. */
  async says(pattern: RegExp): Promise<string> {
    for (;;) {
      const found = this.#lines.find((line) => pattern.test(line));
      if (found !== undefined) return found;
      const ended = await Promise.race([this.exited.then(() => true), this.#wake.promise.then(() => false)]);
      if (ended) throw new Error(`It ended without ${String(pattern)}:\n${this.#lines.join("\n")}`);
    }
  }
}

test("the example of three servers: a client counts through a rolling restart", async () => {
  const servers = new Script("local.mjs", ["--port", "0", "--", "--backend", "fake"]);
  const [url = ""] = /ws:.*/.exec(await servers.says(/^Balancer/)) ?? [];
  const client = new Script("count.mjs", [url, "1000000"]);
  await client.says(/^5$/);
  servers.child.stdin?.write("roll\n");
  await servers.says(/^rolled$/);
  // All servers have been replaced, so that it must have moved; it ends by itself when a number is missing.
  const [last = ""] = /\d+/.exec(await client.says(/another connection/)) ?? [];
  const later = `${Number(last) + 5}`;
  expect(await client.says(new RegExp(`^${later}$`))).toBe(later);
});

test("the example of three servers: plain HTTP calls lose nothing through restarts and kills", async () => {
  const servers = new Script("local.mjs", ["--port", "0", "--", "--backend", "fake"]);
  const [url = ""] = /ws:.*/.exec(await servers.says(/^Balancer/)) ?? [];
  const client = new Script("calls.mjs", [url.replace("ws:", "http:"), "1000000"]);
  // Each call goes to another server than the one before, so that most of them are relayed.
  const further = async (): Promise<void> => {
    const seen = client.lastLine();
    await client.says(new RegExp(`^${Number(seen) + 5}$`));
  };
  await client.says(/^5$/);
  servers.child.stdin?.write("roll\n");
  await servers.says(/^rolled$/);
  await further();
  servers.child.stdin?.write("kill\n");
  await servers.says(/^killed$/);
  await further();
  expect(client.child.exitCode).toBeNull();
});
