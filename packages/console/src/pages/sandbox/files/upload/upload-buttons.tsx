import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { Button } from "../../../../ui/button.tsx";
import { itemsOfFiles, type UploadItem } from "./gather.ts";

/** The browser's own choosers of files, and of a folder. */
export function UploadButtons({
  onChosen,
}: {
  readonly onChosen: (items: readonly UploadItem[]) => void;
}): JSX.Element {
  const files = useRef<HTMLInputElement>(null);
  const folder = useRef<HTMLInputElement>(null);
  useEffect(() => {
    // Preact's types do not have this attribute.
    if (folder.current !== null) folder.current.webkitdirectory = true;
  }, []);
  const take = (input: HTMLInputElement): void => {
    const items = itemsOfFiles(input.files ?? []);
    // So that the same choice triggers the event again.
    input.value = "";
    onChosen(items);
  };
  return (
    <>
      <Button onClick={() => files.current?.click()}>Upload files</Button>
      <Button onClick={() => folder.current?.click()}>Upload a folder</Button>
      <input
        ref={files}
        type="file"
        multiple
        hidden
        aria-label="Files to upload"
        onChange={(event) => take(event.currentTarget)}
      />
      <input
        ref={folder}
        type="file"
        hidden
        aria-label="Folder to upload"
        onChange={(event) => take(event.currentTarget)}
      />
    </>
  );
}
