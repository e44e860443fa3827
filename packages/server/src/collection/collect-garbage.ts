import { packsOfImage } from "../checkpoints/open-image.ts";
import { mapAtOnce } from "../support/map-at-once.ts";
import { collectDataKeys } from "./collect-data-keys.ts";
import { collectPacks } from "./collect-packs.ts";
import { collectProbes, sightProbes } from "./collect-probes.ts";
import { collectSandbox } from "./collect-sandbox.ts";
import { collectSnapshots, sightSnapshots } from "./collect-snapshots.ts";
import { type CollectionContext, type Findings, together, type Garbage, type LeftAlone } from "./garbage.ts";
import { PackSurveyor } from "./pack-survey.ts";
import { readServers, isGone, type Servers } from "./servers.ts";
import { surveyHeads, type Survey } from "./survey.ts";
import { INSTANCES_FOLDER, instanceIdOf, instanceKey } from "../lease/liveness-record.ts";
import type { ObjectStore } from "../store/store.ts";

const SANDBOXES_AT_ONCE = 8;

/**
 * Removes unreferenced data that nobody can still publish, using only its own clock. Servers may use the store
 * meanwhile, and several collections may run at once. Anything uncertain is kept.
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

const BELLS_FOLDER = "bells";

/**
 * Records of dead servers that no head names, and the bells of servers that no longer exist. The records were read
 * before the heads: a dead server begins nothing new, and a late claim of it names a server without a record, which
 * everyone considers dead.
 */
async function collectServers(
  context: CollectionContext,
  { servers, survey }: { readonly servers: Servers; readonly survey: Survey },
): Promise<Findings> {
  const { store, apply } = context;
  const garbage: Garbage[] = [];
  const left: LeftAlone[] = [];
  const recordSizes = await sizesBelow(store, INSTANCES_FOLDER);
  for (const instanceId of servers.dead) {
    const key = instanceKey(instanceId);
    if (survey.namedServers.has(instanceId)) continue;
    if (survey.complete) garbage.push({ kind: "server-record", key, sizeBytes: recordSizes.get(key) ?? 0 });
    else left.push({ key, reason: "a head that cannot be read may name it" });
  }
  const bellSizes = await sizesBelow(store, BELLS_FOLDER);
  for await (const key of store.listCells(BELLS_FOLDER)) {
    if (await isGone(store, servers, instanceIdOf(`${INSTANCES_FOLDER}${key.slice(BELLS_FOLDER.length)}`))) {
      garbage.push({ kind: "bell", key, sizeBytes: bellSizes.get(key) ?? 0 });
    }
  }
  if (apply) for (const { key } of garbage) await store.deleteCell(key);
  return { garbage, left };
}

async function sizesBelow(store: ObjectStore, folder: string): Promise<ReadonlyMap<string, number>> {
  const sizes = new Map<string, number>();
  for await (const { key, sizeBytes } of store.list(folder)) sizes.set(key, sizeBytes);
  return sizes;
}
