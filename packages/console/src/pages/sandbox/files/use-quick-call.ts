import { useEffect, useRef, useState } from "preact/hooks";
import type { LongCall } from "../../../dialogs/use-long-call.ts";
import { asError } from "../../../session.ts";
import { tellError } from "../../../ui/toasts.tsx";

type Progress = Pick<LongCall<void>, "state" | "error">;

/** A short call of a dialog, which closes when it is done. */
export function useQuickCall(doing: string): LongCall<void> {
  const [progress, setProgress] = useState<Progress>({ state: "idle" });
  const shown = useRef(true);
  useEffect(() => {
    shown.current = true;
    return () => void (shown.current = false);
  }, []);
  const run: LongCall<void>["run"] = (work) => {
    setProgress({ state: "running" });
    work(() => {}).then(
      () => {
        if (shown.current) setProgress({ state: "idle" });
      },
      (thrown: unknown) => {
        if (shown.current) setProgress({ state: "failed", error: asError(thrown) });
        else tellError(doing, thrown);
      },
    );
  };
  return { ...progress, run };
}
