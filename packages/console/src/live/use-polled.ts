import type { SandboxerError } from "@sandboxer/client";
import { useEffect, useState } from "preact/hooks";
import { asError } from "../session.ts";

interface Polled<Value> {
  readonly value: Value | undefined;
  readonly error: SandboxerError | undefined;
  readonly again: () => void;
}

/**
 * The result of a repeated call while the component is mounted: one request at a time. The last result stays while the
 * next is awaited. `key` identifies the call.
 */
export function usePolled<Value>(
  key: string,
  everyMs: number,
  ask: (signal: AbortSignal) => Promise<Value>,
): Polled<Value> {
  const [answer, setAnswer] = useState<{ key: string; value: Value }>();
  const [error, setError] = useState<SandboxerError>();
  const [count, setCount] = useState(0);
  useEffect(() => {
    const end = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const look = async (): Promise<void> => {
      try {
        if (document.visibilityState === "visible") {
          const value = await ask(end.signal);
          if (end.signal.aborted) return;
          setAnswer({ key, value });
          setError(undefined);
        }
      } catch (thrown) {
        if (end.signal.aborted) return;
        setError(asError(thrown));
      }
      timer = setTimeout(() => void look(), everyMs);
    };
    void look();
    return () => {
      end.abort();
      clearTimeout(timer);
    };
  }, [key, everyMs, count]);
  const value = answer?.key === key ? answer.value : undefined;
  return { value, error, again: () => setCount((last) => last + 1) };
}
