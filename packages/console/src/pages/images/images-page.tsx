import type { ImageRecord } from "@sandboxer/client";
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { imageSpellings } from "../../actions/image-actions.ts";
import { usePolled } from "../../live/use-polled.ts";
import { client, may } from "../../session.ts";
import { Button } from "../../ui/button.tsx";
import { CopyAs } from "../../ui/copy-as.tsx";
import { ErrorBox } from "../../ui/error-box.tsx";
import { ImageTable } from "./image-table.tsx";
import { DeleteImageDialog, PruneDialog, PullDialog } from "./image-dialogs.tsx";
import "./images.css";

const EVERY_MS = 3_000;

type Asked = { readonly what: "pull" | "prune" } | { readonly what: "delete"; readonly image: ImageRecord };

/** The container images on the server's machine. */
export function ImagesPage(): JSX.Element {
  const { value, error, again } = usePolled("images", EVERY_MS, (signal) => client.images.list({ signal }));
  const [asked, setAsked] = useState<Asked>();
  const close = (): void => {
    setAsked(undefined);
    again();
  };
  return (
    <section class="page">
      <header class="row">
        <h1>Images</h1>
        <CopyAs what="Images" spellings={imageSpellings.list} />
        {value !== undefined && may("use") ? (
          <Button kind="primary" onClick={() => setAsked({ what: "pull" })}>
            Pull image
          </Button>
        ) : null}
        {value !== undefined && value.length > 0 && may("admin") ? (
          <Button onClick={() => setAsked({ what: "prune" })}>Prune …</Button>
        ) : null}
      </header>
      {error === undefined ? null : <ErrorBox error={error} />}
      {value === undefined && error === undefined ? <p class="page-note">Loading …</p> : null}
      {value === undefined ? null : (
        <ImageTable images={value} onDelete={(image) => setAsked({ what: "delete", image })} />
      )}
      {asked?.what === "pull" ? <PullDialog onClose={close} /> : null}
      {asked?.what === "prune" ? <PruneDialog images={value ?? []} onClose={close} /> : null}
      {asked?.what === "delete" ? <DeleteImageDialog image={asked.image} onClose={close} /> : null}
    </section>
  );
}
