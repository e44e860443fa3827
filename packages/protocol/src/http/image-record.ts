import { z } from "zod";
import { timestampSchema } from "./common.ts";

/** A container image on the server's machine. */
export const imageRecordSchema = z
  .object({
    digest: z.string().meta({ description: "Digest of its manifest for this platform: its identity." }),
    names: z.array(z.string()).meta({ examples: [["docker.io/library/python:3.12-slim"]] }),
    size_bytes: z.number().int().meta({ description: "Unpacked size of all its layers; other images may share them." }),
    layers: z.number().int(),
    pulled_at: timestampSchema,
    last_used_at: timestampSchema,
    in_use: z.boolean().meta({ description: "Whether a running sandbox of this machine uses it." }),
    environment: z.record(z.string(), z.string()),
    user: z.string().nullable(),
    working_folder: z.string().nullable(),
    entrypoint: z.array(z.string()).nullable(),
    command: z.array(z.string()).nullable(),
  })
  .meta({ id: "Image" });
export type ImageRecord = z.infer<typeof imageRecordSchema>;

export const removedImagesSchema = z
  .object({
    removed: z.array(z.string()).meta({ description: "Digests of the images that were removed." }),
    freed_bytes: z.number().int(),
  })
  .meta({ id: "RemovedImages" });
export type RemovedImages = z.infer<typeof removedImagesSchema>;
