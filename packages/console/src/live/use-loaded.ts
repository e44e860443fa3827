import type { SandboxerError } from "@sandboxer/client";
import { useCallback, useEffect, useState } from "preact/hooks";
import { asError } from "../session.ts";

interface Loaded<Value> {
  readonly value?: Value;
  readonly error?: SandboxerError;
  readonly loading: boolean;
  readonly reload: () => void;
}

/** The result of a call, repeated when one of the inputs changes; outdated results are dropped. */
export function useLoaded<Value>(
  load: (signal: AbortSignal) => Promise<Value>,
  inputs: readonly unknown[],
): Loaded<Value> {
  const [state, setState] = useState<Omit<Loaded<Value>, "reload">>({ loading: true });
  const [attempt, setAttempt] = useState(0);
  useEffect(() => {
    const end = new AbortController();
    setState((before) => ({ ...before, loading: true }));
    load(end.signal).then(
      (value) => end.signal.aborted || setState({ value, loading: false }),
      (thrown: unknown) => end.signal.aborted || setState({ error: asError(thrown), loading: false }),
    );
    return () => end.abort();
  }, [...inputs, attempt]);
  return { ...state, reload: useCallback(() => setAttempt((count) => count + 1), []) };
}
