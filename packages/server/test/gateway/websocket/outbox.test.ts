import { EventEmitter } from "node:events";
import type { Socket } from "node:net";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { WebSocket } from "ws";
import { Outbox } from "../../../src/gateway/websocket/outbox.ts";

/** The part of a socket that an outbox uses, with nobody at the other end. */
class DeafSocket extends EventEmitter {
  readonly OPEN = 1;
  readonly readyState = 1;
  readonly bufferedAmount = 0;
  isPaused = false;
  readonly ping = vi.fn();
  readonly send = vi.fn();
  readonly close = vi.fn();
  readonly terminate = vi.fn();
}

class DeafStream extends EventEmitter {
  readonly cork = vi.fn();
  readonly uncork = vi.fn();
}

function outboxOf(socket: DeafSocket, onClose: () => void = () => {}): Outbox {
  return new Outbox(socket as unknown as WebSocket, new DeafStream() as unknown as Socket, onClose);
}

/** One ping asks for everything that was sent in a turn, at its end. */
function thisTurn(): Promise<void> {
  return new Promise((resolve) => process.nextTick(resolve));
}

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

test("a client that answers no ping is dropped, one that answers is kept", () => {
  const [deaf, well] = [new DeafSocket(), new DeafSocket()];
  outboxOf(deaf);
  outboxOf(well);
  well.ping.mockImplementation(() => well.emit("pong", Buffer.alloc(0)));
  vi.advanceTimersByTime(300_000);
  expect(deaf.terminate).toHaveBeenCalled();
  expect(well.terminate).not.toHaveBeenCalled();
});

test("a client whose socket the server itself does not read is not dropped for its silence", () => {
  const socket = new DeafSocket();
  outboxOf(socket);
  socket.isPaused = true;
  vi.advanceTimersByTime(300_000);
  expect(socket.terminate).not.toHaveBeenCalled();
  socket.isPaused = false;
  vi.advanceTimersByTime(300_000);
  expect(socket.terminate).toHaveBeenCalled();
});

test("sent data is settled by the answer to a later ping, by the end of the socket, or by time", async () => {
  const socket = new DeafSocket();
  const outbox = outboxOf(socket);
  const confirmed: string[] = [];
  for (const name of ["first", "second"])
    outbox.sendConfirmed([{ event: "error", message: name }], () => confirmed.push(name));
  const settled = outbox.settled(60_000);
  await thisTurn();
  socket.emit("pong", socket.ping.mock.calls.at(-1)?.[0]);
  await settled;
  expect(confirmed).toEqual(["first", "second"]);

  outbox.sendConfirmed([{ event: "error", message: "third" }], () => confirmed.push("third"));
  const late = outbox.settled(1000);
  vi.advanceTimersByTime(1000);
  await late;
  const gone = outbox.settled(60_000);
  socket.emit("close");
  await gone;
  expect(confirmed).toEqual(["first", "second"]);
});

test("answers to pings that were never sent are ignored", () => {
  const socket = new DeafSocket();
  outboxOf(socket);
  for (const data of [Buffer.alloc(0), Buffer.alloc(8, 0xff), Buffer.alloc(125)])
    expect(() => socket.emit("pong", data)).not.toThrow();
});

test("after its last message nothing more is sent, and that is reported once", () => {
  const socket = new DeafSocket();
  const onClose = vi.fn();
  const outbox = outboxOf(socket, onClose);
  outbox.close(1000);
  outbox.close(4000);
  outbox.status("RUNNING");
  expect(socket.close.mock.calls).toEqual([[1000]]);
  expect(socket.send).not.toHaveBeenCalled();
  expect(onClose).toHaveBeenCalledTimes(1);
});
