import { packsOfImage } from "../checkpoints/open-image.ts";
import { mapAtOnce } from "../support/map-at-once.ts";
import { collectDataKeys } from "./collect-data-keys.ts";
import { collectPacks } from "./collect-packs.ts";
import { collectProbes, sightProbes } from "./collect-probes.ts";
import { collectSandbox } from "./collect-sandbox.ts";
import { collectServers } from "./collect-servers.ts";
import { collectSnapshots, sightSnapshots } from "./collect-snapshots.ts";
import { type CollectionContext, type Findings, together } from "./garbage.ts";
import { PackSurveyor } from "./pack-survey.ts";
import { readServers } from "./servers.ts";
import { surveyHeads } from "./survey.ts";

const SANDBOXES_AT_ONCE = 8;

/**
 * Removes from a store what nothing references and nobody can still publish, without a look at a clock other than its
 * own. It needs no quiet: servers may work on the store, and several collections may run at once. Whatever it cannot be
 * sure of stays.
 */
export async function collectGarbage(context: CollectionContext): Promise<Findings> {
  const probes = await sightProbes(context);
  const snapshots = await sightSnapshots(context);
  const servers = await readServers(context.store);
  const survey = await surveyHeads(context.store);
  const known = { servers, survey };
  const collectOne = async (sandboxId: string): Promise<Findings> => await collectSandbox(context, sandboxId, known);
  const images = together([
    ...(await mapAtOnce(survey.sandboxIds, SANDBOXES_AT_ONCE, collectOne, context.signal)),
    await collectSnapshots(context, snapshots, known),
  ]);
  const going = new Set(context.apply ? [] : images.garbage.map(({ key }) => key));
  return together([
    images,
    await collectPacks(context, context.packs ?? new PackSurveyor(packsOfImage), going),
    await collectDataKeys(context, going),
    await collectServers(context, known),
    await collectProbes(context, probes),
  ]);
}
