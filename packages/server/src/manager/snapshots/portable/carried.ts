import { type Carried, SandboxerError, type RestoreRequestBody } from "@sandboxer/protocol";
import { z } from "zod";
import type { SandboxBackend, SandboxSpec } from "../../../backends/backend.ts";
import { isKeyProblem } from "../../../checkpoints/keys/key-errors.ts";
import type { StoredSnapshot } from "../../../checkpoints/snapshot-record.ts";
import type { ManagerContext } from "../../context.ts";
import type { SandboxPlan } from "../../lifecycle/plan.ts";
import { decodeFileList, type FileList } from "../file-list.ts";
import type { LostExtras } from "../../files/extra-keeper.ts";
import { findSnapshot, labelOf } from "../source.ts";
import { parseStoredSpec } from "../../stored-facts.ts";
import { whyNotAllowed } from "./allowed.ts";
import { loadersOf, loadWay, whyNot } from "./loadable.ts";
import { planOfSnapshot } from "./plan-restore.ts";
import { WORKSPACE_KIND } from "./workspace-archive.ts";

const portableSchema = z.object({
  files: z.number().int().nonnegative(),
  links: z.number().int().nonnegative(),
  bytes: z.number().int().nonnegative(),
  left_out: z.number().int().nonnegative(),
  hard_links: z.number().int().nonnegative().nullish(),
  xattrs: z.number().int().nonnegative().nullish(),
  xattrs_lost: z.number().int().nonnegative().optional(),
  still: z.boolean(),
});

/** Previews what a restore would bring back, without doing anything. */
export async function explainRestore(
  context: ManagerContext,
  idOrName: string,
  body: Pick<RestoreRequestBody, "backend">,
): Promise<Carried> {
  return await carriedBy(context, await findSnapshot(context, idOrName), body);
}

/** Compares a sandbox that is restored as requested with the captured one. */
export async function carriedBy(
  context: ManagerContext,
  snapshot: StoredSnapshot,
  body: RestoreRequestBody,
): Promise<Carried> {
  const plan = planOfSnapshot(context, snapshot, body);
  const backend = context.backend(plan.backend);
  const label = labelOf(snapshot);
  const why = whyNotAt(context, snapshot, backend, plan);
  const whole = snapshot.mode === "full" && why === null ? "kept" : "lost";
  const { spec } = parseStoredSpec(`snapshots/${snapshot.id}/record.json`, snapshot.spec);
  const limited = Object.values(spec.resources).some((value) => value !== undefined);
  return {
    snapshot_id: snapshot.id,
    kind: snapshot.kind,
    from: snapshot.backend,
    backend: backend.name,
    loadable: why === null,
    why_not: why,
    backends: loadersOf(context, label),
    memory: whole,
    processes: whole,
    files: await filesOf(context, snapshot),
    ...extrasOf(snapshot, backend),
    env: "kept",
    secrets: [...new Set(Object.values(plan.spec.secretRefs ?? {}))].toSorted(),
    network: spec.network === "none" ? "none" : backend.capabilities.network ? "kept" : "the backend has none",
    limits: !limited ? "none" : backend.capabilities.limits ? "kept" : "the backend has none",
    notes: [...notesOn(snapshot, backend, plan), ...noteOnUser(spec, backend, plan)],
  };
}

function whyNotAt(
  context: ManagerContext,
  snapshot: StoredSnapshot,
  backend: SandboxBackend,
  { about: { profile }, spec }: SandboxPlan,
): string | null {
  if (snapshot.state === "damaged" || snapshot.state === "missing") {
    return `The snapshot is ${snapshot.state}: ${snapshot.problem ?? "the reason is unknown"}.`;
  }
  const label = labelOf(snapshot);
  if (loadWay(backend, label) === undefined) return whyNot(backend, label);
  return whyNotAllowed(context, { from: snapshot.backend, madeBy: snapshot.profile, profile, spec }, backend);
}

/** Refuses, before anything is done, a restore that would not start. */
export function checkCarried(carried: Carried): void {
  if (carried.loadable) return;
  const canLoad = carried.backends.includes(carried.backend);
  throw new SandboxerError(canLoad ? "not_supported" : "image_incompatible", carried.why_not ?? "", {
    hint:
      carried.backends.length === 0
        ? "No backend of this server can restore it."
        : `It can be restored on ${carried.backends.join(", ")}.`,
    details: { kind: carried.kind, backend: carried.backend, backends: carried.backends },
  });
}

