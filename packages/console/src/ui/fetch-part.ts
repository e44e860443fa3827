/** Before each further try: whoever changes networks loses what is just being loaded, and the next try arrives. */
const AGAIN_AFTER_MS = [100, 500, 2_000];

let triesAgain = 0;

/**
 * Loads a part of the console, which is a file of its own. Browsers remember for as long as the page lives that the
 * address of a module could not be loaded, and do not ask again; the same file under another address is asked for. A
 * part has nothing else to load, so that this helps.
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

/** Of the file that could not be loaded; not every browser says it. */
function addressIn(reason: unknown): string | undefined {
  return reason instanceof Error ? /\bhttps?:\/\/\S+\.js\b/.exec(reason.message)?.[0] : undefined;
}

async function importFrom<Part>(address: string): Promise<Part> {
  return (await import(/* @vite-ignore */ address)) as Part;
}
