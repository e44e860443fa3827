/** Given to a server's Node with `--import`: puts `traced-store.ts` where the server opens its store. */
import { registerHooks } from "node:module";

const TRACED = new URL("./traced-store.ts", import.meta.url).href;

registerHooks({
  resolve: (specifier, context, nextResolve) => {
    const resolved = nextResolve(specifier, context);
    const isOpenStore = resolved.url.endsWith("/src/store/open-store.ts") && context.parentURL !== TRACED;
    return isOpenStore ? { ...resolved, url: TRACED } : resolved;
  },
});
