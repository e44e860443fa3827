/** Thrown when the reason for a pause has gone before it began. */
export class CalledOff extends Error {}

export async function unlessCalledOff(work: Promise<unknown>): Promise<void> {
  try {
    await work;
  } catch (error) {
    if (!(error instanceof CalledOff)) throw error;
  }
}
