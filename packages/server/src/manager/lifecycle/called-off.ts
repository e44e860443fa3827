/** Thrown when the reason for putting a sandbox down has gone before it began. */
export class CalledOff extends Error {}

export async function unlessCalledOff(work: Promise<void>): Promise<void> {
  try {
    await work;
  } catch (error) {
    if (!(error instanceof CalledOff)) throw error;
  }
}
