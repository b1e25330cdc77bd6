import { Box, type BoxProps, LocaleProvider, Portal } from "@chakra-ui/react";
import type { ReactNode } from "react";

// Airflow sets language and direction of its page by the user; this page is in English, wherever its parts are put.
const ENGLISH = { lang: "en", dir: "ltr" } as const;

// Whoever asks for less motion gets none. Without an animation, what slides away is gone at once.
const CALM = {
  "@media (prefers-reduced-motion: reduce)": {
    "&, & *, & *::before, & *::after": {
      animation: "none !important",
      transition: "none !important",
      scrollBehavior: "auto !important",
    },
  },
};

/** The box that the page lies in: English from left to right, and still where motion is not wanted. */
export function PageBox({ children, ...box }: BoxProps) {
  return (
    <LocaleProvider locale="en-US">
      <Box {...ENGLISH} css={CALM} {...box}>
        {children}
      </Box>
    </LocaleProvider>
  );
}

/** The same for what is shown above the page, outside of its box: dialogs, drawers, hints. */
export function PagePortal({ children }: { children: ReactNode }) {
  return (
    <Portal>
      <Box {...ENGLISH} css={CALM} display="contents">
        {children}
      </Box>
    </Portal>
  );
}
