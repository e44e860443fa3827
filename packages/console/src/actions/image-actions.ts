import { literal, onServer, type Spellings } from "./spellings.ts";

/** Container images in other forms. */
export const imageSpellings = {
  list: (): Spellings =>
    onServer(["images", "ls"], "console.log(await client.images.list());", { method: "GET", path: "/v1/images" }),
  pull: (image: string): Spellings =>
    onServer(["images", "pull", image], `await client.images.pull(${literal(image)});`, {
      method: "POST",
      path: "/v1/images",
      body: { image },
    }),
  remove: (image: string): Spellings =>
    onServer(["images", "rm", image], `await client.images.delete(${literal(image)});`, {
      method: "DELETE",
      path: `/v1/images/${encodeURIComponent(image)}`,
    }),
  prune: (): Spellings =>
    onServer(["images", "prune"], "await client.images.prune();", { method: "POST", path: "/v1/images/prune" }),
};
