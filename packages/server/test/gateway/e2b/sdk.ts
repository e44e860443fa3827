import { onTestFinished, vi } from "vitest";
import {
  startTestServer,
  type TestServer,
  type TestServerOptions,
} from "../../../../../test/kit/server/test-server.ts";

/** A server, with the environment of this process set for E2B's clients as a user would set it. */
export async function startForE2b(options: TestServerOptions = {}): Promise<TestServer> {
  const server = await startTestServer(options);
  setE2bEnvironment(server, options.apiKeys?.[0]);
  return server;
}

export function setE2bEnvironment({ httpUrl }: Pick<TestServer, "httpUrl">, key = "any"): void {
  vi.stubEnv("E2B_API_URL", `${httpUrl}/e2b`);
  vi.stubEnv("E2B_SANDBOX_URL", `${httpUrl}/e2b`);
  vi.stubEnv("E2B_API_KEY", key);
  onTestFinished(() => void vi.unstubAllEnvs());
}
