import type { SandboxRecord } from "@sandboxer/client";
import type { JSX } from "preact";
import { resumeAction } from "../../actions/sandbox-actions.ts";
import { formatBytes } from "../../format/bytes.ts";
import { may } from "../../session.ts";
import { Age } from "../../ui/age.tsx";
import { Button } from "../../ui/button.tsx";
import { CopyAs } from "../../ui/copy-as.tsx";
import { useAction } from "./use-action.ts";

/** What stands where there is nothing to show of a sandbox that nobody runs. */
export function Asleep({ record }: { readonly record: SandboxRecord }): JSX.Element {
  const wake = useAction(resumeAction, record);
  const { checkpoint } = record;
  if (record.state === "unreachable") {
    return (
      <div class="card sandbox-asleep" role="status">
        <h2>It cannot be found.</h2>
        <p>
          Its record is there, but what it stands for is not where it should be. Its facts and its timeline say more.
        </p>
      </div>
    );
  }
  return (
    <div class="card sandbox-asleep" role="status">
      <h2>It sleeps.</h2>
      <p>
        Nobody runs it; everything in it is kept
        {checkpoint === null ? (
          "."
        ) : (
          <>
            {" "}
            in the store, {formatBytes(checkpoint.sizeBytes)}, saved <Age time={checkpoint.createdAt} /> ago.
          </>
        )}
      </p>
      {may(resumeAction.scope) ? (
        <p class="row">
          <Button kind="primary" busy={wake.busy} onClick={() => void wake.run()}>
            Wake it
          </Button>
          <CopyAs what="Wake it" spellings={() => resumeAction.spell(record)} />
        </p>
      ) : (
        <p class="hint">Your key may only look: somebody with the scope “use” can wake it.</p>
      )}
    </div>
  );
}
