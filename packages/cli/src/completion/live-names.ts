import type { Transport } from "@sandboxer/client/transport";
import { connect } from "../api/connect.ts";
import { readContexts } from "../contexts/config-file.ts";
import type { Io } from "../io.ts";
import { findSandbox } from "../targets/sandbox.ts";
import type { Wanted } from "./candidates.ts";

/** A person waits between two keystrokes: later answers are ignored. */
const PATIENCE_MS = 800;

/** The current names. An unreachable, slow or closed server has none. */
export async function liveNames({ kind, sandbox }: Wanted, last: string, io: Io): Promise<string[]> {
  if (kind === undefined) return [];
  try {
    if (kind === "context") return [...(await readContexts(io)).contexts.keys()];
    const { url, apiKey } = await connect(io, {});
    const { Transport: Client } = await import("@sandboxer/client/transport");
    const client = new Client({
      url,
      signal: AbortSignal.timeout(PATIENCE_MS),
      retry: { attempts: 1 },
      ...(apiKey === undefined ? {} : { apiKey }),
    });
    return await namesFrom(client, kind, sandbox, last);
  } catch {
    return [];
  }
}

async function namesFrom(
  client: Transport,
  kind: NonNullable<Wanted["kind"]>,
  sandbox: string | undefined,
  last: string,
): Promise<string[]> {
  switch (kind) {
    case "sandbox":
      return named(await client.call("listSandboxes", { query: { limit: 1000 } }));
    case "snapshot":
      return named(await client.call("listSnapshots", { query: { limit: 1000 } }));
    case "profile":
      return (await client.call("listProfiles", {})).items.map(({ name }) => name);
    case "backend":
      return (await client.call("listBackends", {})).items.map(({ name }) => name);
    case "url":
      return (await client.call("listInstances", {})).items.flatMap(({ url }) => url ?? []);
    case "process": {
      if (sandbox === undefined) return [];
      const { id } = await findSandbox(client, sandbox);
      return (await client.call("listProcesses", { params: { id } })).items.map((process) => process.id);
    }
    case "path":
      return paths(client, last);
    case "context":
      return [];
  }
}

/** `web:` for each sandbox; after the colon the entries of its folder. */
async function paths(client: Transport, last: string): Promise<string[]> {
  const [, name, folder] = /^([^:/]+):(\/(?:.*\/)?)?/.exec(last) ?? [];
  if (name === undefined) {
    return named(await client.call("listSandboxes", { query: { limit: 1000 } })).map((each) => `${each}:/`);
  }
  const { id } = await findSandbox(client, name);
  const path = folder ?? "/";
  const { items } = await client.call("listFiles", { params: { id }, query: { path } });
  return items.map((entry) => `${name}:${path}${entry.name}${entry.kind === "folder" ? "/" : ""}`);
}

function named({ items }: { items: readonly { id: string; name: string | null }[] }): string[] {
  return items.map(({ id, name }) => name ?? id);
}
