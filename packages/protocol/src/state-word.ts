/**
 * The word that people read for a state of a sandbox. A paused sandbox is `stored` on the wire and in stores, which
 * programs depend on.
 */
export function stateWord(state: string): string {
  return state === "stored" ? "paused" : state;
}

/** The state that a person means. */
export function stateOfWord(word: string): string {
  return word === "paused" ? "stored" : word;
}
