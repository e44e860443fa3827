import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { formatBytes } from "../../../format/bytes.ts";
import { IMAGE_BYTES, type Content } from "./content.ts";
import { plainName } from "./visible-name.ts";

interface ImageViewProperties {
  readonly name: string;
  readonly image: Extract<Content, { kind: "image" }>;
}

/** An image by a private URL, with a type that was detected from its bytes. */
export function ImageView({ name, image }: ImageViewProperties): JSX.Element {
  const { bytes, type } = image;
  const [address, setAddress] = useState<string>();
  const [broken, setBroken] = useState(false);
  useEffect(() => {
    if (bytes === undefined) return;
    const made = URL.createObjectURL(new Blob([bytes], { type }));
    setAddress(made);
    setBroken(false);
    return () => URL.revokeObjectURL(made);
  }, [bytes, type]);
  if (bytes === undefined) {
    return <p>Images over {formatBytes(IMAGE_BYTES)} are not shown here. Download it to see it.</p>;
  }
  if (broken) return <p>This looks like an image but cannot be displayed. You can view its bytes.</p>;
  if (address === undefined) return <p class="page-note">Loading …</p>;
  return <img class="file-image" src={address} alt={`The image ${plainName(name)}`} onError={() => setBroken(true)} />;
}
