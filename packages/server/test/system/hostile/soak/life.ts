import type { HttpClient } from "../../../gateway/http/support.ts";

/** The life of a sandbox and its fork: create, exec, pause, resume, fork, snapshot, delete. Nothing of it stays. */
export async function liveOnce(http: HttpClient, name: string): Promise<void> {
  const sandbox = await http.create({ enable_checkpoint: true, labels: { soak: name } });
  const at = `/v1/sandboxes/${sandbox.id}`;
  await call(http, "POST", `${at}/exec`, { shell: `echo ${name} > /tmp/name` });
  await call(http, "POST", `${at}/checkpoint`, {});
  await call(http, "POST", `${at}/resume`, {});
  await call(http, "POST", `${at}/exec`, { shell: "cat /tmp/name", user: "root" });
  const fork = await call<{ snapshot_id: string; items: { id: string }[] }>(http, "POST", `${at}/fork`, {});
  const snapshot = await call<{ id: string }>(http, "POST", `${at}/snapshot`, {});
  for (const { id } of [sandbox, ...fork.items]) await call(http, "DELETE", `/v1/sandboxes/${id}`);
  for (const id of [fork.snapshot_id, snapshot.id]) await call(http, "DELETE", `/v1/snapshots/${id}`);
}

async function call<Body>(http: HttpClient, method: string, path: string, body?: object): Promise<Body> {
  const answer = await http.call<Body>(method, path, body);
  if (answer.status >= 300) throw new Error(`${method} ${path}: ${answer.status} ${JSON.stringify(answer.body)}`);
  return answer.body;
}
