import { type ProvenCheckpoint, SandboxerError } from "@sandboxer/protocol";
import type { UnpackOptions } from "../../checkpoints/unpacked-state.ts";
import { checkpointKey } from "../../checkpoints/checkpoint-names.ts";
import type { ProofContext } from "../room-contexts.ts";
import { checkpointNotFound, notFound } from "../not-found.ts";
import { parseStoredSpec } from "../stored-facts.ts";
import type { VerbOptions } from "../observing/operations/tracked.ts";
import { checkTrial, notRestored, tryRestore } from "./trial-restore.ts";

const HINT = "Save the sandbox again while it runs, or test an older checkpoint. See the server's log for details.";

/**
 * Test-restores a checkpoint of a sandbox, by default its newest. The sandbox is neither resumed nor delayed, wherever
 * it is. The result is in the response and in the events: checkpoints have no record to hold it.
 */
export async function proveCheckpoint(
  context: ProofContext,
  sandboxId: string,
  checkpoint: string | undefined,
  options: VerbOptions = {},
): Promise<ProvenCheckpoint> {
  const head = await context.storedHead(sandboxId);
  if (head === undefined || head.state === "deleted") throw notFound(sandboxId);
  const name = checkpoint ?? head.checkpoint?.name;
  if (name === undefined) throw nothingSaved(head.lineage.snapshot);
  const { checkpoints } = context.durable;
  const isThere = async (): Promise<boolean> => await checkpoints.hasImage(checkpointKey(sandboxId, name));
  const isNewest = async (): Promise<boolean> => (await context.storedHead(sandboxId))?.checkpoint?.name === name;
  if (name !== head.checkpoint?.name && !(await isListed(context, sandboxId, name))) throw checkpointNotFound(name);
  const backend = context.backend(head.backend);
  const { spec } = parseStoredSpec(`${sandboxId}/metadata.json`, head.spec);
  checkTrial(backend);
  const digest = name === head.checkpoint?.name ? { sha256: head.checkpoint.sha256 } : {};
  const tell = (type: string, data: object): void =>
    context.events.append({ type, sandboxId, data: { checkpoint: name, ...data } });
  let proof: ProvenCheckpoint["proven"] | undefined;
  const trial = {
    sandboxId,
    backend,
    spec,
    load: (folder: string, given: UnpackOptions) => checkpoints.load(sandboxId, name, folder, { ...given, ...digest }),
    proven: async (proven: ProvenCheckpoint["proven"]) => {
      proof = proven;
      tell("checkpoint.proven", proven);
    },
    unproven: async (failure: object, error: SandboxerError) => {
      // Older checkpoints are removed as new ones are saved, which is not a failure.
      if (!(await isThere()) && !(await isNewest())) return checkpointNotFound(name);
      tell("checkpoint.unproven", failure);
      return notRestored(`checkpoint ${name}`, error, HINT);
    },
  };
  await tryRestore(context, trial, options);
  if (proof === undefined) throw new SandboxerError("internal", "A test restore ended without a result.");
  return { sandbox_id: sandboxId, checkpoint: name, proven: proof };
}

async function isListed({ durable }: ProofContext, sandboxId: string, name: string): Promise<boolean> {
  return (await durable.checkpoints.list(sandboxId)).some((each) => each.name === name);
}

function nothingSaved(snapshot: string | null | undefined): SandboxerError {
  return new SandboxerError("bad_request", "No checkpoint of the sandbox is stored.", {
    hint:
      snapshot == null
        ? "Save it first: `sandboxer checkpoint SANDBOX --leave-running`."
        : `It was created from a snapshot; test that with \`sandboxer prove snapshot:${snapshot}\`.`,
  });
}
