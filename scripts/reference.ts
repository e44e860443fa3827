/** `npm run reference`: writes the pages of docs/reference and the files of the Python SDK that are made from the code. A test compares them. */
import { writeFile } from "node:fs/promises";
import { generatedPages } from "./reference/pages.ts";

for (const [path, text] of await generatedPages()) await writeFile(new URL(`../${path}`, import.meta.url), text);
