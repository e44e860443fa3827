/**
 * Loaded into the server under soak: says how much of its heap is in use, after all garbage is collected. And makes the
 * memories of past events and operations short, so that they are full after the warm-up and no longer grow.
 */
import { registerHooks } from "node:module";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

const SHORTENED: Readonly<Record<string, readonly [string, string]>> = {
  "/observing/events/event-log.ts": ["KEEP_EVENTS = 10_000", "KEEP_EVENTS = 20"],
  "/observing/operations/operations.ts": ["KEEP_ENDED = 1000", "KEEP_ENDED = 20"],
};
registerHooks({
  load(url, context, nextLoad) {
    const loaded = nextLoad(url, context);
    const [, change] = Object.entries(SHORTENED).find(([end]) => url.endsWith(end)) ?? [];
    if (change === undefined) return loaded;
    const source = Buffer.from(loaded.source as Uint8Array).toString("utf8");
    if (!source.includes(change[0])) throw new Error(`${url} no longer has "${change[0]}", which the soak changes.`);
    return { ...loaded, source: source.replace(change[0], change[1]) };
  },
});

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;

process.on("message", () => {
  // Memory that finalizers of the first round release is collected by the second.
  collect();
  setImmediate(() => {
    collect();
    const { heapUsed, external, arrayBuffers } = process.memoryUsage();
    process.send?.({ heapBytes: heapUsed, outsideBytes: external + arrayBuffers });
  });
});
process.channel?.unref();
