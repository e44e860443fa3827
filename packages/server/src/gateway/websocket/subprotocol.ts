import { carriesKey, SUBPROTOCOL } from "../access/shown-credential.ts";

/** Ours if it is offered, else the client's first. An offer that carries a key is never repeated. */
export function chooseSubprotocol(offers: ReadonlySet<string>): string | false {
  if (offers.has(SUBPROTOCOL)) return SUBPROTOCOL;
  return [...offers].find((offer) => !carriesKey(offer)) ?? false;
}
