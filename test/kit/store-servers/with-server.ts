import { afterAll, beforeAll, describe, it } from "vitest";
import { type RunningStoreServer, type StoreServer, whyMissing } from "./test-server.ts";

/** Defines tests that need a server, which runs while they do. Without it they are skipped with the reason. */
export function withServer(server: StoreServer, define: (running: () => RunningStoreServer) => void): void {
  const missing = whyMissing(server);
  describe(`on ${server.name}`, () =>
    missing === undefined ? defineRunning(server, define) : defineMissing(server, missing));
}

function defineMissing(server: StoreServer, missing: string): void {
  // oxlint-disable-next-line vitest/expect-expect -- It is only there to be skipped.
  it(`has ${server.name}`, (context) => {
    console.log(`skipped: ${missing}`);
    context.skip(missing);
  });
}

function defineRunning(server: StoreServer, define: (running: () => RunningStoreServer) => void): void {
  let running: RunningStoreServer | undefined;
  beforeAll(async () => {
    running = await server.start();
  }, 40_000);
  afterAll(async () => await running?.stop());
  define(() => {
    if (running === undefined) throw new Error(`${server.name} does not run.`);
    return running;
  });
}
