import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";

// Airflow's page has loaded these already; one copy of them in the page is what makes themes, dialogs and routes work.
const LOADED_BY_AIRFLOW = {
  react: "React",
  "react-dom": "ReactDOM",
  "react/jsx-runtime": "ReactJSXRuntime",
  "react-router-dom": "ReactRouterDOM",
  "@chakra-ui/react": "ChakraUI",
  "@emotion/react": "EmotionReact",
};

export default defineConfig({
  plugins: [react()],
  define: { "process.env.NODE_ENV": JSON.stringify("production") },
  build: {
    lib: { entry: "src/main.tsx", formats: ["umd"], name: "AirflowPlugin", fileName: () => "main.js" },
    rolldownOptions: {
      external: Object.keys(LOADED_BY_AIRFLOW),
      output: { exports: "default", globals: LOADED_BY_AIRFLOW },
    },
    sourcemap: false,
    target: "es2022",
  },
  test: { include: ["src/**/*.test.ts"] },
});
