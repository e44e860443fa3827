import { onTestFinished } from "vitest";
import { Sandbox, type CreateOptions } from "../../src/index.ts";
import { startTestServer, type TestServer, type TestServerOptions } from "../../src/testing/index.ts";

/** A server that ends with its test. */
export async function server(options?: TestServerOptions): Promise<TestServer> {
  const started = await startTestServer(options);
  onTestFinished(() => started.close());
  return started;
}

export async function sandbox(options: CreateOptions = {}): Promise<Sandbox> {
  const { client } = await server();
  return Sandbox.create({ client, ...options });
}
