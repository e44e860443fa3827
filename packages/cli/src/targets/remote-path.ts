import { SandboxerError } from "@sandboxer/protocol/errors";

/** A path in a sandbox, such as `web:/tmp/x`. */
export interface RemotePath {
  readonly sandbox: string;
  readonly path: string;
}

/** Undefined for a local path. A local name with a colon is written with a folder: `./a:b`. */
export function parseRemotePath(text: string): RemotePath | undefined {
  const [, sandbox, path] = /^([A-Za-z0-9][A-Za-z0-9._-]*):(.*)$/s.exec(text) ?? [];
  if (sandbox === undefined || path === undefined) return undefined;
  if (path.startsWith("/")) return { sandbox, path };
  throw new SandboxerError("bad_request", `"${text}" has no absolute path.`, {
    hint: `Write an absolute path: ${sandbox}:/${path || "tmp"}. Write a local file whose name has a colon as ./${text}.`,
  });
}

export function requireRemotePath(text: string): RemotePath {
  const remote = parseRemotePath(text);
  if (remote !== undefined) return remote;
  throw new SandboxerError("bad_request", `"${text}" is not a path in a sandbox.`, {
    hint: "Write the sandbox, a colon and an absolute path: web:/tmp.",
  });
}
