/** Delays between attempts: a change of networks loses the current download, and the next attempt succeeds. */
const AGAIN_AFTER_MS = [100, 500, 2_000];

let triesAgain = 0;

/**
 * Loads a part of the console, which is a separate file. Browsers remember for the life of the page that a module URL
 * could not be loaded, and do not retry; the same file under another URL is requested. A part loads nothing else, so
 * this works.
 */
export async function fetchPart<Part>(load: () => Promise<Part>): Promise<Part> {
  const [first] = await Promise.allSettled([load()]);
  if (first.status === "fulfilled") return first.value;
  const address = addressIn(first.reason);
  for (const waitMs of AGAIN_AFTER_MS) {
    await new Promise((resolve) => setTimeout(resolve, waitMs));
    const again = address === undefined ? load() : importFrom<Part>(`${address}?again=${++triesAgain}`);
    const [next] = await Promise.allSettled([again]);
    if (next.status === "fulfilled") return next.value;
  }
  throw first.reason;
}

/** The URL of the file that could not be loaded; not every browser reports it. */
function addressIn(reason: unknown): string | undefined {
  return reason instanceof Error ? /\bhttps?:\/\/\S+\.js\b/.exec(reason.message)?.[0] : undefined;
}

async function importFrom<Part>(address: string): Promise<Part> {
  return (await import(/* @vite-ignore */ address)) as Part;
}
