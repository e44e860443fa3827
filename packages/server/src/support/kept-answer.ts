/** Asks again only when the last answer is older than this. Callers that come meanwhile get the same answer; a failure is not kept. */
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
