/** After this many ttl without a change an instance is dead, by the watcher's own clock. */
const DEAD_AFTER_TTLS = 1.5;

/** A record that says its instance lives, at one look. */
export interface Observation {
  readonly instanceId: string;
  readonly version: string;
  readonly ttlMs: number;
}

interface Sighting {
  readonly version: string;
  /** When this version was first seen, on the watcher's monotonic clock. */
  readonly sinceMs: number;
}

/**
 * Decides who is dead, without I/O: whose record has not changed for 1.5 ttl since *this* watcher first saw it so. No
 * clock of another machine is ever looked at.
 */
export class LivenessWatch {
  #sightings = new Map<string, Sighting>();

  /** Takes one look at all live records; gives those whose time is up. */
  observe(observations: readonly Observation[], nowMs: number): readonly Observation[] {
    const next = new Map<string, Sighting>();
    const expired: Observation[] = [];
    for (const observation of observations) {
      const known = this.#sightings.get(observation.instanceId);
      const same = known?.version === observation.version ? known : undefined;
      const sighting = same ?? { version: observation.version, sinceMs: nowMs };
      next.set(observation.instanceId, sighting);
      if (nowMs - sighting.sinceMs >= DEAD_AFTER_TTLS * observation.ttlMs) expired.push(observation);
    }
    this.#sightings = next;
    return expired;
  }
}
