import type { ImageRecord } from "@sandboxer/client";
import type { JSX } from "preact";
import { formatBytes } from "../../format/bytes.ts";
import { may } from "../../session.ts";
import { Age } from "../../ui/age.tsx";
import { Button } from "../../ui/button.tsx";
import { TableRegion } from "../../ui/table-region.tsx";
import { FileName } from "../sandbox/files/file-name.tsx";
import { imageTitle, shortDigest } from "./image-names.ts";

interface ImageTableProperties {
  readonly images: readonly ImageRecord[];
  readonly onDelete: (image: ImageRecord) => void;
}

/** Most recently used first. */
export function ImageTable({ images, onDelete }: ImageTableProperties): JSX.Element {
  if (images.length === 0) {
    return (
      <p class="card">
        No images. Pull one, such as <code>python:3.12-slim</code>, or create a sandbox with an image: the server pulls
        it by itself.
      </p>
    );
  }
  const columns = ["Name", "Digest", "Size", "Layers", "Last used", "In use", ...(may("admin") ? ["Actions"] : [])];
  return (
    <TableRegion label="Images" columns={columns}>
      {images.map((image) => (
        <tr key={image.digest}>
          <td class="image-names">
            {image.names.length === 0 ? <span class="hint">no name</span> : null}
            {image.names.map((name) => (
              <div key={name}>
                <FileName name={name} />
              </div>
            ))}
          </td>
          <td class="mono" title={image.digest}>
            {shortDigest(image)}
          </td>
          <td>{formatBytes(image.sizeBytes)}</td>
          <td>{image.layers}</td>
          <td>
            <Age time={image.lastUsedAt} /> ago
          </td>
          <td>{image.inUse ? <span class="chip chip-running">yes</span> : "no"}</td>
          {may("admin") ? (
            <td>
              <Button label={`Delete ${imageTitle(image)}`} disabled={image.inUse} onClick={() => onDelete(image)}>
                Delete
              </Button>
            </td>
          ) : null}
        </tr>
      ))}
    </TableRegion>
  );
}
