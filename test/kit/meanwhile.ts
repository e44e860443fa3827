/**
 * Lets time pass in which something must not happen, or after which a process is killed in the middle of its work. On a slow
 * machine such a test sees less, but does not fail. To wait for something that must happen, use `eventually`.
 */
export async function meanwhile(ms: number): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, ms));
}
