import { createHash } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { defineConfig, type DefaultTheme } from "vitepress";
import { isInSite, repositoryLinks, siteAnchor, siteName } from "./repository-links.ts";

const DOCS = join(import.meta.dirname, "..");
const BASE = "/docs/";

/** Inline scripts as files of their own, by name: the server's policy for pages allows no inline script. */
const scripts = new Map<string, string>();

/** `npm run docs`: the site that the server serves at /docs, from the Markdown files of the repository. */
export default defineConfig({
  title: "sandboxer",
  description: "Sandboxes that you can pause on one server and resume on another.",
  base: BASE,
  // The theme would add an inline style for the moment of the change.
  appearance: { disableTransition: false },
  cleanUrls: true,
  srcDir: "..",
  // README.md of the repository is for its front page; that of docs is the site's.
  // Nothing else that happens to lie in the clone becomes a page.
  srcExclude: readdirSync(join(DOCS, ".."))
    .filter((name) => !isInSite(name))
    .flatMap((name) => [name, `${name}/**`]),
  rewrites: siteName,
  cacheDir: "../node_modules/.cache/vitepress",
  // scripts/test/links.server.test.ts checks links, to files of the repository too.
  ignoreDeadLinks: true,
  markdown: {
    anchor: { slugify: siteAnchor },
    // Colours would be inline styles, which the server's policy does not allow.
    highlight: (code) => `<pre v-pre><code>${escapeHtml(code)}</code></pre>`,
    config: (markdown) => {
      markdown.core.ruler.push("repository-links", repositoryLinks);
    },
  },
  transformHtml: (html) =>
    html
      .replaceAll(/<script( id="[^"]*")?>([^<]*)<\/script>/g, (_, id: string | undefined, code: string) => {
        const name = `assets/inline.${createHash("sha256").update(code).digest("hex").slice(0, 8)}.js`;
        scripts.set(name, code);
        return `<script${id ?? ""} src="${BASE}${name}"></script>`;
      })
      // Inline styles are not allowed either. The theme sets these two again when it starts.
      .replaceAll(/ style="(--vp-vh:0px|position:relative);"/g, ""),
  buildEnd: ({ outDir }) => {
    for (const [name, code] of scripts) {
      mkdirSync(dirname(join(outDir, name)), { recursive: true });
      writeFileSync(join(outDir, name), code);
    }
  },
  themeConfig: {
    search: { provider: "local" },
    outline: [2, 3],
    nav: [
      { text: "Start here", link: "/start/" },
      { text: "All pages", link: "/" },
    ],
    sidebar: [
      section("Start here", "start"),
      section("Guides", "guides"),
      section("Reference", "reference"),
      section("Explanation", "explanation"),
      {
        text: "Project",
        collapsed: true,
        items: [
          { text: "Architecture", link: "/ARCHITECTURE" },
          { text: "Compatibility", link: "/COMPATIBILITY" },
          { text: "Changes", link: "/CHANGELOG" },
          { text: "Decisions", link: "/decisions/" },
          { text: "Benchmarks", link: "/benchmarks/" },
        ],
      },
    ],
  },
});

/** The pages of a folder by their titles, in the order of the index. */
function section(text: string, folder: string): DefaultTheme.SidebarItem {
  const index = readFileSync(join(DOCS, "README.md"), "utf8");
  const names = readdirSync(join(DOCS, folder)).toSorted(
    (first, second) => index.indexOf(`${folder}/${first}`) - index.indexOf(`${folder}/${second}`),
  );
  const items = names.map((name) => ({
    text: /^# (.*)$/m.exec(readFileSync(join(DOCS, folder, name), "utf8"))?.[1] ?? name,
    link: `/${folder}/${name.replace("README.md", "").replace(/\.md$/, "")}`,
  }));
  return { text, items };
}

function escapeHtml(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}
