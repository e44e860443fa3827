import type { IncomingMessage, ServerResponse } from "node:http";
import type { FastifyInstance } from "fastify";
import type { Previews } from "../preview/previews.ts";
import { E2bRouter } from "./e2b-router.ts";
import type { E2bServices } from "./e2b-services.ts";

/**
 * E2B's API as a dialect over the manager, for E2B's own clients. Nothing below the gateway knows of it. Its routes are
 * loaded with the first request: most servers never get one, and these routes are half of all.
 */
export class E2bGateway {
  readonly #router: E2bRouter;
  readonly #services: E2bServices;
  readonly #previews: Pick<Previews, "serve">;
  #app: Promise<FastifyInstance> | undefined;

  constructor(services: E2bServices, previews: Pick<Previews, "serve">) {
    this.#router = new E2bRouter(services.addresses);
    this.#services = services;
    this.#previews = previews;
  }

  /** Whether a request is in E2B's dialect. */
  takes(request: IncomingMessage): boolean {
    return this.#router.takes(request);
  }

  /** Answers requests that it takes. */
  async opened(): Promise<(request: IncomingMessage, response: ServerResponse) => void> {
    this.#app ??= this.#open().catch((error: unknown) => {
      // The next request tries again.
      this.#app = undefined;
      throw error;
    });
    const app = await this.#app;
    return (request, response) => app.routing(request, response);
  }

  async close(): Promise<void> {
    await (await this.#app?.catch(() => undefined))?.close();
  }

  async #open(): Promise<FastifyInstance> {
    const { openE2bApp } = await import("./e2b-app.ts");
    return await openE2bApp({ router: this.#router, services: this.#services, previews: this.#previews });
  }
}
