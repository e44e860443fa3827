import type { Socket } from "node:net";
import type { WebSocket } from "ws";
import type { Place } from "./places.ts";

/** How long a refused client may take to close the connection. */
const FAREWELL_MS = 1_000;
/** How many refused clients keep their sockets at once; beyond it the oldest are cut. */
const MAX_FAREWELLS = 1_000;

/** The refused clients that still have a connection. */
export class Farewells {
  /** Oldest first. */
  readonly #streams = new Set<Socket>();

  add(stream: Socket): void {
    const cut = setTimeout(() => stream.destroy(), FAREWELL_MS).unref();
    this.#streams.add(stream);
    stream.once("close", () => {
      clearTimeout(cut);
      this.#streams.delete(stream);
    });
    const [oldest] = this.#streams;
    if (this.#streams.size > MAX_FAREWELLS) oldest?.destroy();
  }
}

/** A WebSocket whose client is not authorized yet. It is not read until then. */
export class Admission {
  readonly #socket: WebSocket;
  readonly #stream: Socket;
  readonly #place: Place;
  readonly #farewells: Farewells;
  #isDecided = false;

  constructor(socket: WebSocket, stream: Socket, place: Place, farewells: Farewells) {
    this.#socket = socket;
    this.#stream = stream;
    this.#place = place;
    this.#farewells = farewells;
    socket.pause();
  }

  /** From now on the client counts and is read. Idempotent. */
  letIn(): void {
    if (this.#isDecided) return;
    this.#isDecided = true;
    this.#place.admit();
    this.#socket.resume();
  }

  /**
   * Refuses the client: `sayClose` is the last message. The client no longer counts, its input is discarded unparsed,
   * and the connection is cut in less than two seconds, whatever the client does.
   */
  turnAway(sayClose: () => void): void {
    this.#isDecided = true;
    this.#place.leave();
    // The only listener is the parser of `ws`. The bytes are still read: unread bytes at the end make the kernel reset
    // the connection, and the client might miss the error.
    this.#stream.removeAllListeners("data");
    sayClose();
    this.#stream.end();
    this.#stream.resume();
    this.#farewells.add(this.#stream);
  }
}
