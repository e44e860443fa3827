/** Turns callbacks into an iterator that buffers unread values, until the end. */
async function* iterate<Event>(
  queue: Event[],
  arrival: () => Promise<void>,
  ended: () => boolean,
): AsyncGenerator<Event> {
  for (;;) {
    const next = queue.shift();
    if (next !== undefined) yield next;
    else if (ended()) return;
    else await arrival();
  }
}

/** Subscribes at once, so that nothing is missed between the call and the first `next`. */
export function eventsOf<Event>(
  subscribe: (listener: (event: Event) => void) => () => void,
  closed: Promise<unknown>,
): AsyncIterableIterator<Event> {
  const queue: Event[] = [];
  let over = false;
  let wake: () => void = () => {};
  const stop = subscribe((event) => {
    queue.push(event);
    wake();
  });
  void closed.then(() => {
    over = true;
    wake();
  });
  const events = iterate(
    queue,
    () => new Promise<void>((resolve) => (wake = resolve)),
    () => over,
  );
  return {
    [Symbol.asyncIterator]() {
      return this;
    },
    next: () => events.next(),
    return: () => {
      stop();
      return events.return(undefined);
    },
  };
}
