import { type Head, SandboxerError } from "@sandboxer/protocol";
import type { SnapshotPayload, StateNeeds } from "../../backends/backend.ts";
import type { MasterKey } from "../../checkpoints/keys/master-key.ts";
import type { OpenImage } from "../../checkpoints/open-image.ts";
import type { ManagerContext } from "../context.ts";
import { whyNotOn } from "./machine-fit.ts";

type Label = Pick<SnapshotPayload, "kind" | "requirements">;

/** What a saved state needs of a machine; undefined: this server cannot tell. */
export function stateNeeds(
  { options }: Pick<ManagerContext, "options">,
  backend: string,
  label: Label,
): StateNeeds | undefined {
  return options.backends.get(backend)?.needsOf?.(label);
}

/** Refuses a saved state that this machine cannot load, before anything is done. */
export function checkMachine(context: ManagerContext, backend: string, label: Label, name?: string): void {
  const { machine = {}, engines = [] } = context.backend(backend);
  const needs = stateNeeds(context, backend, label) ?? {};
  // A backend with several engines looks for the right one when it loads the state, and says where it has looked.
  const differences = whyNotOn(engines.length > 0 ? { ...machine, engines: undefined } : machine, needs);
  if (differences.length === 0) return;
  const of = name === undefined ? "" : ` ${name}`;
  throw new SandboxerError(
    "image_incompatible",
    `The image${of} cannot run on this server: ${differences.join("; ")}.`,
    {
      details: { misfit: "image", differences },
    },
  );
}

/**
 * The image that a sandbox would be restored from; undefined: there is none, or it cannot be read, which its restore
 * reports.
 */
export async function imageOf(
  { durable }: ManagerContext,
  sandboxId: string,
  { residence, checkpoint }: Pick<Head, "residence" | "checkpoint">,
  {
    name = checkpoint?.name,
    presentedKey,
  }: { readonly name?: string | undefined; readonly presentedKey?: MasterKey | undefined } = {},
): Promise<OpenImage | undefined> {
  if (residence === "provider" || name === undefined) return undefined;
  return await durable.checkpoints.open(sandboxId, name, { presentedKey }).catch(() => undefined);
}
