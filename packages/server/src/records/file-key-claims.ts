import { join } from "node:path";
import { z } from "zod";
import { LockedJsonFile } from "../support/locked-json-file.ts";
import type { KeyClaims } from "./key-claims.ts";

const FILE = "acquire-keys.json";
/** An older one is not missed: what has its key is looked for then. */
const KEEP = 1000;

/** Pairs of a key and the sandbox that it stands for, the newest last. */
const fileSchema = z.looseObject({ format: z.literal(1), claims: z.array(z.tuple([z.string(), z.string()])) });
type Content = z.infer<typeof fileSchema>;

/** As {@link KeyClaims}, in a file of the data directory: for the servers of one machine that have no store. */
export class FileKeyClaims implements Pick<KeyClaims, "get" | "take"> {
  readonly #file: LockedJsonFile<Content>;

  constructor(dataDirectory: string) {
    this.#file = new LockedJsonFile<Content>(join(dataDirectory, FILE), fileSchema, { format: 1, claims: [] });
  }

  async get(key: string): Promise<string | undefined> {
    return claimOf(await this.#file.read(), key);
  }

  async take(key: string, sandboxId: string, isThere: (sandboxId: string) => Promise<boolean>): Promise<boolean> {
    for (;;) {
      const present = await this.get(key);
      if (present === sandboxId) return true;
      if (present !== undefined && (await isThere(present))) return false;
      let taken = false;
      await this.#file.change((content) => {
        taken = claimOf(content, key) === present;
        if (!taken) return content;
        const others = content.claims.filter(([other]) => other !== key);
        return { ...content, claims: [...others.slice(1 - KEEP), [key, sandboxId]] };
      });
      if (taken) return true;
    }
  }
}

function claimOf({ claims }: Content, key: string): string | undefined {
  return claims.find(([other]) => other === key)?.[1];
}
