import type { EventEmitter } from "node:events";

/** Waits for the first of these events. Unlike a race of `once`, it leaves no listeners behind. */
export function nextEvent(emitter: EventEmitter, names: readonly string[]): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      for (const name of names) emitter.off(name, done);
      resolve();
    };
    for (const name of names) emitter.on(name, done);
  });
}
