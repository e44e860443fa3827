import { randomBytes } from "node:crypto";
import type { AcquireRequest } from "../backend.ts";
import type { Container } from "./engine/answers.ts";

/** Labels that mark a container as ours, and by which it is found again. */
export const Label = {
  key: "sandboxer.key",
  specHash: "sandboxer.spec-hash",
  owner: "sandboxer.owner",
  sandboxId: "sandboxer.sandbox-id",
  idleTtlMs: "sandboxer.idle-ttl-ms",
  /** How often it was restored from a checkpoint. */
  generation: "sandboxer.generation",
  /** The token with which a server takes over the agent of a running container. Programs inside cannot read labels. */
  resyncToken: "sandboxer.resync-token",
  /** On images of a snapshot: the instance that made it. Containers created from one have it too. */
  snapshot: "sandboxer.snapshot",
} as const;

type Known = Pick<AcquireRequest, "sandboxId" | "identity">;

const NAME = /^\/?sandboxer-([A-Za-z0-9_.-]+)-[0-9a-f]{12}$/;

/**
 * Labels of a new container. All are set, because missing ones are inherited from its image, which may be the snapshot
 * of another sandbox.
 */
export function labelsOf(
  { sandboxId, identity }: Known,
  owner: string,
  { generation = 0, resyncToken }: { readonly generation?: number; readonly resyncToken?: string | undefined } = {},
): Record<string, string> {
  return {
    [Label.sandboxId]: sandboxId,
    [Label.owner]: identity?.owner ?? owner,
    [Label.key]: identity?.key ?? "",
    [Label.specHash]: identity?.specHash ?? "",
    [Label.idleTtlMs]: identity === undefined ? "" : String(identity.idleTtlMs),
    [Label.generation]: String(generation),
    // The token of a restored agent is on its image.
    ...(resyncToken === undefined ? {} : { [Label.resyncToken]: resyncToken }),
  };
}

/**
 * The labels of the containers that a request may resume. An id belongs to one sandbox, whichever installation created
 * it; a key is valid within one installation.
 */
export function labelsToFind({ sandboxId, identity }: Known): string[] {
  if (identity === undefined) return [`${Label.sandboxId}=${sandboxId}`];
  return [`${Label.owner}=${identity.owner}`, `${Label.key}=${identity.key}`];
}

/** Labels never change, so the name says which server process holds a container now. */
export function newContainerName(instanceId: string): string {
  return `sandboxer-${instanceId}-${randomBytes(6).toString("hex")}`;
}

/** Containers of the first releases have the token in a variable. */
export const RESYNC_VARIABLE = "SANDBOXER_RESYNC";

/** Undefined: the container cannot be taken over. */
export function resyncTokenOf({ Config }: Pick<Container, "Config">): string | undefined {
  const variable = Config.Env.find((each) => each.startsWith(`${RESYNC_VARIABLE}=`));
  const token = Config.Labels[Label.resyncToken] || variable?.slice(RESYNC_VARIABLE.length + 1);
  return token === "" ? undefined : token;
}

/** The instance that holds a container; undefined for a foreign name. */
export function holderOf(name: string): string | undefined {
  return NAME.exec(name)?.[1];
}

/** How long it has been stopped; undefined while it is running. */
export function stoppedForMs({ State, Created }: Container, nowMs: number): number | undefined {
  if (State.Status === "created") return nowMs - Date.parse(Created);
  if (State.Status !== "exited" && State.Status !== "dead") return undefined;
  const finishedMs = Date.parse(State.FinishedAt);
  // The year 1 means never.
  return nowMs - (finishedMs > 0 ? finishedMs : Date.parse(Created));
}

/** Undefined if it may be kept forever. */
export function idleTtlMsOf({ Config }: Container): number | undefined {
  const text = Config.Labels[Label.idleTtlMs] ?? "";
  return /^\d{1,15}$/.test(text) ? Number(text) : undefined;
}

export function generationOf({ Config }: Pick<Container, "Config">): number {
  const text = Config.Labels[Label.generation] ?? "";
  return /^\d{1,9}$/.test(text) ? Number(text) : 0;
}
