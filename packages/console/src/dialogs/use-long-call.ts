import type { OperationRecord, SandboxerError } from "@sandboxer/client";
import { useEffect, useRef, useState } from "preact/hooks";
import { asError } from "../session.ts";
import { tell, tellError } from "../ui/toasts.tsx";

interface Progress<Result> {
  readonly state: "idle" | "running" | "done" | "failed";
  readonly operation?: OperationRecord;
  readonly result?: Result;
  readonly error?: SandboxerError;
}

export interface LongCall<Result> extends Progress<Result> {
  run(work: (onProgress: (operation: OperationRecord) => void) => Promise<Result>): void;
}

/** A call that may take long. If its dialog is closed meanwhile, a toast reports the end. */
export function useLongCall<Result>(doing: string): LongCall<Result> {
  const [progress, setProgress] = useState<Progress<Result>>({ state: "idle" });
  const shown = useRef(true);
  useEffect(() => {
    shown.current = true;
    return () => void (shown.current = false);
  }, []);
  const run: LongCall<Result>["run"] = (work) => {
    setProgress({ state: "running" });
    const onProgress = (operation: OperationRecord): void => {
      if (shown.current) setProgress((before) => ({ ...before, operation }));
    };
    work(onProgress).then(
      (result) => {
        if (shown.current) setProgress((before) => ({ ...before, state: "done", result }));
        else tell(`${doing}: done`);
      },
      (thrown: unknown) => {
        if (shown.current) setProgress({ state: "failed", error: asError(thrown) });
        else tellError(doing, thrown);
      },
    );
  };
  return { ...progress, run };
}
