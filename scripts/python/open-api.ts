import { startTestServer } from "@sandboxer/client/testing";
import type { OpenApi } from "./schema.ts";

/** The document of a real server. */
export async function openApi(): Promise<OpenApi> {
  await using server = await startTestServer();
  const response = await fetch(`${server.url}/openapi.json`);
  return (await response.json()) as OpenApi;
}
