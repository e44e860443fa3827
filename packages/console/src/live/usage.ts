import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { asError, client } from "../session.ts";

const EVERY_MS = 4_000;
const POINTS = 40;

const memory = signal<ReadonlyMap<string, readonly number[]>>(new Map());

/** Bytes of memory that a sandbox of this server has used lately, oldest first. */
export function usageOf(sandboxId: string): readonly number[] | undefined {
  return memory.value.get(sandboxId);
}

/** Polls the usage of all sandboxes while the component is mounted: otherwise the server measures rarely. */
export function useUsage(): void {
  useEffect(() => {
    const end = new AbortController();
    const look = async (): Promise<void> => {
      if (document.visibilityState !== "visible") return;
      const items = await client.usage({ points: POINTS, signal: end.signal });
      memory.value = new Map(items.map(({ sandboxId, used }) => [sandboxId, used.memoryBytes]));
    };
    // One request at a time, so that requests to a slow server do not pile up.
    let timer: ReturnType<typeof setTimeout> | undefined;
    const again = async (): Promise<void> => {
      try {
        await look();
      } catch (thrown) {
        if (!end.signal.aborted) asError(thrown);
      }
      if (!end.signal.aborted) timer = setTimeout(() => void again(), EVERY_MS);
    };
    void again();
    return () => {
      clearTimeout(timer);
      end.abort();
    };
  }, []);
}
