import type { SandboxManager } from "../../../manager/sandbox-manager.ts";
import { bodyBytes } from "../body-bytes.ts";
import type { Handlers } from "../handler.ts";
import { wholeList } from "../page.ts";

/** Container images on this machine. */
export function imagesHandlers({ images }: SandboxManager) {
  return {
    listImages: async () => wholeList(await images.list()),
    pullImage: ({ body, options }) => images.pull(body.image, options),
    importImage: ({ query, stream, options }) => images.import(bodyBytes(stream), query.name, options),
    pruneImages: () => images.prune(),
    getImage: ({ params }) => images.get(params.image),
    deleteImage: ({ params }) => images.remove(params.image),
  } satisfies Partial<Handlers>;
}
