import type { ServerProcess } from "./server-process.ts";

type Json = Readonly<Record<string, unknown>>;

/** A call of the HTTP API; throws the server's error. */
export async function callServer(
  { url }: Pick<ServerProcess, "url">,
  method: "GET" | "POST" | "DELETE",
  path: string,
  body?: Json,
): Promise<Json> {
  const answer = await fetch(`${url.replace(/^ws/, "http")}${path}`, {
    method,
    ...(body === undefined ? {} : { headers: { "content-type": "application/json" }, body: JSON.stringify(body) }),
  });
  const text = await answer.text();
  if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text.slice(0, 500)}`);
  return text === "" ? {} : (JSON.parse(text) as Json);
}

/** Runs a program in a sandbox to its end; throws if it fails. */
export async function execIn(
  server: Pick<ServerProcess, "url">,
  sandboxId: string,
  command: readonly string[],
): Promise<string> {
  const result = await callServer(server, "POST", `/v1/sandboxes/${sandboxId}/exec`, { command });
  if (result["exit_code"] !== 0) throw new Error(`${command.join(" ")} failed: ${String(result["stderr"])}`);
  return String(result["stdout"]);
}

/** Creates a sandbox that can be saved, and returns its id. */
export async function createSandbox(server: Pick<ServerProcess, "url">, body: Json = {}): Promise<string> {
  return String((await callServer(server, "POST", "/v1/sandboxes", body))["id"]);
}

export async function destroySandbox(server: Pick<ServerProcess, "url">, sandboxId: string): Promise<void> {
  await callServer(server, "DELETE", `/v1/sandboxes/${sandboxId}`);
}
