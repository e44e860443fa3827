/** Caches an answer for this long. Concurrent callers share one call; a failure is not cached. */
export function keptAnswer<Answer>(forMs: number, ask: () => Promise<Answer>): () => Promise<Answer> {
  let kept: { readonly answer: Promise<Answer>; readonly askedMs: number } | undefined;
  let pending = false;
  return async () => {
    if (kept === undefined || (!pending && performance.now() - kept.askedMs >= forMs)) {
      pending = true;
      const answer = ask().finally(() => (pending = false));
      kept = { answer, askedMs: performance.now() };
      answer.catch(() => (kept = undefined));
    }
    return await kept.answer;
  };
}
