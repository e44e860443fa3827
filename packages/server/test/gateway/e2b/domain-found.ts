/** What the programs of a user with `E2B_DOMAIN` print, in each language. */
export const FOUND = {
  stdout: "hello\n",
  background: "got words\n",
  content: "content",
  changed: true,
  downloaded: "content",
  paused: [false, "content"],
  cell: "42",
  listed: 1,
  isKilled: true,
};
