const MAX_CHARACTERS = 2000;

/** A message may repeat a client's input, which may be long. */
export function cutMessage(message: string): string {
  return message.length <= MAX_CHARACTERS ? message : `${message.slice(0, MAX_CHARACTERS - 1)}…`;
}
