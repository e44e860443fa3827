import { isSandboxId, SandboxerError, type CreateRequestBody, type Profile } from "@sandboxer/protocol";
import type { SandboxManager } from "../../../manager/sandbox-manager.ts";
import { E2bError } from "../errors.ts";

/** A template of E2B is a profile, a snapshot or an image here. */
export type Template =
  | { readonly kind: "fresh"; readonly id: string; readonly request: Pick<CreateRequestBody, "profile" | "image"> }
  | { readonly kind: "snapshot"; readonly id: string };

/** Templates that every client expects. A profile of the same name takes precedence. */
const BUILT_IN: ReadonlySet<string> = new Set(["base", "code-interpreter-v1"]);
const TAG = "default";

/** Throws a 404 if there is none. */
export async function findTemplate(manager: SandboxManager, templateId: string): Promise<Template> {
  const profile = profileNamed(manager, templateId);
  if (profile !== undefined) return { kind: "fresh", id: templateId, request: { profile: profile.name } };
  if (BUILT_IN.has(withoutTag(templateId))) return { kind: "fresh", id: withoutTag(templateId), request: {} };
  const snapshotId = await findSnapshot(manager, templateId);
  if (snapshotId !== undefined) return { kind: "snapshot", id: snapshotId };
  if (isImage(templateId)) return { kind: "fresh", id: templateId, request: { image: templateId } };
  throw noTemplate(templateId);
}

/** The id of a snapshot that a client names by id, `name`, `name:default` or `team/name`. */
export async function findSnapshot(manager: SandboxManager, given: string): Promise<string | undefined> {
  const name = snapshotName(given);
  if (name === undefined) return undefined;
  try {
    return (await manager.snapshots.get(name)).id;
  } catch (error) {
    if (error instanceof SandboxerError && error.row.httpStatus === 404) return undefined;
    throw error;
  }
}

/** Undefined: it cannot be the name of a snapshot. */
export function snapshotName(given: string): string | undefined {
  const name = withoutTag(given).replace(/^[A-Za-z0-9][\w.-]*\//, "");
  return /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/.test(name) ? name : undefined;
}

export function withoutTag(given: string): string {
  return given.endsWith(`:${TAG}`) ? given.slice(0, -TAG.length - 1) : given;
}

/** For lists. */
export function templateView({ name, resources, description }: Pick<Profile, "name" | "resources" | "description">) {
  const since = "1970-01-01T00:00:00.000Z";
  return {
    templateID: name,
    buildID: "00000000-0000-0000-0000-000000000000",
    buildStatus: "ready",
    cpuCount: Math.ceil(resources?.cpus ?? 1),
    memoryMB: resources?.memory_mb ?? 512,
    diskSizeMB: resources?.disk_mb ?? 1024,
    public: false,
    aliases: [name],
    names: [name],
    createdAt: since,
    updatedAt: since,
    createdBy: null,
    lastSpawnedAt: null,
    spawnCount: 0,
    buildCount: 1,
    envdVersion: "",
    ...(description === undefined ? {} : { description }),
  };
}

export function builtInTemplates({ profiles }: SandboxManager): Pick<Profile, "name">[] {
  return [...BUILT_IN].filter((name) => profiles.find(name) === undefined).map((name) => ({ name }));
}

export function profileNamed({ profiles }: SandboxManager, templateId: string): Profile | undefined {
  return profiles.find(templateId) ?? profiles.find(withoutTag(templateId));
}

/** A name alone could be a misspelt template, so an image needs a tag, a registry or a kind. */
function isImage(text: string): boolean {
  return /[/:@]/.test(text) && !isSandboxId(text);
}

function noTemplate(templateId: string): E2bError {
  return new E2bError(
    404,
    `There is no template ${JSON.stringify(templateId.slice(0, 200))}. Use base, a profile of the server (sandboxer profiles list), a snapshot, or an image such as docker.io/library/python:3.13.`,
  );
}
