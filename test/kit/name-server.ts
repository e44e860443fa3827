import { createSocket, type Socket } from "node:dgram";
import { once } from "node:events";

const A = 1;

/** A nameserver on loopback for tests. Names that it does not know do not exist. */
export class NameServer {
  readonly #socket: Socket = createSocket("udp4");
  readonly #addressOf: (name: string) => string | undefined;
  /** Every name that was asked for. */
  readonly asked: string[] = [];

  constructor(addressOf: (name: string) => string | undefined) {
    this.#addressOf = addressOf;
    this.#socket.on("message", (question, from) => {
      const answer = this.#answer(question);
      if (answer !== undefined) this.#socket.send(answer, from.port, from.address);
    });
  }

  async open(port = 0, address = "127.0.0.1"): Promise<void> {
    this.#socket.bind(port, address);
    await once(this.#socket, "listening");
  }

  get address(): string {
    return `127.0.0.1:${this.#socket.address().port}`;
  }

  close(): void {
    this.#socket.close();
  }

  /** RFC 1035: a header of 12 bytes, the question as it came, and one answer that points back to its name. */
  #answer(question: Buffer): Buffer | undefined {
    const labels: string[] = [];
    let at = 12;
    for (let length = question[at] ?? 0; length > 0; length = question[at] ?? 0) {
      labels.push(question.toString("latin1", at + 1, at + 1 + length));
      at += length + 1;
    }
    const end = at + 5;
    if (question.length < end) return undefined;
    const name = labels.join(".").toLowerCase();
    this.asked.push(name);
    const address = this.#addressOf(name);
    const known = address !== undefined && question.readUInt16BE(at + 1) === A;
    const header = Buffer.from([0, 0, 0x81, address === undefined ? 0x83 : 0x80, 0, 1, 0, known ? 1 : 0, 0, 0, 0, 0]);
    question.copy(header, 0, 0, 2);
    const record = Buffer.from([0xc0, 12, 0, A, 0, 1, 0, 0, 0, 0, 0, 4, ...(address ?? "").split(".").map(Number)]);
    return Buffer.concat([header, question.subarray(12, end), known ? record : Buffer.alloc(0)]);
  }
}
