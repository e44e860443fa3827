import { e2bForkSchema, e2bListSnapshotsSchema, e2bNewSnapshotSchema, type SnapshotInfo } from "@sandboxer/protocol";
import type { FastifyInstance } from "fastify";
import { pageOfList } from "../../http/page.ts";
import type { E2bServices } from "../e2b-services.ts";
import { E2bError } from "../errors.ts";
import { controlRoute } from "./control-route.ts";
import { existingRunning } from "./existing.ts";
import { findSnapshot, profileNamed, snapshotName } from "./templates.ts";
import { sandboxView } from "./view.ts";

const FORK_SECONDS = 15;

/** Forks and snapshots. The sandbox keeps running. */
export function registerSnapshots(app: FastifyInstance, services: E2bServices): void {
  const one = { url: "/sandboxes/:sandboxID", method: "POST", scope: "use" } as const;
  controlRoute(app, services, { ...one, url: `${one.url}/fork`, what: "forkSandbox" }, async (call) => {
    const { timeout, count } = call.body(e2bForkSchema);
    const { caller, sandboxId, reply } = call;
    const { manager } = services;
    const { record } = await existingRunning(manager, sandboxId);
    const asked = { count: count ?? 1, ttl: `${Math.max(1, timeout ?? FORK_SECONDS)}s`, on_expiry: record.on_expiry };
    const { created } = await caller.actor.does("forkSandbox", { sandboxId }, async () =>
      manager.fork(await manager.running(sandboxId), asked, caller.options),
    );
    return reply
      .code(201)
      .send(created.map(({ sandbox }) => ({ sandbox: sandboxView(services, manager.describe(sandbox)) })));
  });
  controlRoute(app, services, { ...one, url: `${one.url}/snapshots`, what: "createSnapshot" }, async (call) => {
    const { name: given, memory } = call.body(e2bNewSnapshotSchema);
    const { caller, sandboxId, reply } = call;
    const { manager } = services;
    await existingRunning(manager, sandboxId);
    const name = given == null || given === "" ? undefined : checkedName(services, given);
    // The same name again moves to the new snapshot; the older one keeps its id.
    const request = {
      name,
      reason: "request",
      replaceName: true,
      ...(memory === false ? { mode: "filesystem" as const } : {}),
    } as const;
    const snapshot = await caller.actor.does("createSnapshot", { sandboxId }, () =>
      manager.snapshots.capture(sandboxId, undefined, request, caller.options),
    );
    return reply.code(201).send(snapshotView(snapshot));
  });
  const list = { method: "GET", url: "/snapshots", scope: "read", what: "listSnapshots" } as const;
  controlRoute(app, services, list, async ({ query, reply }) => {
    const { sandboxID: sandbox_id, name, limit, nextToken } = query(e2bListSnapshotsSchema);
    const wanted = name === undefined ? undefined : (snapshotName(name) ?? name);
    const { items } = await services.manager.snapshots.list({ sandbox_id, name: wanted });
    // Snapshots that the server takes for a fork or a move are its own.
    const own = items.filter(({ reason }) => reason === "request" || reason === "named");
    const page = pageOfList(own, { limit, cursor: nextToken });
    if (page.next_cursor !== null) reply.header("x-next-token", page.next_cursor);
    return reply.send(page.items.map(snapshotView));
  });
  const remove = { method: "DELETE", url: "/templates/:templateID", scope: "use", what: "deleteSnapshot" } as const;
  controlRoute(app, services, remove, async ({ request, caller, reply }) => {
    const { templateID = "" } = request.params as { readonly templateID?: string };
    const id = await findSnapshot(services.manager, templateID);
    if (id === undefined) {
      const isProfile = profileNamed(services.manager, templateID) !== undefined;
      if (isProfile) throw new E2bError(403, `${templateID} is a profile of the server, which has its own file.`);
      throw new E2bError(404, `There is no snapshot ${JSON.stringify(templateID.slice(0, 200))}.`);
    }
    await caller.actor.does("deleteSnapshot", {}, () => services.manager.snapshots.remove(id));
    return reply.code(204).send();
  });
}

function snapshotView({ id, name }: SnapshotInfo): { snapshotID: string; names: string[] } {
  return { snapshotID: id, names: name === null ? [] : [name] };
}

function checkedName({ manager }: E2bServices, given: string): string {
  const name = snapshotName(given);
  if (name === undefined) {
    throw new E2bError(400, "A snapshot's name has up to 128 letters, digits, dots, dashes and underscores.");
  }
  // A template of this name would hide the snapshot.
  if (profileNamed(manager, name) !== undefined) throw new E2bError(409, `${name} is a profile of the server.`);
  return name;
}
