import fc from "fast-check";
import { expect, test } from "vitest";
import { fuzz } from "./support/fuzz.ts";
import { HostileServer } from "./support/hostile-server.ts";
import { anyRequest } from "./support/requests.ts";
import { sendRequest } from "./support/send-request.ts";

const AT_ONCE = 10;

test("whatever is sent to any route, there is no 500, and the server answers the next", async () => {
  const server = await HostileServer.start();
  const statuses = new Map<number | undefined, number>();
  await fuzz({
    name: "http",
    share: 0.6,
    inputsOfTry: AT_ONCE,
    input: fc.array(anyRequest, { minLength: AT_ONCE, maxLength: AT_ONCE }),
    check: async (requests) => {
      const answers = await Promise.all(requests.map((request) => sendRequest(server, request)));
      for (const { status, text } of answers) {
        statuses.set(status, (statuses.get(status) ?? 0) + 1);
        expect(text).not.toMatch(/^HTTP\/1\.1 500/);
        // Node itself refuses unknown values of Expect, without a body.
        if (status !== undefined && status >= 400)
          expect(text).toMatch(/^content-type: application\/json|^HTTP\/1\.1 417/im);
      }
      await server.lives();
    },
  });
  await server.end();
  // Both what is refused and what is done was tried.
  expect([...statuses.keys()]).toEqual(expect.arrayContaining([200, 201, 400, 404]));
});
