const MAX_CHARACTERS = 2000;

/** A message may repeat what somebody has sent, and that may be long. */
export function cutMessage(message: string): string {
  return message.length <= MAX_CHARACTERS ? message : `${message.slice(0, MAX_CHARACTERS - 1)}…`;
}
