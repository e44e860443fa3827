import { computed, signal } from "@preact/signals";
import { Sandboxer, SandboxerError, type ServerRecord } from "@sandboxer/client";
import { errorOfResponse, unreachable } from "@sandboxer/client/transport";

/** The server of this page. It relays calls about sandboxes of other servers. */
export const client = new Sandboxer({ url: location.origin, relay: true });

type Session =
  | { readonly state: "starting" }
  | { readonly state: "logged out"; readonly error?: SandboxerError }
  | { readonly state: "unreachable"; readonly error: SandboxerError }
  | { readonly state: "ready"; readonly server: ServerRecord };

export const session = signal<Session>({ state: "starting" });
export const server = computed(() => (session.value.state === "ready" ? session.value.server : undefined));

const RANKS = { read: 0, use: 1, admin: 2 } as const;
export type Scope = keyof typeof RANKS;

/** Whether the user's key allows something. Other actions are not offered. */
export function may(scope: Scope): boolean {
  return server.value !== undefined && RANKS[server.value.scope] >= RANKS[scope];
}

/** Asks the server who we are: it may need no key, or the browser may have a session. */
export async function start(): Promise<void> {
  try {
    session.value = { state: "ready", server: await client.info() };
  } catch (thrown) {
    const error = asError(thrown);
    session.value = error.code === "unauthorized" ? { state: "logged out" } : { state: "unreachable", error };
  }
}

/** The responding server may be another one, or have been restarted. */
export async function refreshServer(): Promise<void> {
  try {
    const answer = await client.info();
    if (session.peek().state === "ready") session.value = { state: "ready", server: answer };
  } catch (thrown) {
    asError(thrown);
  }
}

/** The key is exchanged for a cookie that scripts cannot read; the page does not keep it. */
export async function logIn(key: string): Promise<void> {
  try {
    await post("/v1/login", { authorization: `Bearer ${key}`, "sandboxer-key": key });
    await start();
  } catch (thrown) {
    const error = asError(thrown);
    session.value = { state: "logged out", error: error.code === "unauthorized" ? WRONG_KEY : error };
  }
}

/** The next user must find nothing of the previous one: the page starts fresh. */
export async function logOut(): Promise<void> {
  await post("/v1/logout", {});
  session.value = { state: "logged out" };
  location.reload();
}

async function post(path: string, headers: Readonly<Record<string, string>>): Promise<void> {
  const response = await fetch(path, { method: "POST", headers, credentials: "same-origin" }).catch(
    (thrown: unknown) => {
      throw unreachable(location.origin, thrown);
    },
  );
  if (!response.ok) throw await errorOfResponse(response);
}

const OVER = new SandboxerError("unauthorized", "The session has expired.", {
  hint: "Log in again; the page continues where it was.",
});

const WRONG_KEY = new SandboxerError("unauthorized", "This server does not accept this key.", {
  hint: "Check that you pasted all of it. It may belong to another server, or have been revoked or expired: `sandboxer keys list` on the server's machine lists the valid keys, and `sandboxer keys create` makes a new one.",
});

/** Converts anything thrown to an error with a code, a message and a hint. An expired session ends it. */
export function asError(thrown: unknown): SandboxerError {
  const error =
    thrown instanceof SandboxerError
      ? thrown
      : new SandboxerError("internal", thrown instanceof Error ? thrown.message : String(thrown), {
          hint: "Reload the page. If this happens again, check the browser's console.",
        });
  if (error.code === "unauthorized" && session.peek().state === "ready")
    session.value = { state: "logged out", error: OVER };
  return error;
}
