import { Badge, type BadgeProps } from "@chakra-ui/react";
import { Explained } from "./Hint";

interface ExplainedBadgeProps extends Pick<BadgeProps, "colorPalette" | "variant" | "ms"> {
  /** What the word on it means; undefined: it says all by itself. */
  means: string | undefined;
  children: string;
}

/** A word in its colour that explains itself to mouse, touch and keyboard. */
export function ExplainedBadge({ means, children, variant = "surface", ...look }: ExplainedBadgeProps) {
  if (means === undefined) {
    return (
      <Badge variant={variant} {...look}>
        {children}
      </Badge>
    );
  }
  return (
    <Explained by={means}>
      <Badge asChild variant={variant} cursor="help" focusRing="outside" {...look}>
        <button type="button">{children}</button>
      </Badge>
    </Explained>
  );
}
