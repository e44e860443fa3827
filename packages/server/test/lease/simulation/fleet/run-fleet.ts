import type { Bug } from "../bugs.ts";
import { type Tally, Violation } from "../ledger.ts";
import { FleetServer } from "./fleet-server.ts";
import { FLEET_TTL_MS, FleetWorld } from "./fleet-world.ts";

export interface FleetOptions {
  readonly seed: number;
  readonly servers: number;
  readonly sandboxes: number;
  readonly hours: number;
  readonly bug?: Bug;
  readonly onHour?: (line: string) => void;
}

export interface FleetResult {
  readonly events: number;
  readonly tally: Tally;
  /** Requests of all servers together, per second, on average. */
  readonly requestsPerSecond: Readonly<Record<string, number>>;
  readonly violation: string | undefined;
}

const HOUR_MS = 3_600_000;
const ZONES = 3;
const SETTLING_MS = 10 * 60_000;
/** A resumed sandbox every so often, at each server. */
const RESUME_EVERY_MS = 500;
const AT_ONCE = 4;
const UPGRADE_EVERY_MS = 30_000;

/** A day of a fleet: rolling upgrades, a lost zone, a bad network, servers cut off and stopped, a slow store, an outage. */
export function runFleet(options: FleetOptions): FleetResult {
  const world = new FleetWorld(options.seed, options.sandboxes, options.bug);
  const { timeline, ledger, counts } = world;
  let violation: string | undefined;
  try {
    run(world, options);
  } catch (error) {
    if (!(error instanceof Violation)) throw error;
    violation = `${error.message} at ${(timeline.nowMs / HOUR_MS).toFixed(2)} h`;
  }
  const perSecond = Object.entries(counts).map(([kind, count]) => [kind, (count * 1000) / timeline.nowMs] as const);
  return {
    events: timeline.events,
    tally: ledger.tally,
    requestsPerSecond: Object.fromEntries(perSecond),
    violation,
  };
}

function run(world: FleetWorld, { servers: count, hours, onHour }: FleetOptions): void {
  const { timeline, workload } = world;
  const servers = Array.from({ length: count }, (_, number) => new FleetServer(world, `s${number}`, number % ZONES));
  connect(world, servers);
  for (const server of servers) begin(world, server);
  timeline.runUntil(FLEET_TTL_MS, Number.POSITIVE_INFINITY);
  for (const sandboxId of world.sandboxIds) workload.pick(servers).create(sandboxId);
  const dayMs = hours * HOUR_MS;
  plan(world, servers, dayMs);
  for (let hour = 1; hour <= Math.ceil(hours); hour++) {
    timeline.runUntil(Math.min(hour * HOUR_MS, dayMs), Number.POSITIVE_INFINITY);
    onHour?.(`${hour} h: ${timeline.events} events, ${world.orphans.length} sandboxes to resume`);
  }
  timeline.runUntil(dayMs + SETTLING_MS, Number.POSITIVE_INFINITY);
  checkAll(world, servers);
}

/** Each at a share of the day, and for a share of it. */
function plan(world: FleetWorld, servers: readonly FleetServer[], dayMs: number): void {
  const { timeline } = world;
  const at = (share: number, action: () => void): void => timeline.after(dayMs * share, action);
  for (const begins of [0.1, 0.6]) {
    at(begins, () => {
      for (const [number, server] of servers.entries())
        timeline.after(Math.min(UPGRADE_EVERY_MS, (dayMs * 0.1) / servers.length) * number, () => server.upgrade());
    });
  }
  at(0.3, () => {
    for (const { zone, instance } of servers) if (zone === 1) instance.crash(dayMs * 0.1);
  });
  at(0.45, () => (world.faulty = true));
  at(0.46, () => (world.faulty = false));
  // Some servers are cut off for longer than their lease, and some are stopped and continue with what they knew.
  const aloneMs = Math.max(6 * FLEET_TTL_MS, dayMs * 0.005);
  at(0.7, () => {
    for (const [number, { instance }] of servers.entries())
      if (number % 4 === 0) instance.cutOffUntilMs = timeline.nowMs + aloneMs;
  });
  at(0.75, () => {
    for (const [number, { instance }] of servers.entries())
      if (number % 4 === 1) instance.stoppedUntilMs = timeline.nowMs + aloneMs;
  });
  at(0.8, () => (world.slowness = 30));
  at(0.82, () => (world.slowness = 1));
  at(0.9, () => {
    for (const { instance } of servers) instance.cutOffUntilMs = timeline.nowMs + dayMs * 0.01;
  });
}

function connect(world: FleetWorld, servers: readonly FleetServer[]): void {
  world.ring = (instanceId, sandboxId) =>
    servers.find(({ instance }) => instance.instanceId === instanceId)?.instance.ring(sandboxId);
  world.checkAlone = (sandboxId, runner) => {
    const mine = runner as FleetServer;
    const other = servers.find((each) => each !== mine && each.runs(sandboxId));
    if (other === undefined || mine.instance.frozen) return;
    throw new Violation(`${sandboxId} runs at ${other.instance.name} and at ${mine.instance.name}`);
  };
}

function begin(world: FleetWorld, server: FleetServer): void {
  const { timeline, workload } = world;
  const round = (): void => {
    timeline.after(workload.between(20_000, 100_000), round);
    server.act();
  };
  const resume = (): void => {
    timeline.after(workload.between(0.5, 1.5) * RESUME_EVERY_MS, resume);
    for (let begun = 0; begun < AT_ONCE && server.instance.registered; begun++) resumeOne(world, server);
  };
  timeline.after(workload.between(0, FLEET_TTL_MS / 3), () => {
    server.instance.start();
    round();
    resume();
  });
}

/** A sandbox that runs by now is left alone; a claim that fails is tried again. */
function resumeOne(world: FleetWorld, server: FleetServer): void {
  const sandboxId = world.orphans.shift();
  if (sandboxId === undefined) return;
  const { owner } = world.ledger.heads.get(sandboxId) ?? {};
  const isHeld = owner != null && world.store.records.get(owner)?.body.dead !== true;
  if (!isHeld) server.claim(sandboxId);
  world.timeline.after(2 * FLEET_TTL_MS, () => {
    const now = world.ledger.heads.get(sandboxId)?.owner;
    if (now != null && world.store.records.get(now)?.body.dead === true) world.orphans.push(sandboxId);
  });
}

/** Nothing is lost: each sandbox is paused, or runs on the one server that its head names. */
function checkAll(world: FleetWorld, servers: readonly FleetServer[]): void {
  const byId = new Map(servers.map((server) => [server.instance.instanceId, server]));
  for (const sandboxId of world.sandboxIds) {
    const head = world.ledger.heads.get(sandboxId);
    if (head === undefined || head.state === "deleted") throw new Violation(`${sandboxId} is lost`);
    if (head.owner === null) continue;
    const copy = byId.get(head.owner)?.copies.get(sandboxId);
    if (copy?.epoch !== head.epoch) throw new Violation(`${sandboxId} belongs to ${head.owner}, which does not run it`);
  }
}
