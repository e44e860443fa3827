import { expect, test } from "vitest";
import { requestOtherServer } from "../../../src/gateway/relay/other-server-request.ts";

test.each(["nonsense", "ftp://127.0.0.1/", "file:///etc/passwd"])(
  "%s in a store is not a server to relay to",
  (url) => {
    const begin = () => requestOtherServer({ instanceId: "other", url }, { method: "GET", path: "/", headers: {} });
    expect(begin).toThrow(expect.objectContaining({ code: "server_unreachable" }));
  },
);
