import { render } from "preact";
import { App } from "./app.tsx";
import { start } from "./session.ts";
import "./styles/tokens.css";
import "./styles/base.css";
import "./styles/components.css";
import "./styles/shell.css";

const root = document.querySelector("#app");
if (root === null) throw new Error("The page has no place for the console.");
render(<App />, root);
void start();
