import { join } from "node:path";

/** The places of images below the cache folder. Names are digests without `sha256:`. */
export class ImageFolders {
  readonly top: string;

  constructor(top: string) {
    this.top = top;
  }

  layer(diffId: string): string {
    return join(this.top, "layers", hex(diffId));
  }

  root(digest: string): string {
    return join(this.top, "roots", hex(digest));
  }

  download(digest: string): string {
    return join(this.downloads, hex(digest));
  }

  /** Held while something of this digest is created or removed. */
  lock(digest: string): string {
    return join(this.top, "locks", `${hex(digest)}.lock`);
  }

  get layers(): string {
    return join(this.top, "layers");
  }

  get roots(): string {
    return join(this.top, "roots");
  }

  get downloads(): string {
    return join(this.top, "downloads");
  }

  get imports(): string {
    return join(this.top, "imports");
  }
}

function hex(digest: string): string {
  return digest.replace(/^sha256:/, "");
}
