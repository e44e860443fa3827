import { asMissingBucket } from "./bucket-error.ts";
import type { BucketApi, ListPage, Retry } from "./bucket-api.ts";

const DELETES_AT_ONCE = 8;

/** Walks the pages of a bucket's list. */
export class BucketListing {
  readonly #api: BucketApi;
  readonly #retry: Retry;

  constructor(api: BucketApi, retry: Retry) {
    this.#api = api;
    this.#retry = retry;
  }

  async *pages(prefix: string, byFolder: boolean): AsyncGenerator<ListPage, void, undefined> {
    let pageToken: string | undefined;
    do {
      const request = { prefix, byFolder, pageToken };
      const page: ListPage = await this.#retry(() => this.#api.listPage(request)).catch((error: unknown) => {
        // A list of nothing is empty.
        throw asMissingBucket(error);
      });
      yield page;
      pageToken = page.nextPageToken;
    } while (pageToken !== undefined);
  }

  async isEmpty(prefix: string): Promise<boolean> {
    for await (const page of this.pages(prefix, false)) if (page.objects.length > 0) return false;
    return true;
  }

  /** Whatever the names are: what others left there goes too. */
  async deleteBelow(prefix: string): Promise<void> {
    for await (const { objects } of this.pages(prefix, false)) {
      const names = objects.map(({ name }) => name).values();
      await Promise.all(
        Array.from({ length: DELETES_AT_ONCE }, async () => {
          for (const name of names) await this.#retry(() => this.#api.delete(name));
        }),
      );
    }
  }
}
