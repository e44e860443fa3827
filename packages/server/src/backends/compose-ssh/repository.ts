import { spawn } from "node:child_process";
import { readFile, realpath, stat } from "node:fs/promises";
import { isAbsolute, join, relative } from "node:path";
import { SandboxerError } from "@sandboxer/protocol";
import { isMap, parseDocument } from "yaml";
import type { ComposePlacement } from "./placement.ts";

const COMPOSE_FILES = ["compose.yaml", "compose.yml", "docker-compose.yaml", "docker-compose.yml"];

/** A folder of this machine with a compose project. */
export interface Repository {
  readonly folder: string;
  readonly composeFile: string;
  readonly service: string;
}

/**
 * Checks `inputs.repo` before anything happens. It must be in one of the folders that the server allows: a client that
 * could name any folder could read every file of the server.
 */
export async function openRepository(
  repo: string | undefined,
  placement: ComposePlacement,
  allowedFolders: readonly string[],
): Promise<Repository> {
  if (repo === undefined || repo === "") {
    throw new SandboxerError("bad_request", "inputs.repo is missing.", {
      hint: "Set inputs.repo to the folder of the compose project.",
    });
  }
  const folder = await existingFolder(repo);
  await checkAllowed(folder, allowedFolders);
  const composeFile = await findComposeFile(folder, placement.compose_file);
  const service = placement.service ?? (await firstService(folder, composeFile));
  return { folder, composeFile, service };
}

/** Streams the folder as an archive. Concurrent changes are the user's own responsibility. */
export async function* packFolder(folder: string): AsyncGenerator<Uint8Array> {
  const child = spawn("tar", ["-C", folder, "-cf", "-", "."], { stdio: ["ignore", "pipe", "pipe"] });
  let said = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => (said = (said + text).slice(-4096)));
  const ended = new Promise<number | null>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", resolve);
  });
  ended.catch(() => {});
  try {
    yield* child.stdout as AsyncIterable<Uint8Array>;
    const code = await ended;
    // 1: a file changed while it was read.
    if (code === 0 || code === 1) return;
    throw new SandboxerError("bad_request", `inputs.repo cannot be read: ${said.trim().split("\n")[0] ?? ""}`);
  } finally {
    child.kill();
  }
}

async function existingFolder(repo: string): Promise<string> {
  const wrong = (why: string): SandboxerError =>
    new SandboxerError("bad_request", `inputs.repo ${why}: ${repo}`, {
      hint: "Give the absolute path of a folder on the server; clone a git repository first.",
    });
  if (!isAbsolute(repo) || repo.includes("\0")) throw wrong("is not an absolute path");
  const folder = await realpath(repo).catch(() => undefined);
  if (folder === undefined) throw wrong("does not exist");
  if (!(await stat(folder)).isDirectory()) throw wrong("is not a folder");
  return folder;
}

async function checkAllowed(folder: string, allowedFolders: readonly string[]): Promise<void> {
  for (const allowed of allowedFolders) {
    const root = await realpath(allowed).catch(() => undefined);
    if (root === undefined) continue;
    const path = relative(root, folder);
    if (path !== ".." && !path.startsWith("../") && !isAbsolute(path)) return;
  }
  throw new SandboxerError("permission_denied", `inputs.repo is outside the allowed repository folders: ${folder}`, {
    hint: `Put it into ${allowedFolders.join(" or ") || "a folder that the server allows (--repositories)"}.`,
  });
}

async function findComposeFile(folder: string, named: string | undefined): Promise<string> {
  for (const name of named === undefined ? COMPOSE_FILES : [named]) {
    if ((await stat(join(folder, name)).catch(() => undefined))?.isFile() === true) return name;
  }
  throw new SandboxerError(
    "bad_request",
    `There is no compose file in ${folder}: ${named ?? COMPOSE_FILES.join(", ")}.`,
    {
      hint: "Add one, or name it with placement.compose_file, relative to the repository.",
    },
  );
}

/** The first service in the file, in the author's order. */
async function firstService(folder: string, composeFile: string): Promise<string> {
  const document = parseDocument(await readFile(join(folder, composeFile), "utf8"));
  const [problem] = document.errors;
  if (problem !== undefined) {
    throw new SandboxerError(
      "bad_request",
      `The compose file is broken: ${composeFile}: ${problem.message.split("\n")[0]}`,
    );
  }
  const services: unknown = document.get("services");
  const [first] = isMap(services) ? services.items : [];
  if (first === undefined) {
    throw new SandboxerError("bad_request", `The compose file is broken: ${composeFile} has no services.`, {
      hint: "If it includes others, name the service with placement.service.",
    });
  }
  return String(first.key);
}
