import type { HarnessV1SandboxProvider } from "@ai-sdk/harness";
import { Sandbox, Sandboxer, SandboxerError, type ClientOptions, type CreateOptions } from "@sandboxer/client";
import { openSession, type SandboxerSession } from "./session.ts";

export type SandboxerProviderOptions = ClientOptions & {
  /** Settings of new sandboxes: image, env, network, resources and so on. */
  readonly settings?: CreateOptions;
  /** Ports that sessions report; `getPortEndpoint` resolves others too. */
  readonly ports?: readonly number[];
};

type CreateSessionOptions = NonNullable<Parameters<HarnessV1SandboxProvider["createSession"]>[0]>;

export interface SandboxerProvider extends HarnessV1SandboxProvider {
  readonly createSession: (options?: CreateSessionOptions) => Promise<SandboxerSession>;
  readonly resumeSession: (options: { sessionId: string; abortSignal?: AbortSignal }) => Promise<SandboxerSession>;
}

const PROVIDER_ID = "sandboxer";
/** The label with the session's id, by which a later process finds the sandbox. */
const SESSION_LABEL = "ai-sdk-session";
const AUTHENTICATION: readonly string[] = ["unauthorized", "permission_denied", "key_required", "wrong_key"];

/** Sandboxes for the sessions of a harness. Nothing is requested before a session is created. */
export function sandboxerProvider(options: SandboxerProviderOptions = {}): SandboxerProvider {
  const { settings = {}, ports = [], ...connection } = options;
  const client = "client" in connection ? connection.client : new Sandboxer(connection);
  return {
    specificationVersion: "harness-sandbox-v1",
    providerId: PROVIDER_ID,
    createSession: ({ sessionId, identity, onFirstCreate, abortSignal: signal } = {}) =>
      authenticated(async () => {
        const labels = { ...settings.labels, ...(sessionId === undefined ? {} : { [SESSION_LABEL]: sessionId }) };
        const given = { ...settings, client, labels, signal };
        const prepared = identity === undefined ? undefined : await restored(snapshotName(identity), given);
        const sandbox = prepared ?? (await Sandbox.create(given));
        // Nobody could find a session without an id again.
        const session = await openSession(sandbox, { ports, keep: sessionId !== undefined, signal });
        if (prepared !== undefined) return session;
        try {
          await onFirstCreate?.(session.restricted(), signal === undefined ? {} : { abortSignal: signal });
          if (identity !== undefined && onFirstCreate !== undefined) await remember(sandbox, snapshotName(identity));
        } catch (error) {
          await session.destroy();
          throw error;
        }
        return session;
      }),
    resumeSession: ({ sessionId, abortSignal: signal }) =>
      authenticated(async () => {
        const sandbox = await find(client, sessionId, signal);
        await sandbox.resume({ signal });
        return await openSession(sandbox, { ports, keep: true, signal });
      }),
  };
}

/** Names of snapshots have few characters; an identity is a hash already. */
function snapshotName(identity: string): string {
  return `ai-sdk-${identity.replaceAll(/[^A-Za-z0-9._-]/g, "_").slice(0, 100)}`;
}

/** A sandbox from the snapshot of an identity; undefined if there is none that can be restored here. */
async function restored(
  name: string,
  { client, labels, signal, name: sandboxName, env }: CreateOptions & { readonly client: Sandboxer },
): Promise<Sandbox | undefined> {
  try {
    return await Sandbox.restore(name, {
      client,
      signal,
      ...(labels === undefined ? {} : { labels }),
      ...(sandboxName === undefined ? {} : { name: sandboxName }),
      ...(env === undefined ? {} : { env }),
    });
  } catch (error) {
    const isMissing = error instanceof SandboxerError && error.code === "snapshot_not_found";
    if (isMissing) return undefined;
    throw error;
  }
}

/** Another process may have been first; its snapshot is as good. */
async function remember(sandbox: Sandbox, name: string): Promise<void> {
  await sandbox.snapshot({ name }).catch((error: unknown) => {
    const known = error instanceof SandboxerError && ["name_taken", "checkpoint_disabled"].includes(error.code);
    if (!known) throw error;
  });
}

/** By the id that the session was created with, or by the id of the sandbox, which the session reports. */
async function find(client: Sandboxer, sessionId: string, signal: AbortSignal | undefined): Promise<Sandbox> {
  const label = `${SESSION_LABEL}=${sessionId}`;
  for await (const sandbox of Sandbox.list({ label }, { client, signal })) {
    if (sandbox.record.state !== "destroyed") return sandbox;
  }
  return await Sandbox.attach(sessionId, { client, signal });
}

/** Harnesses tell wrong credentials from other failures by the class of the error. */
async function authenticated<Result>(work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (cause) {
    if (!(cause instanceof SandboxerError) || !AUTHENTICATION.includes(cause.code)) throw cause;
    const { HarnessSandboxAuthenticationError } = await import("@ai-sdk/harness");
    const message = `${cause.message} ${cause.hint}`;
    throw new HarnessSandboxAuthenticationError({ message, sandboxProviderId: PROVIDER_ID, cause });
  }
}
