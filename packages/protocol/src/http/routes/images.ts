import { z } from "zod";
import { pageOf } from "../common.ts";
import { imageRecordSchema, removedImagesSchema } from "../image-record.ts";
import { route } from "../route.ts";

const tag = "images";
/** A name, a digest, or its first digits. */
const imageParams = z.object({ image: z.string().min(1).max(512) });

export const IMAGE_ROUTES = {
  listImages: route({
    method: "GET",
    path: "/v1/images",
    summary: "List the container images on the server's machine, most recently used first.",
    tag,
    scope: "read",
    status: 200,
    response: pageOf(imageRecordSchema),
  }),
  pullImage: route({
    method: "POST",
    path: "/v1/images",
    summary: "Pull an image from its registry, even if one of this name is on the server.",
    tag,
    scope: "use",
    body: z.strictObject({
      image: z
        .string()
        .min(1)
        .max(512)
        .meta({ examples: ["python:3.12-slim"] }),
    }),
    status: 200,
    response: imageRecordSchema,
    operation: "pull",
  }),
  importImage: route({
    method: "POST",
    path: "/v1/images/import",
    summary: "Import an image from an archive that `docker save`, buildah or skopeo wrote.",
    tag,
    scope: "admin",
    query: z.object({
      name: z.string().min(1).max(512).optional().meta({ description: "Default: the name in the archive." }),
    }),
    body: { stream: "application/x-tar" },
    status: 200,
    response: imageRecordSchema,
  }),
  pruneImages: route({
    method: "POST",
    path: "/v1/images/prune",
    summary: "Delete every image that no running sandbox uses.",
    tag,
    scope: "admin",
    status: 200,
    response: removedImagesSchema,
  }),
  getImage: route({
    method: "GET",
    path: "/v1/images/{image}",
    summary: "Get an image by name or digest.",
    tag,
    scope: "read",
    params: imageParams,
    status: 200,
    response: imageRecordSchema,
  }),
  deleteImage: route({
    method: "DELETE",
    path: "/v1/images/{image}",
    summary: "Delete a name of an image, and the image with its last name. Fails while a running sandbox uses it.",
    tag,
    scope: "admin",
    params: imageParams,
    status: 200,
    response: removedImagesSchema,
  }),
} as const;
