import { SandboxerError, type ErrorCode } from "@sandboxer/protocol";
import { type ComposePlacement } from "./placement.ts";
import { targetOf } from "./ssh-errors.ts";

interface Row {
  readonly code: ErrorCode;
  readonly says: (target: string, detail: string) => string;
  readonly hint: string;
}

/** Errors that the scripts on the host report by name, with `die`. */
const ROWS: Readonly<Record<string, Row>> = {
  no_docker: {
    code: "backend_unavailable",
    says: (target) => `The host ${target} has no docker.`,
    hint: "Install Docker there (with the compose plugin), or add it to the PATH of commands that run over ssh.",
  },
  docker_down: {
    code: "backend_unavailable",
    says: (target, detail) => `Docker on ${target} does not answer: ${detail}`,
    hint: "Start the Docker engine there, add the user to the group docker, or correct placement.docker_host.",
  },
  no_compose: {
    code: "backend_unavailable",
    says: (target) => `The host ${target} has neither \`docker compose\` nor \`docker-compose\`.`,
    hint: "Install the compose plugin there.",
  },
  no_tool: {
    code: "backend_unavailable",
    says: (target, detail) => `The host ${target} has no ${detail}.`,
    hint: "Install tar, gzip, coreutils and util-linux there.",
  },
  no_base: {
    code: "backend_unavailable",
    says: (target, detail) => `The folder for sandboxes on ${target} cannot be used: ${detail}`,
    hint: "Create the folder of placement.base_dir there and make it writable for the user, or choose another folder.",
  },
  exists: {
    code: "wrong_state",
    says: (target, detail) => `${target} already has a sandbox with this id, in ${detail}.`,
    hint: "Resume it, or delete it first.",
  },
  busy: {
    code: "backend_unavailable",
    says: (target) => `Something else has been changing this sandbox on ${target} for too long.`,
    hint: "Look for a hanging docker compose on that host, then try again.",
  },
  compose_missing: {
    code: "bad_request",
    says: (_, detail) => `The compose file ${detail} is not in the workspace.`,
    hint: "Name it with placement.compose_file, relative to the repository.",
  },
  compose_broken: {
    code: "bad_request",
    says: (_, detail) => `The compose file is broken: ${detail}`,
    hint: "Correct it; `docker compose config -q` in the repository shows the same error.",
  },
  no_service: {
    code: "bad_request",
    says: (_, detail) => `The compose file has no service ${detail}.`,
    hint: "Correct placement.service.",
  },
  up_failed: {
    code: "backend_unavailable",
    says: (target, detail) => `docker compose up failed on ${target}: ${detail}`,
    hint: "Run `docker compose up` with the same repository on that host to see the same error.",
  },
  exited: {
    code: "sandbox_failed",
    says: (target, detail) => `The service on ${target} does not run: ${detail}`,
    hint: "The service that commands run in must keep running. `docker compose logs` shows why it ended.",
  },
  not_ready: {
    code: "timeout",
    says: (target, detail) => `The service on ${target} did not become healthy: ${detail}`,
    hint: "Check the health check of the service.",
  },
  artifact_damaged: {
    code: "image_damaged",
    says: (target, detail) => `The artifact of the snapshot arrived incomplete on ${target}: ${detail}`,
    hint: "Take the snapshot again, or restore an older one.",
  },
  tar_failed: {
    code: "backend_unavailable",
    says: (target, detail) => `The workspace on ${target} could not be packed or unpacked: ${detail}`,
    hint: "The user on that host must be able to read the files that the containers write: use root, or the containers' own user.",
  },
  left_over: {
    code: "backend_unavailable",
    says: (target, detail) => `Parts of the sandbox could not be removed on ${target}: ${detail}`,
    hint: "Allow the user on that host to remove the files that the containers wrote, then delete the sandbox again.",
  },
};

const DIED = /^sandboxer:([a-z_]+):(.*)$/m;

/** The error of a failed script; `stderr` is hostile input, and only its last lines are shown. */
export function remoteError(placement: ComposePlacement, code: number | undefined, stderr: string): SandboxerError {
  const target = targetOf(placement);
  if (/no space left on device|disk quota exceeded|wrote only \d+ of \d+ bytes/i.test(stderr)) {
    return new SandboxerError("no_space", `No space left on the host ${target}.`, {
      hint: `Free space there, below ${placement.base_dir} or where Docker keeps its data.`,
    });
  }
  const died = DIED.exec(stderr);
  const row = died === null ? undefined : ROWS[died[1] ?? ""];
  const before = died === null ? stderr : stderr.slice(0, died.index);
  const detail = [died?.[2]?.trim() ?? "", tellingLine(before)].find((text) => text !== "") ?? "";
  if (row !== undefined) {
    return new SandboxerError(row.code, row.says(target, detail), {
      hint: row.hint,
      details: { host: placement.host, reason: died?.[1] },
    });
  }
  return new SandboxerError(
    "backend_unavailable",
    `A command on ${target} failed (exit code ${code ?? "none"}): ${detail}`,
    {
      hint: "Run the command by hand on that host to see the error.",
    },
  );
}

/** The name that the script died with; undefined if it did not end by `die`. */
export function refusedBy(error: unknown): string | undefined {
  const reason = error instanceof SandboxerError ? error.details["reason"] : undefined;
  return typeof reason === "string" ? reason : undefined;
}

/** The first line that contains "error", otherwise the last one. */
function tellingLine(text: string): string {
  const lines = text
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "");
  const error = lines.find((line) => /\b(error|failed|invalid|cannot|denied|unsupported|must be)\b/i.test(line));
  return (error ?? lines.at(-1) ?? "").slice(0, 400);
}
