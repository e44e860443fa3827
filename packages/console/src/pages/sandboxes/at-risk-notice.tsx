import type { SandboxRecord } from "@sandboxer/client";
import type { JSX } from "preact";
import { setQuery } from "../../router.tsx";
import { Button } from "../../ui/button.tsx";

/** Shows above the list that `max_loss` is not met, wherever in the list those sandboxes are. */
export function AtRiskNotice({ records }: { readonly records: readonly SandboxRecord[] }): JSX.Element {
  const count = records.filter(({ durability }) => durability.atRisk !== null).length;
  return (
    <div role="status">
      {count === 0 ? null : (
        <p class="banner banner-warn">
          <span>
            <strong>
              {count === 1 ? "One sandbox is" : `${count} sandboxes are`} at risk: a failure now could lose more than
              max_loss allows.
            </strong>{" "}
            Recent saves failed or take too long.
          </span>
          <Button onClick={() => setQuery({ badge: "at risk" })}>Show {count === 1 ? "it" : "them"}</Button>
        </p>
      )}
    </div>
  );
}
