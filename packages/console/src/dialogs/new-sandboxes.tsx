import type { Sandbox } from "@sandboxer/client";
import type { JSX } from "preact";
import { sandboxTitle } from "../format/names.ts";
import { Link } from "../router.tsx";
import { Button } from "../ui/button.tsx";
import { copyText } from "../ui/copy-text.ts";

/** New sandboxes with their tokens, which the server does not return again. */
export function NewSandboxes({ sandboxes }: { readonly sandboxes: readonly Sandbox[] }): JSX.Element {
  return (
    <>
      <ul class="new-sandboxes">
        {sandboxes.map(({ id, record, token }) => (
          <li key={id}>
            <Link to={`/sandboxes/${encodeURIComponent(id)}`}>{sandboxTitle(record)}</Link>
            {token === undefined ? null : (
              <Button
                label={`Copy the token of ${sandboxTitle(record)}`}
                onClick={() => void copyText(token, `the token of ${sandboxTitle(record)}`)}
              >
                Copy token
              </Button>
            )}
          </li>
        ))}
      </ul>
      <p class="hint">Tokens are shown only once. Copy them now if a program needs to attach.</p>
    </>
  );
}
