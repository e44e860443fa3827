/** The usual theme with the fonts of the system: the site needs nothing from other hosts. */
export { default } from "vitepress/theme-without-fonts";
