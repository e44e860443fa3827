import type { Logger } from "pino";
import type { ImageStore } from "../checkpoints/image-store.ts";
import { BackgroundCollection } from "../collection/background-collection.ts";
import type { CollectorSeat } from "../collection/collector-seat.ts";
import { damagedIn } from "../collection/garbage.ts";
import type { EventLog } from "../manager/observing/events/event-log.ts";
import type { ObjectStore } from "../store/store.ts";
import { systemClock } from "../support/clock.ts";
import type { ServerConfig } from "./config.ts";

interface CollectedParts {
  readonly store: ObjectStore;
  readonly images: ImageStore | undefined;
  readonly seat: CollectorSeat;
}

/**
 * Undefined if collection is off. Each server also removes its local copies of data that others removed from the store:
 * at the start, and whenever a collection is due, whichever server carries it out.
 */
export function startCollection(
  { collectEveryMs }: ServerConfig,
  { store, images, seat }: CollectedParts,
  events: EventLog,
  log: Logger,
): BackgroundCollection | undefined {
  const forgetCopies = (): void => {
    images
      ?.forgetCopiesOfRemoved()
      .catch((error: unknown) => log.warn({ err: error }, "local copies of removed images could not be deleted yet"));
  };
  forgetCopies();
  if (collectEveryMs === undefined) return undefined;
  const collection = new BackgroundCollection({
    store,
    clock: systemClock,
    everyMs: collectEveryMs,
    seat,
    onDue: forgetCopies,
    onCollected: (findings) => {
      const { garbage, left } = findings;
      const bytes = garbage.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
      if (garbage.length > 0) log.info({ removed: garbage.length, bytes }, "removed garbage from the store");
      const damaged = damagedIn(findings);
      if (damaged.length > 0)
        log.warn({ count: damaged.length, damaged: damaged.slice(0, 10) }, "damaged records were not removed");
      // Until someone has checked these, no pack is removed.
      const blocking = left.filter(({ reason }) => reason === "its packs are unknown").map(({ key }) => key);
      if (blocking.length > 0)
        log.warn({ images: blocking.slice(0, 10) }, "no packs were removed because these images cannot be read");
    },
    onError: (error) => log.warn({ err: error }, "garbage collection failed; it will be tried again"),
  });
  events.listen(({ type, data }) => {
    const destroyed = type === "operation.ended" && data["kind"] === "destroy";
    if (destroyed || type === "snapshot.deleted") collection.imagesRemoved();
    if (type === "checkpoint.created") collection.imageReplaced();
  });
  return collection;
}
