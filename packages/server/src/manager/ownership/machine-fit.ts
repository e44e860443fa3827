import type { MachineFacts, SandboxBackend, StateNeeds } from "../../backends/backend.ts";

/** What a server publishes about its backends. */
export function machinesOf(
  backends: ReadonlyMap<string, Pick<SandboxBackend, "machine">>,
): Record<string, MachineFacts> {
  return Object.fromEntries([...backends].map(([name, { machine = {} }]) => [name, machine]));
}

const MOST_NAMED = 8;

/** What keeps a machine from loading a state, for people; nothing: it can, as far as is known. */
export function whyNotOn(machine: MachineFacts, needs: StateNeeds): readonly string[] {
  const { engine, platform, architecture, cpuFeatures = [] } = needs;
  const { engines, platforms, cpu_features: has } = machine;
  const reasons: string[] = [];
  if (engine !== undefined && engines !== undefined && !hasEngine(machine, needs) && machine.fetches_engines !== true)
    reasons.push(`it was saved by version ${engine} of the engine, and this server has ${engines.join(", ")}`);
  if (platform !== undefined && platforms !== undefined && !platforms.includes(platform))
    reasons.push(`it was saved on platform ${platform}, and this server has ${platforms.join(", ")}`);
  if (architecture !== undefined && machine.architecture !== undefined && architecture !== machine.architecture)
    reasons.push(`it was saved on ${architecture}, and this server is ${machine.architecture}`);
  const missing = has === undefined ? [] : cpuFeatures.filter((feature) => !has.includes(feature));
  if (missing.length > 0) reasons.push(`the CPU of this server lacks ${missing.slice(0, MOST_NAMED).join(", ")}`);
  return reasons;
}

/** Whether nothing has to be fetched before the state can be loaded, as far as is known. */
export function hasEngine({ engines }: MachineFacts, { engine }: StateNeeds): boolean {
  return engine === undefined || engines === undefined || engines.includes(engine);
}