/** A portable capture was counted when it was packed; for others, the file list has the counts. */
async function filesOf(context: ManagerContext, snapshot: StoredSnapshot): Promise<Carried["files"]> {
  const { mode, kind, requirements, id } = snapshot;
  if (mode === "metadata") return { scope: "none", count: null, bytes: null, truncated: false };
  const portable = portableSchema.safeParse(requirements?.["portable"]);
  if (portable.success) {
    const { files, links, bytes } = portable.data;
    return { scope: "workspace", count: files + links, bytes, truncated: false };
  }
  const scope = kind === WORKSPACE_KIND && requirements?.["extension"] !== undefined ? "workspace" : "all";
  const list = await readableList(context, id);
  if (list === undefined) return { scope, count: null, bytes: null, truncated: false };
  const { files, truncated } = list;
  const counted = [...files.values()].filter((file) => file.kind !== "folder");
  return { scope, count: counted.length, bytes: counted.reduce((sum, file) => sum + file.sizeBytes, 0), truncated };
}

/** The counts of a portable capture, and what the backend can keep of them. */
function extrasOf({ requirements }: StoredSnapshot, { keeps }: SandboxBackend): Pick<Carried, "hard_links" | "xattrs"> {
  const portable = portableSchema.safeParse(requirements?.["portable"]);
  const { hard_links: links, xattrs } = portable.data ?? {};
  const counted = (count: number | null | undefined, kept: boolean | undefined): Carried["xattrs"] =>
    count == null ? null : { kept: kept === true ? count : 0, lost: kept === true ? 0 : count };
  return { hard_links: counted(links, keeps?.hardLinks), xattrs: counted(xattrs, keeps?.extendedAttributes) };
}

/** The result of the restore, which only the target file system could determine. */
export function withLost(carried: Carried, lost: LostExtras | undefined): Carried {
  const counted = (count: Carried["xattrs"], missing: number): Carried["xattrs"] =>
    count === null ? null : { kept: Math.max(0, count.kept + count.lost - missing), lost: missing };
  if (lost === undefined) return carried;
  return {
    ...carried,
    hard_links: counted(carried.hard_links, lost.copiedLinks),
    xattrs: counted(carried.xattrs, lost.lostAttributes),
  };
}

function unsaidExtras({ backend, requirements }: StoredSnapshot): string[] {
  const portable = portableSchema.safeParse(requirements?.["portable"]);
  const notes: string[] = [];
  // An archive that a provider packed has the hard links that its tar found.
  if (portable.success && portable.data.hard_links == null)
    notes.push(`Hard links become separate files: ${backend} does not report them.`);
  if (portable.data?.xattrs == null) notes.push(`Extended attributes are lost: ${backend} does not report them.`);
  return notes;
}

/** A damaged list is not counted; it must not prevent a restore. */
async function readableList({ snapshots }: ManagerContext, id: string): Promise<FileList | undefined> {
  const encoded = await snapshots.readFiles(id).catch(unlessKeyMissing);
  return encoded && (await decodeFileList(encoded).catch(() => undefined));
}

/** Neither is an encrypted one, for a caller who only asks for the preview. */
function unlessKeyMissing(error: unknown): undefined {
  if (!isKeyProblem(error)) throw error;
}

function noteOnUser({ user }: SandboxSpec, { name }: SandboxBackend, { spec }: SandboxPlan): string[] {
  return user === spec.user ? [] : [`${name} runs all programs as one user, not as ${user}.`];
}

function notesOn(snapshot: StoredSnapshot, to: SandboxBackend, plan: SandboxPlan): string[] {
  const { requirements, flags, backend: from, kind } = snapshot;
  const portable = portableSchema.safeParse(requirements?.["portable"]);
  const notes: string[] = [];
  if (kind === WORKSPACE_KIND && loadWay(to, labelOf(snapshot)) === "unpacked") {
    notes.push("Changes outside the workspace are lost.", ...unsaidExtras(snapshot));
    if (to.name !== from && plan.spec.image !== undefined)
      notes.push(`${to.name} must provide its image: ${plan.spec.image}.`);
  }
  if (portable.success && portable.data.left_out > 0)
    notes.push(`${portable.data.left_out} sockets, pipes or devices are lost.`);
  if (portable.success && (portable.data.xattrs_lost ?? 0) > 0)
    notes.push(`${portable.data.xattrs_lost} files had more extended attributes than could be captured.`);
  if (portable.success && !portable.data.still)
    notes.push("Files that changed during the capture may be inconsistent.");
  if (flags.enable_checkpoint && !plan.flags.enable_checkpoint)
    notes.push(`${to.name} cannot save a running sandbox: it has no checkpoints.`);
  return notes;
}
