import {
  createRequestSchema,
  type E2bNewSandbox,
  type RestoreRequestBody,
  type SandboxRecord,
} from "@sandboxer/protocol";
import { z } from "zod";
import type { E2bCaller, E2bServices } from "../e2b-services.ts";
import { E2bError } from "../errors.ts";
import { checkMetadata, RESERVED } from "../reserved-labels.ts";
import { isEmpty, networkOf } from "./network.ts";
import { findTemplate, type Template } from "./templates.ts";

/** Nothing is idle at E2B. */
const NEVER_IDLE_SECONDS = 315_360_000;

/** The user of programs and files, and where E2B's clients expect the homes. */
const USER = "user";
const HOMES = [
  { name: USER, uid: 1000, gid: 1000, home: "/home/user", mode: 0o755 },
  { name: "root", uid: 0, gid: 0, home: "/root", mode: 0o700 },
] as const;

/** Creates a sandbox as E2B's clients expect it: it ends after its timeout, whatever it does. */
export async function createSandbox(
  { manager }: E2bServices,
  { options }: E2bCaller,
  body: E2bNewSandbox,
  defaultSeconds: number,
): Promise<SandboxRecord> {
  refuseUnsupported(body);
  const template = await findTemplate(manager, body.templateID);
  const { allowPublicTraffic: _, ...egress } = body.network ?? {};
  const network = networkOf({ ...egress, allow_internet_access: body.allow_internet_access });
  const settings = settingsOf(body, template, defaultSeconds);
  if (template.kind === "snapshot") {
    const { sandbox } = await manager.snapshots.restore(template.id, settings, options);
    return network === undefined
      ? manager.describe(sandbox)
      : await manager.amend(sandbox.id, undefined, { network }).catch(orDelete(manager, sandbox.id));
  }
  const isDurable = body.autoPause === true || body.autoResume?.enabled === true;
  const { error, data } = createRequestSchema.safeParse({
    ...settings,
    ...template.request,
    network: network ?? defaultNetwork(manager, template),
    ...userOf(manager, template.request.profile),
    ...(isDurable ? { enable_checkpoint: true } : {}),
  });
  if (error !== undefined) throw new E2bError(400, z.prettifyError(error));
  const { sandbox } = await manager.create(data, options);
  await manager.giveHomes(sandbox, HOMES).catch(orDelete(manager, sandbox.id));
  return manager.describe(sandbox);
}

/** A profile may choose another user; some backends have one only. */
function userOf(manager: E2bServices["manager"], profile: string | undefined): { user?: string } {
  const { user, backends: [backend] = [] } = (profile === undefined ? undefined : manager.profiles.find(profile)) ?? {};
  return user === undefined && manager.backendFacts(backend).capabilities?.users === true ? { user: USER } : {};
}

/** A sandbox that is not what its client asked for must not stay. */
function orDelete(manager: E2bServices["manager"], sandboxId: string): (error: unknown) => Promise<never> {
  return async (error) => {
    await manager.destroyById(sandboxId, undefined).catch(() => {});
    throw error;
  };
}

function settingsOf(body: E2bNewSandbox, { id }: Template, defaultSeconds: number): RestoreRequestBody {
  const metadata = body.metadata ?? {};
  checkMetadata(metadata);
  return {
    labels: {
      ...metadata,
      [RESERVED.template]: id,
      ...(body.autoResume?.enabled === true ? { [RESERVED.autoResume]: "on" } : {}),
      ...(body.autoPauseMemory === false ? { [RESERVED.autoPauseMemory]: "off" } : {}),
      ...(body.network?.allowPublicTraffic === false ? { [RESERVED.traffic]: "private" } : {}),
    },
    env: body.envVars ?? {},
    ttl: `${Math.max(1, body.timeout ?? defaultSeconds)}s`,
    on_expiry: body.autoPause === true ? "pause" : "delete",
    idle_timeout: NEVER_IDLE_SECONDS,
  };
}

/** E2B's sandboxes reach the internet unless their creator says no; here, also unless the server cannot, or a profile says no. */
function defaultNetwork(manager: E2bServices["manager"], template: Template): "open" | undefined {
  const profile = template.kind === "fresh" ? template.request.profile : undefined;
  if (profile !== undefined && manager.profiles.find(profile)?.network !== undefined) return undefined;
  return manager.backendFacts().capabilities?.network === true ? "open" : undefined;
}

function refuseUnsupported({ mcp, iam, volumeMounts, ...body }: E2bNewSandbox): void {
  const asked = Object.entries({ mcp, iam, volumeMounts }).find(([, value]) => !isEmpty(value));
  if (asked !== undefined) throw new E2bError(501, `This server does not support the option ${asked[0]}.`);
  if (body.autoPauseMemory === false && (body.autoPause !== true || body.autoResume?.enabled === true)) {
    throw new E2bError(400, "autoPauseMemory: false needs autoPause, and is not possible with autoResume.");
  }
}
