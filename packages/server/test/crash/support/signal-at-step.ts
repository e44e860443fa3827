/** Given to a server's Node with `--import`: puts `doomed-store.ts` where the server opens its store. */
import { registerHooks } from "node:module";

const DOOMED = new URL("./doomed-store.ts", import.meta.url).href;

registerHooks({
  resolve: (specifier, context, nextResolve) => {
    const resolved = nextResolve(specifier, context);
    const isOpenStore = resolved.url.endsWith("/src/store/open-store.ts") && context.parentURL !== DOOMED;
    return isOpenStore ? { ...resolved, url: DOOMED } : resolved;
  },
});
