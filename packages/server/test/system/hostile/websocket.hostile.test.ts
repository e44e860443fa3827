import fc from "fast-check";
import { expect, test } from "vitest";
import { converse } from "./support/converse.ts";
import { conversationOf } from "./support/conversations.ts";
import { fuzz } from "./support/fuzz.ts";
import { HostileServer } from "./support/hostile-server.ts";

const CONVERSATIONS = 4;
const FRAMES = 5;

test("whatever is sent on a WebSocket, no session fails inside, and the server serves the next", async () => {
  const server = await HostileServer.start();
  await fuzz({
    name: "websocket",
    share: 0.3,
    inputsOfTry: CONVERSATIONS * FRAMES,
    input: fc.array(conversationOf(FRAMES), { minLength: CONVERSATIONS, maxLength: CONVERSATIONS }),
    check: async (conversations) => {
      for (const status of await Promise.all(conversations.map((each) => converse(server, each))))
        expect(status).not.toBe(500);
      await server.lives();
    },
  });
  await server.end();
});
