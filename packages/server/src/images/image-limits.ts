/** The limits of an image on this machine. Registries and images are not trusted. */
export interface ImageLimits {
  /** The size of a manifest, an index or a config: they are read into memory. */
  readonly documentBytes: number;
  readonly layers: number;
  /** The unpacked size of all layers together. */
  readonly unpackedBytes: number;
  /** Files, folders and links of all layers together. */
  readonly entries: number;
  /** A layer may be this many times larger unpacked than packed, after {@link freeBytes}. */
  readonly ratio: number;
  /** Small layers may have any ratio. */
  readonly freeBytes: number;
  /** The size of the image's variables together. */
  readonly environmentBytes: number;
}

const MIB = 1024 * 1024;

export const DEFAULT_LIMITS: ImageLimits = {
  documentBytes: 4 * MIB,
  layers: 256,
  unpackedBytes: 20 * 1024 * MIB,
  entries: 800_000,
  ratio: 200,
  freeBytes: 256 * MIB,
  environmentBytes: 128 * 1024,
};
