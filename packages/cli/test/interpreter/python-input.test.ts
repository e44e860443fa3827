import { expect, test } from "vitest";
import { isComplete } from "../../src/interpreter/python-input.ts";

test.each([
  "",
  "x = 1",
  "print('a:')",
  "if x: y",
  "if x:\n  y\n",
  "def f():\n  return {\n    'a': 1}\n",
  "@decorator\ndef f(): pass\n",
  "'# no comment'",
  "'it\\'s'",
  '"""whole"""',
  "x = (1 # )\n )",
  "x = 1 # if y:",
  "'no end",
  "}",
])("%j is whole", (code) => {
  expect(isComplete(code)).toBe(true);
});

test.each([
  "if x:",
  "if x:\n  y",
  "@decorator",
  "def f():  # a comment",
  "f(",
  "f(\n1,",
  "x = [1, # ]",
  '"""open',
  "'''a\nb''",
  "x = 1 + \\",
  "class A:\n  '''text'''",
])("%j needs more lines", (code) => {
  expect(isComplete(code)).toBe(false);
});
