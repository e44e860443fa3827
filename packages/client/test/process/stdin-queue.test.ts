import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { StdinQueue } from "../../src/process/stdin-queue.ts";

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);

/** A socket that records the sent data. */
function socket(queue: StdinQueue): { sent: () => string; closes: () => number } {
  const sent: Uint8Array[] = [];
  let closes = 0;
  queue.connected(
    (piece) => sent.push(piece) > 0,
    () => (closes += 1),
  );
  return { sent: () => Buffer.concat(sent).toString(), closes: () => closes };
}

test("a write is done when the process has read all of it", async () => {
  const queue = new StdinQueue(true);
  const first = socket(queue);
  const done: string[] = [];
  const writes = ["abc", "de"].map((text) => queue.write(bytes(text)).then(() => done.push(text)));
  expect(first.sent()).toBe("abcde");
  queue.taken(4);
  await writes[0];
  expect(done).toEqual(["abc"]);
  queue.taken(5);
  await writes[1];
});

test("no more is in flight than the server allows", async () => {
  const queue = new StdinQueue(true);
  const first = socket(queue);
  const write = queue.write(new Uint8Array(3_000_000));
  let taken = 0;
  while (taken < 3_000_000) {
    const onTheWay = first.sent().length - taken;
    expect(onTheWay).toBeGreaterThan(0);
    expect(onTheWay).toBeLessThanOrEqual(640 * 1024);
    taken += onTheWay;
    queue.taken(taken);
  }
  await write;
});

describe("when the connection ends", () => {
  test("by a move, exactly the rest is sent on the next one", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.string({ minLength: 1, maxLength: 20, unit: "grapheme-ascii" }), { minLength: 1 }),
        fc.array(fc.nat(30), { maxLength: 10 }),
        async (texts, moves) => {
          const queue = new StdinQueue(true);
          const writes = texts.map((text) => queue.write(bytes(text)));
          queue.close();
          let read = "";
          for (const move of moves) {
            const here = socket(queue);
            const part = here.sent().slice(0, move);
            queue.taken(part.length);
            read += part;
            queue.disconnected(true);
          }
          const last = socket(queue);
          read += last.sent();
          queue.taken(last.sent().length);
          await Promise.all(writes);
          expect(read).toBe(texts.join(""));
          expect(last.closes()).toBeGreaterThan(0);
        },
      ),
    );
  });

  test("by a cut, the fate of data in flight is unknown: that write fails, and later ones", async () => {
    const queue = new StdinQueue(true);
    socket(queue);
    const write = queue.write(bytes("abc"));
    queue.taken(1);
    queue.disconnected(false);
    await expect(write).rejects.toMatchObject({ code: "server_unreachable" });
    await expect(queue.write(bytes("d"))).rejects.toMatchObject({ code: "server_unreachable" });
  });

  test("by a cut with nothing in flight, later writes succeed", async () => {
    const queue = new StdinQueue(true);
    socket(queue);
    const write = queue.write(bytes("abc"));
    queue.taken(3);
    await write;
    queue.disconnected(false);
    const later = queue.write(bytes("d"));
    const next = socket(queue);
    queue.taken(1);
    await later;
    expect(next.sent()).toBe("d");
  });

  test("by a cut, a terminal continues with later input", async () => {
    const queue = new StdinQueue(false);
    socket(queue);
    const write = queue.write(bytes("abc"));
    queue.disconnected(false);
    await expect(write).rejects.toMatchObject({ code: "server_unreachable" });
    const later = queue.write(bytes("d"));
    const next = socket(queue);
    queue.taken(1);
    await later;
    expect(next.sent()).toBe("d");
  });
});

test("nothing can be written after the end", async () => {
  const queue = new StdinQueue(true);
  queue.close();
  await expect(queue.write(bytes("x"))).rejects.toThrow("stdin was closed");
});
