import { once } from "node:events";
import { createServer, connect, type AddressInfo, type Server, type Socket } from "node:net";
import type { DockerService } from "./docker-service.ts";

/** An engine's socket behind a port, whose connections can be cut. */
export class TcpEngine {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();

  private constructor(service: DockerService) {
    this.#server = createServer((near) => {
      const far = connect(service.host.replace("unix://", ""));
      for (const [from, to] of [[near, far] as const, [far, near] as const]) {
        from.pipe(to);
        from.on("error", () => to.destroy());
        from.on("close", () => to.destroy());
      }
      this.#sockets.add(near);
    }).listen(0, "127.0.0.1");
  }

  static async open(service: DockerService): Promise<TcpEngine> {
    const engine = new TcpEngine(service);
    await once(engine.#server, "listening");
    return engine;
  }

  get host(): string {
    return `tcp://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  cut(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  close(): void {
    this.#server.close();
  }
}
