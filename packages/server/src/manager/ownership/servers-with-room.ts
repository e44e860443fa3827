import { shuffled } from "../../support/shuffled.ts";
import type { OtherServer } from "./owner-elsewhere.ts";
import type { InstanceCondition, Room } from "./peers.ts";

export interface ServerSearch {
  /** The ids of the other live servers of the store. */
  readonly others: () => readonly string[];
  /** Undefined: it has ended, or its address is unknown. */
  readonly serverOf: (instanceId: string) => Promise<OtherServer | undefined>;
  /** The condition that a server reports about itself; undefined: it did not answer within a second. */
  readonly condition: (url: string) => Promise<InstanceCondition | undefined>;
}

/** Of two random servers in each round, those with room: the one with more room first. */
export async function* serversWithRoom(search: ServerSearch, rounds: number): AsyncIterable<OtherServer> {
  const waiting = shuffled(search.others());
  for (let round = 0; round < rounds && waiting.length > 0; round += 1) {
    yield* await withRoom(search, waiting.splice(0, 2));
  }
}

async function withRoom(
  { serverOf, condition }: ServerSearch,
  instanceIds: readonly string[],
): Promise<readonly OtherServer[]> {
  const asked = instanceIds.map(async (instanceId) => {
    const server = await serverOf(instanceId);
    const said = server === undefined ? undefined : await condition(server.url);
    const isOpen = said?.instance_id === instanceId && said.frozen === false && hasRoom(said.room);
    return server !== undefined && isOpen ? [{ server, room: said.room }] : [];
  });
  const open = (await Promise.all(asked)).flat();
  return open.toSorted((left, right) => moreRoom(left.room, right.room)).map(({ server }) => server);
}

function hasRoom(room: Room | undefined): boolean {
  return room !== undefined && room.places > 0 && room.memory_bytes !== 0 && room.cpus !== 0;
}

function moreRoom(left: Room | undefined, right: Room | undefined): number {
  const memory = (right?.memory_bytes ?? 0) - (left?.memory_bytes ?? 0);
  return memory === 0 ? (right?.places ?? 0) - (left?.places ?? 0) : memory;
}
