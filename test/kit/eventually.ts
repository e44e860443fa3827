/** Looks until a condition holds; fails after the deadline, which is for what is broken, with what was waited for. */
export async function eventually(
  what: string,
  condition: () => boolean | Promise<boolean>,
  deadlineMs = 60_000,
): Promise<void> {
  const deadline = performance.now() + deadlineMs;
  while (!(await condition())) {
    if (performance.now() > deadline) throw new Error(`Not so after ${deadlineMs} ms: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
