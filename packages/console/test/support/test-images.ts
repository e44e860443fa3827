import type { ImageLibrary } from "../../../server/src/images/image-library.ts";
import { FakeRegistry } from "../../../server/test/images/support/fake-registry.ts";
import { madeImage, madeLayer } from "../../../server/test/images/support/made-image.ts";
import { openLibrary } from "../../../server/test/images/support/open-library.ts";

export interface TestImages {
  readonly library: ImageLibrary;
  readonly registry: FakeRegistry;
  /** The names of two images in the registry. */
  readonly names: readonly [string, string];
}

/** Container images of a server, none of them pulled yet, and their registry. */
export async function testImages(): Promise<TestImages> {
  const registry = await FakeRegistry.start();
  const push = async (repository: string): Promise<string> =>
    registry.push(madeImage([await madeLayer([{ name: repository, content: repository }])]), repository);
  return { library: await openLibrary(registry), registry, names: [await push("team/tool"), await push("team/other")] };
}
