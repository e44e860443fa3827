import { isErrno, SandboxerError, type ErrorCode } from "@sandboxer/protocol";
import { z } from "zod";
import type { EngineAddress } from "./address.ts";

const Refusal = z.object({ message: z.string() });
const NO_SPACE = /no space left on device|disk quota exceeded/i;

/** The engine could not be reached. */
export function unreachable(address: EngineAddress, cause: unknown): SandboxerError {
  const where = `The Docker engine at ${address.text}`;
  const code = isErrno(cause) ? cause.code : undefined;
  switch (code) {
    case "ENOENT":
    case "ECONNREFUSED":
      return new SandboxerError("backend_unavailable", `${where} does not answer: nothing listens there.`, {
        cause,
        hint: "Start it (systemctl start docker), or choose another one with --docker-host or DOCKER_HOST.",
      });
    case "EACCES":
    case "EPERM":
      return new SandboxerError("backend_unavailable", `${where} denies access to this user.`, {
        cause,
        hint: "Add the user to the group docker (usermod -aG docker USER) and log in again, or run the server as root.",
      });
    default: {
      const reason = cause instanceof Error ? cause.message : String(cause);
      return new SandboxerError("backend_unavailable", `${where} cannot be reached: ${reason}.`, {
        cause,
        hint: "Check --docker-host and the network between the server and the engine.",
      });
    }
  }
}

/** The engine answered with an error. `details.status` holds its HTTP status. */
export function refused(what: string, status: number, body: string): SandboxerError {
  const reason = reasonOf(body) || `HTTP status ${status}`;
  const details = { status };
  const message = `Docker could not ${what}: ${firstLine(reason)}`;
  if (NO_SPACE.test(reason)) {
    const hint = "Free space on the engine's disk, for example with `docker system prune`.";
    return new SandboxerError("no_space", message, { hint, details });
  }
  if (/unknown or invalid runtime name/i.test(reason)) {
    const hint = "Add the runtime to the engine's daemon.json and restart it, or choose another with --docker-runtime.";
    return new SandboxerError("backend_unavailable", message, { hint, details });
  }
  return new SandboxerError(codeOf(status), message, { details });
}

/** A response that violates the engine's API. */
export function unexpected(what: string, cause: unknown): SandboxerError {
  return new SandboxerError("backend_unavailable", `Docker sent an unexpected response when asked to ${what}.`, {
    cause,
    hint: "Check that --docker-host is the address of a Docker engine of version 20.10 or newer.",
  });
}

export function statusOf(thrown: unknown): number | undefined {
  const status = thrown instanceof SandboxerError ? thrown.details["status"] : undefined;
  return typeof status === "number" ? status : undefined;
}

function codeOf(status: number): ErrorCode {
  if (status === 400 || status === 404) return "bad_request";
  if (status === 401 || status === 403) return "permission_denied";
  if (status === 409) return "wrong_state";
  return "backend_unavailable";
}

function reasonOf(body: string): string {
  try {
    return Refusal.parse(JSON.parse(body)).message.trim();
  } catch {
    return body.trim();
  }
}

function firstLine(text: string): string {
  const [line = ""] = text.split("\n");
  return line.length > 500 ? `${line.slice(0, 500)}…` : line;
}
