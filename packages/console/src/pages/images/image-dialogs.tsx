import type { ImageRecord, RemovedImages } from "@sandboxer/client";
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { imageSpellings } from "../../actions/image-actions.ts";
import { ActionDialog } from "../../dialogs/action-dialog.tsx";
import { TextField } from "../../dialogs/fields.tsx";
import { useLongCall } from "../../dialogs/use-long-call.ts";
import { formatBytes } from "../../format/bytes.ts";
import { client } from "../../session.ts";
import { FileName } from "../sandbox/files/file-name.tsx";
import { imageTitle } from "./image-names.ts";

export function PullDialog({ onClose }: { readonly onClose: () => void }): JSX.Element {
  const [text, setText] = useState("");
  const image = text.trim();
  const call = useLongCall<ImageRecord>(`Pull of ${image}`);
  return (
    <ActionDialog
      title="Pull image"
      submit="Pull"
      ready={image !== ""}
      onClose={onClose}
      call={call}
      onSubmit={() => call.run((onProgress) => client.images.pull(image, { onProgress }))}
      spellings={image === "" ? undefined : () => imageSpellings.pull(image)}
      done={(pulled) => (
        <p>
          Pulled <FileName name={pulled.names[0] ?? image} />: <code class="image-digest">{pulled.digest}</code>
        </p>
      )}
    >
      <TextField
        label="Image"
        value={text}
        onChange={setText}
        placeholder="python:3.12-slim"
        hint="A name with an optional registry, tag or digest. An image that is here already is updated."
      />
    </ActionDialog>
  );
}

interface DeleteImageProperties {
  readonly image: ImageRecord;
  readonly onClose: () => void;
}

/** Deletes an image with all its names. */
export function DeleteImageDialog({ image, onClose }: DeleteImageProperties): JSX.Element {
  const title = imageTitle(image);
  const call = useLongCall<RemovedImages>(`Removal of ${title}`);
  return (
    <ActionDialog
      title={`Delete ${title}`}
      submit="Delete"
      danger
      onClose={onClose}
      call={call}
      onSubmit={() => call.run(() => client.images.delete(image.digest))}
      spellings={() => imageSpellings.remove(image.digest)}
      done={removedText}
    >
      <p>
        This deletes the image with all its names from the server's machine. Sandboxes that need it pull it again when
        they are resumed.
      </p>
    </ActionDialog>
  );
}

interface PruneProperties {
  readonly images: readonly ImageRecord[];
  readonly onClose: () => void;
}

/** Deletes all images that no running sandbox uses. */
export function PruneDialog({ images, onClose }: PruneProperties): JSX.Element {
  const unused = images.filter(({ inUse }) => !inUse);
  const call = useLongCall<RemovedImages>("Removal of unused images");
  return (
    <ActionDialog
      title="Prune images"
      submit="Prune"
      danger
      onClose={onClose}
      call={call}
      onSubmit={() => call.run(() => client.images.prune())}
      spellings={imageSpellings.prune}
      done={removedText}
    >
      <p>
        This deletes every image that no running sandbox uses: {unused.length} of {images.length}. Paused sandboxes pull
        their image again when they are resumed.
      </p>
    </ActionDialog>
  );
}

function removedText({ removed, freedBytes }: RemovedImages): JSX.Element {
  return (
    <p>
      {removed.length} {removed.length === 1 ? "image was" : "images were"} deleted, {formatBytes(freedBytes)} freed.
    </p>
  );
}
