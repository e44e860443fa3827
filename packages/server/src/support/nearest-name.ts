const LONGEST = 100;

/** The name that was probably meant, if one is near enough. */
export function nearestName(given: string, known: Iterable<string>): string | undefined {
  const wanted = normal(given);
  if (wanted === "" || wanted.length > LONGEST) return undefined;
  let nearest: { readonly name: string; readonly distance: number } | undefined;
  for (const name of known) {
    const candidate = normal(name);
    const shortened = candidate.slice(candidate.indexOf(".") + 1);
    const distance = Math.min(editDistance(wanted, candidate), editDistance(wanted, shortened));
    // Fewer edits than letters: otherwise nothing would be left of the name.
    const allowed = Math.min(Math.max(1, Math.floor(Math.max(wanted.length, shortened.length) / 3)), wanted.length - 1);
    if (distance <= allowed && distance < (nearest?.distance ?? Number.POSITIVE_INFINITY)) nearest = { name, distance };
  }
  return nearest?.name;
}

/** A sentence to append to a message, or nothing. */
export function didYouMean(given: string, known: Iterable<string>): string {
  const name = nearestName(given, known);
  return name === undefined ? "" : ` Did you mean ${name}?`;
}

/** Ignores how words are joined. */
function normal(name: string): string {
  return name.toLowerCase().replaceAll(/[-_\s]+/g, "-");
}

/** Insertions, deletions, replacements and swaps of neighbours. */
function editDistance(first: string, second: string): number {
  let before: number[] = [];
  let above = Array.from({ length: second.length + 1 }, (_, column) => column);
  for (let row = 1; row <= first.length; row++) {
    const current = [row];
    for (let column = 1; column <= second.length; column++) {
      const same = first[row - 1] === second[column - 1];
      let least = Math.min(at(above, column) + 1, at(current, column - 1) + 1, at(above, column - 1) + (same ? 0 : 1));
      const swapped = first[row - 1] === second[column - 2] && first[row - 2] === second[column - 1];
      if (row > 1 && column > 1 && swapped) least = Math.min(least, at(before, column - 2) + 1);
      current.push(least);
    }
    [before, above] = [above, current];
  }
  return at(above, second.length);
}

function at(row: readonly number[], column: number): number {
  return row[column] ?? Number.POSITIVE_INFINITY;
}
