import { measureClients } from "../curves/clients.ts";
import { measureImageSizes } from "../curves/image-size.ts";
import { measureLive } from "../curves/live.ts";
import { measureStored } from "../curves/stored.ts";
import type { Lab } from "../lab.ts";
import type { Comparison, Findings } from "../result.ts";
import { measureCell } from "./cell.ts";
import { measureCheckpoint } from "./checkpoint.ts";
import { measureCreate } from "./create.ts";
import { measureDensity } from "./density.ts";
import { measureExec } from "./exec.ts";
import { countFleet } from "./fleet.ts";
import { measureForks } from "./forks.ts";
import { measureHandoff } from "./handoff.ts";
import { measureImages } from "./images.ts";
import { measureLivePause } from "./live-pause.ts";
import { measureOutput } from "./output.ts";
import { measurePeers } from "./peers.ts";
import { measurePreview } from "./preview.ts";
import { measureProxy } from "./proxy.ts";
import { countRequests } from "./requests.ts";
import { measureSavings } from "./savings.ts";

type Group = (lab: Lab) => Promise<Partial<Findings>>;

const besideRaw =
  (measure: (lab: Lab) => Promise<Comparison[]>): Group =>
  async (lab) => ({ comparisons: await measure(lab) });

/** In the order in which they are measured; the page shows them in that of `report/sections.ts`. */
export const GROUPS: Readonly<Record<string, Group>> = {
  create: measureCreate,
  exec: besideRaw(measureExec),
  cell: measureCell,
  output: besideRaw(measureOutput),
  checkpoint: besideRaw(measureCheckpoint),
  "live-pause": besideRaw(measureLivePause),
  density: measureDensity,
  peers: measurePeers,
  images: measureImages,
  savings: measureSavings,
  forks: measureForks,
  "image-size": measureImageSizes,
  live: measureLive,
  stored: measureStored,
  clients: measureClients,
  preview: measurePreview,
  proxy: measureProxy,
  handoff: besideRaw(measureHandoff),
  requests: async (lab) => ({ requests: await countRequests(lab) }),
  fleet: countFleet,
};
