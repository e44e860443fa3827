import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startTestServer, type TestServer, type TestServerOptions } from "@sandboxer/client/testing";
import { onTestFinished } from "vitest";
import { runProgram } from "../../src/program.ts";
import { fakeIo, type FakeIo, type FakeIoOptions } from "./fake-io.ts";

export interface Ended {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

export interface Cli {
  readonly server: TestServer;
  /** An empty folder of this test. */
  readonly folder: string;
  /** Runs one command line to its end. */
  (argv: readonly string[], options?: FakeIoOptions & { env?: Record<string, string> }): Promise<Ended>;
  /** Runs it with --json and returns the parsed stdout. */
  json<T = Record<string, unknown>>(argv: readonly string[]): Promise<T>;
  /** Runs a command that must succeed, and returns its first line. */
  id(argv: readonly string[]): Promise<string>;
  io(options?: FakeIoOptions & { env?: Record<string, string> }): FakeIo;
}

/** A real server on the fake backend in this process, and the CLI with its address in the environment. */
export async function startCli(options: TestServerOptions = {}): Promise<Cli> {
  const server = await startTestServer(options);
  const folder = mkdtempSync(join(tmpdir(), "sandboxer-cli-"));
  onTestFinished(async () => {
    await server.close();
    rmSync(folder, { recursive: true, force: true });
  });
  const environment = {
    SANDBOXER_URL: server.url,
    XDG_CONFIG_HOME: join(folder, "config"),
    ...(options.apiKeys?.[0] === undefined ? {} : { SANDBOXER_API_KEY: options.apiKeys[0] }),
  };
  const io = (given: FakeIoOptions & { env?: Record<string, string> } = {}): FakeIo =>
    fakeIo({ ...environment, ...given.env }, { workingDirectory: folder, homeDirectory: folder, ...given });
  const run = async (argv: readonly string[], given = {}): Promise<Ended> => {
    const one = io(given);
    const code = await runProgram(argv, one);
    return { code, out: one.out(), err: one.err() };
  };
  return Object.assign(run, {
    server,
    folder,
    io,
    json: async <T>(argv: readonly string[]): Promise<T> => {
      const { out } = await run([argv[0] ?? "", "--json", ...argv.slice(1)]);
      return JSON.parse(out) as T;
    },
    id: async (argv: readonly string[]): Promise<string> => {
      const { code, out, err } = await run(argv);
      if (code !== 0) throw new Error(`${argv.join(" ")} exited with ${code}: ${err}`);
      return out.split("\n")[0] ?? "";
    },
  });
}
