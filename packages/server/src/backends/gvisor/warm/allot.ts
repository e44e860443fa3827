/** Distributes places among candidates, one in each round, in order. */
export function allot(wanted: readonly number[], places: number): number[] {
  const given = wanted.map(() => 0);
  let left = places;
  for (let before = -1; left !== before;) {
    before = left;
    for (const [index, count] of wanted.entries()) {
      if (left === 0 || given[index]! >= count) continue;
      given[index]! += 1;
      left -= 1;
    }
  }
  return given;
}
