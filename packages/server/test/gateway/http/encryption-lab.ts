import { randomBytes } from "node:crypto";
import type { CreatedSandboxRecord } from "@sandboxer/protocol";
import { expect } from "vitest";
import { MasterKey } from "../../../src/checkpoints/keys/master-key.ts";
import { filesIn, newKey } from "../../checkpoints/keys/key-lab.ts";
import {
  startTestServer,
  type TestServer,
  type TestServerOptions,
} from "../../../../../test/kit/server/test-server.ts";
import { type ErrorAnswer, HttpClient } from "./support.ts";

/** A client's key, and those who have it or another one. */
export const KEY = randomBytes(32).toString("base64");
export const { fingerprint } = MasterKey.parse(KEY) ?? newKey();
export const HEADER = { headers: { "Sandboxer-Encryption-Key": KEY } };
export const OTHER_HEADER = { headers: { "sandboxer-encryption-key": randomBytes(32).toString("hex") } };
export const MARK = "a word that is found again";

export async function start(options: TestServerOptions = {}) {
  const server = await startTestServer(options);
  return { server, http: new HttpClient(server) };
}

export async function create(http: HttpClient, options = HEADER): Promise<CreatedSandboxRecord> {
  const answer = await http.call<CreatedSandboxRecord>("POST", "/v1/sandboxes", {}, options);
  expect(answer.status).toBe(201);
  return answer.body;
}

export async function write(server: TestServer, id: string): Promise<void> {
  const { handle } = await server.live(id);
  await handle.files.write("/workspace/mark.txt", Buffer.from(MARK));
}

export async function read(server: TestServer, id: string): Promise<string> {
  const { handle } = await server.live(id);
  const chunks: Uint8Array[] = [];
  for await (const chunk of handle.files.read("/workspace/mark.txt")) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}

/** The images of a server's store that are not encrypted. */
export async function plainImages({ storeFolder }: TestServer): Promise<readonly string[]> {
  const images = [...(await filesIn(storeFolder ?? ""))].filter(([path]) => path.endsWith(".img"));
  expect(images).not.toEqual([]);
  return images.filter(([, bytes]) => !bytes.includes('"encryption":{"key_id"')).map(([path]) => path);
}

export async function refusal(http: HttpClient, method: string, path: string, body?: unknown, options = {}) {
  const answer = await http.call<ErrorAnswer>(method, path, body, options);
  return { status: answer.status, ...answer.body.error };
}
