import type { DamagedSandbox } from "@sandboxer/client";
import type { JSX } from "preact";

/** Shows above the list which sandboxes are missing because their stored record cannot be read. */
export function DamagedNotice({ damaged }: { readonly damaged: readonly DamagedSandbox[] }): JSX.Element {
  return (
    <div role="status">
      {damaged.length === 0 ? null : (
        <div class="banner banner-danger">
          <strong>
            {damaged.length === 1
              ? "The stored record of one sandbox is damaged."
              : `The stored records of ${damaged.length} sandboxes are damaged.`}
          </strong>
          <ul>
            {damaged.map(({ id, message, nextStep }) => (
              <li key={id}>
                <code>{id}</code>: {message} {nextStep}
              </li>
            ))}
          </ul>
        </div>
      )}
    </div>
  );
}
