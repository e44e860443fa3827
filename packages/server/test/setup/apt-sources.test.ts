import { expect, test } from "vitest";
import { findDebianMirror } from "../../src/setup/engine/apt-sources.ts";

const DEB822 = `
Types: deb
# http://snapshot.debian.org/archive/debian/20250520T000000Z
URIs: http://mirror.example/debian
Suites: bookworm bookworm-updates
Components: main
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg

Types: deb
URIs: http://mirror.example/debian-security
Suites: bookworm-security
Components: main
`;

test("deb822 style", () => {
  expect(findDebianMirror("debian.sources", DEB822)).toEqual({
    uri: "http://mirror.example/debian",
    keyring: "/usr/share/keyrings/debian-archive-keyring.gpg",
  });
});

test("one-line style, with and without options", () => {
  expect(findDebianMirror("sources.list", "deb http://a.example/debian trixie main contrib # home\n")).toEqual({
    uri: "http://a.example/debian",
    keyring: undefined,
  });
  const line = "deb [arch=amd64 signed-by=/keys/debian.gpg] mirror+file:/etc/apt/mirrors/debian.list bookworm main";
  expect(findDebianMirror("sources.list", line)).toEqual({
    uri: "mirror+file:/etc/apt/mirrors/debian.list",
    keyring: "/keys/debian.gpg",
  });
});

test.each([
  ["x.list", "# deb http://a.example/debian bookworm main"],
  ["x.list", "deb-src http://a.example/debian bookworm main"],
  ["x.list", "deb https://a.example/apt cloud-sdk-bookworm main"],
  ["x.list", "deb http://a.example/ubuntu noble main"],
  ["x.list", "deb http://a.example/debian bookworm contrib"],
  ["x.sources", "Types: deb\nURIs: https://deb.example/node_20.x\nSuites: nodistro\nComponents: main"],
  ["x.sources", "Enabled: no\nTypes: deb\nURIs: http://a.example/debian\nSuites: bookworm\nComponents: main"],
  ["x.sources", ""],
])("%s without a Debian mirror: %s", (name, text) => {
  expect(findDebianMirror(name, text)).toBeUndefined();
});

test("a key inside the file is not a keyring", () => {
  const text = `Types: deb
URIs: http://a.example/debian
Suites: bookworm
Components: main
Signed-By:
 -----BEGIN PGP PUBLIC KEY BLOCK-----
 .
 abc
`;
  expect(findDebianMirror("x.sources", text)).toEqual({ uri: "http://a.example/debian", keyring: undefined });
});
