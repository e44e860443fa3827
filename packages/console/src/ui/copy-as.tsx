import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { Spellings } from "../actions/spellings.ts";
import { Button } from "./button.tsx";
import { copyText } from "./copy-text.ts";
import { Dialog } from "./dialog.tsx";

const TITLES = { cli: "Command line", sdk: "TypeScript", curl: "curl" } as const;

/** "Copy as …": an action in other forms. */
export function CopyAs({
  spellings,
  what,
}: {
  readonly spellings: () => Spellings;
  readonly what: string;
}): JSX.Element {
  const [open, setOpen] = useState(false);
  return (
    <>
      <Button kind="quiet" label={`Copy “${what}” as CLI, SDK or curl`} onClick={() => setOpen(true)}>
        {"</>"}
      </Button>
      {open ? (
        <Dialog title={what} onClose={() => setOpen(false)} wide>
          <SpellingList spellings={spellings()} />
        </Dialog>
      ) : null}
    </>
  );
}

export function SpellingList({ spellings }: { readonly spellings: Spellings }): JSX.Element {
  return (
    <dl class="spellings">
      {(["cli", "sdk", "curl"] as const).map((kind) => (
        <div key={kind}>
          <dt>
            {TITLES[kind]}
            <Button
              kind="quiet"
              label={`Copy as ${TITLES[kind]}`}
              onClick={() => void copyText(spellings[kind], TITLES[kind])}
            >
              Copy
            </Button>
          </dt>
          <dd>
            <pre tabIndex={0}>{spellings[kind]}</pre>
          </dd>
        </div>
      ))}
    </dl>
  );
}
