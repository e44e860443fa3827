import type { Lab } from "../lab.ts";
import type { Program } from "../raw/bundle.ts";

/** How long `runsc run` of a program takes to its first byte. */
export async function rawFirstByte(lab: Lab, program: Program): Promise<number> {
  const container = await lab.raw.run(program);
  const elapsedMs = await container.firstByteMs();
  await container.end();
  return elapsedMs;
}

export function rounds(lab: Lab): number {
  return lab.quick ? 2 : 9;
}
