/** Asks again only when the last answer is older than this; who comes while one is awaited waits for the same one. */
export function keptAnswer<Answer>(forMs: number, ask: () => Promise<Answer>): () => Promise<Answer> {
  let kept: { readonly answer: Promise<Answer>; readonly askedMs: number } | undefined;
  let pending = false;
  return async () => {
    if (kept === undefined || (!pending && performance.now() - kept.askedMs >= forMs)) {
      pending = true;
      const answer = ask().finally(() => (pending = false));
      kept = { answer, askedMs: performance.now() };
    }
    return await kept.answer;
  };
}
