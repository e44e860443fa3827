/** A load balancer in its smallest form: each connection goes to the next server that is up, whatever it carries. */
import { connect, createServer } from "node:net";

/** `servers()` gives those that are up, as { host, port }. Resolves to its own port. */
export async function startBalancer(port, servers) {
  let turn = 0;
  const balancer = createServer((client) => {
    client.on("error", () => client.destroy());
    forward(client, [...servers()], turn++);
  });
  await new Promise((resolve, reject) => {
    balancer.once("error", reject);
    balancer.listen(port, "127.0.0.1", resolve);
  });
  return { port: balancer.address().port, close: () => balancer.close() };
}

/** A server that does not answer is skipped; it may just be restarting. */
function forward(client, candidates, turn) {
  const [server] = candidates.splice(turn % Math.max(1, candidates.length), 1);
  if (server === undefined) return client.destroy();
  const upstream = connect(server.port, server.host);
  upstream.once("error", () => forward(client, candidates, turn));
  upstream.once("connect", () => {
    upstream.removeAllListeners("error");
    upstream.on("error", () => client.destroy());
    upstream.on("close", () => client.end());
    client.on("close", () => upstream.end());
    client.pipe(upstream).pipe(client);
  });
}
