import { readdir, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { SandboxerError } from "@sandboxer/protocol";
import { z } from "zod";
import type { SnapshotMember, SnapshotOptions, SnapshotPayload } from "../backend.ts";
import type {
  ExtensionHandle,
  ExtensionSnapshot,
  ExtensionSnapshotKind,
  SandboxExtension,
  SnapshotRequest,
} from "./extension.ts";
import { asExtensionError, lacking, toolsOf } from "./hooks.ts";

const requirementsSchema = z.object({ extension: z.string(), record: z.record(z.string(), z.string()) });

export function kindOf(extension: SandboxExtension): ExtensionSnapshotKind {
  return extension.snapshotKind ?? "stub-metadata";
}

export function canSnapshot(extension: SandboxExtension): boolean {
  const hooks = extension.snapshot !== undefined && extension.restoreFromSnapshot !== undefined;
  return hooks && extension.supportsSnapshots?.() !== false;
}

/** Every file that the hook left in the folder is a member; on failure the folder is empty again. */
export async function takeSnapshot(
  extension: SandboxExtension,
  handle: ExtensionHandle,
  request: SnapshotRequest,
  options: SnapshotOptions,
): Promise<SnapshotPayload> {
  if (extension.snapshot === undefined || !canSnapshot(extension)) throw lacking(extension, "snapshots");
  if (options.mode === "full") throw lacking(extension, "snapshots of memory and processes");
  try {
    const given = await extension.snapshot(handle, request, toolsOf(options));
    const record = requirementsSchema.shape.record.parse(given);
    return {
      kind: kindOf(extension),
      members: await membersOf(request.into),
      requirements: { extension: extension.name, record },
    };
  } catch (thrown) {
    for (const name of await readdir(request.into).catch(() => [])) {
      await rm(join(request.into, name), { recursive: true, force: true });
    }
    throw asExtensionError(extension, thrown);
  }
}

/** The extension's part of a payload; refused before any side effect if it belongs to another. */
export function openSnapshot(extension: SandboxExtension, payload: SnapshotPayload): ExtensionSnapshot {
  if (!canSnapshot(extension)) throw lacking(extension, "snapshots");
  const requirements = requirementsSchema.safeParse(payload.requirements);
  if (payload.kind !== kindOf(extension) || !requirements.success) {
    throw new SandboxerError(
      "image_incompatible",
      `The backend ${extension.name} loads ${kindOf(extension)}, not this ${payload.kind}.`,
    );
  }
  if (requirements.data.extension !== extension.name) {
    throw new SandboxerError(
      "image_incompatible",
      `The snapshot was taken by the backend ${requirements.data.extension}; ${extension.name} cannot restore it.`,
    );
  }
  return { record: requirements.data.record, members: payload.members };
}

async function membersOf(folder: string): Promise<SnapshotMember[]> {
  const names = (await readdir(folder)).toSorted();
  return Promise.all(
    names.map(async (name) => {
      const path = join(folder, name);
      return { name, path, sizeBytes: (await stat(path)).size };
    }),
  );
}
