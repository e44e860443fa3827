/** `npm run commit-subjects`: fails when a commit since the last release has a subject of more than 72 characters. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { longSubjects, MAX_SUBJECT } from "./release/history.ts";

const ROOT = new URL("..", import.meta.url).pathname;
const long = existsSync(join(ROOT, ".git")) ? longSubjects(ROOT) : [];
for (const line of long) process.stdout.write(`Longer than ${MAX_SUBJECT} characters: ${line}\n`);
process.exitCode = long.length === 0 ? 0 : 1;
