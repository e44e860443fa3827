import type { SandboxRecord } from "@sandboxer/client";
import type { JSX } from "preact";
import { resumeAction } from "../../actions/sandbox-actions.ts";
import { formatBytes } from "../../format/bytes.ts";
import { may } from "../../session.ts";
import { Age } from "../../ui/age.tsx";
import { Button } from "../../ui/button.tsx";
import { CopyAs } from "../../ui/copy-as.tsx";
import { useAction } from "./use-action.ts";

/** Shown for a paused sandbox in place of a tab that needs a running one. */
export function Asleep({ record }: { readonly record: SandboxRecord }): JSX.Element {
  const wake = useAction(resumeAction, record);
  const { checkpoint } = record;
  if (record.state === "unreachable") {
    return (
      <div class="card sandbox-asleep" role="status">
        <h2>Unreachable</h2>
        <p>The sandbox has a record, but its backend cannot find it. See its facts and timeline for details.</p>
      </div>
    );
  }
  return (
    <div class="card sandbox-asleep" role="status">
      <h2>Paused</h2>
      <p>
        Its state is saved
        {checkpoint === null ? (
          "."
        ) : (
          <>
            {" "}
            ({formatBytes(checkpoint.sizeBytes)}, <Age time={checkpoint.createdAt} /> ago).
          </>
        )}
      </p>
      {may(resumeAction.scope) ? (
        <p class="row">
          <Button kind="primary" busy={wake.busy} onClick={() => void wake.run()}>
            Resume
          </Button>
          <CopyAs what="Resume" spellings={() => resumeAction.spell(record)} />
        </p>
      ) : (
        <p class="hint">Your key is read-only. A key with the scope “use” can resume it.</p>
      )}
    </div>
  );
}
