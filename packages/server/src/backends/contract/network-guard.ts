import type { Socket } from "node:net";

/** The address that a program inside chose for a connection. */
export interface ChosenAddress {
  readonly address: string;
  readonly port: number;
}

/** The server's part of a network of a sandbox's own: names, and connections that are judged one by one. */
export interface NetworkGuard {
  /** A program inside has connected. The connection belongs to the guard, which judges and serves it. */
  accept(connection: Socket, to: ChosenAddress): void;
  /** The answer to a DNS message; undefined: none. Never rejects. */
  answer(message: Buffer): Promise<Buffer | undefined>;
}
