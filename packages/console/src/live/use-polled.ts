import { useEffect } from "preact/hooks";
import { useLoaded } from "./use-loaded.ts";

/** What a call answers, asked again and again for as long as somebody looks. The last answer stays while the next is awaited. */
export function usePolled<Value>(
  load: (signal: AbortSignal) => Promise<Value>,
  inputs: readonly unknown[],
  everyMs: number,
): ReturnType<typeof useLoaded<Value>> {
  const loaded = useLoaded(load, inputs);
  useEffect(() => {
    const timer = setInterval(() => document.visibilityState === "visible" && loaded.reload(), everyMs);
    return () => clearInterval(timer);
  }, [everyMs]);
  return loaded;
}
