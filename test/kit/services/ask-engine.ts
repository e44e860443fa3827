import { request } from "node:http";
import { once } from "node:events";
import { json } from "node:stream/consumers";

type Filters = Readonly<Record<string, readonly string[]>>;

/**
 * GET of a Docker engine's API at `unix:///…`: like the `docker` program, without starting it. Tests look at an engine
 * so often that its starts were a tenth of their time.
 */
export async function askEngine<Answer>(host: string, path: string, filters: Filters = {}): Promise<Answer> {
  const query = new URLSearchParams({ all: "true", filters: JSON.stringify(filters) });
  const call = request({ socketPath: host.replace("unix://", ""), path: `${path}?${query.toString()}`, agent: false });
  const [answer] = await once(call.end(), "response");
  const body = await json(answer);
  if (answer.statusCode !== 200) throw new Error(`The engine answers ${answer.statusCode}: ${JSON.stringify(body)}`);
  return body as Answer;
}
