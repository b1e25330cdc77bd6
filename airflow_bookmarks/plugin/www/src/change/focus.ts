/**
 * Return the field of a dialog that takes the focus first. Undefined if it has none (a question without fields, an answer)
 * or is gone: then the first element that can take the focus gets it. Null would be an error to the focus trap of Airflow's
 * Chakra.
 */
export function firstField(body: ParentNode | null): HTMLElement | undefined {
  return body?.querySelector<HTMLElement>("[data-first], input:checked") ?? undefined;
}

/** Return an element and all that it lies in, from the inside out, for the way back to it. */
export function trailOf(element: Element | null): HTMLElement[] {
  const trail: HTMLElement[] = [];
  for (let each = element; each !== null && each !== document.body; each = each.parentElement) {
    if (each instanceof HTMLElement) trail.push(each);
  }
  return trail;
}

/** Return what of a trail is still there, able to take the focus: a button may have gone with what it was for. */
export function backAlong(trail: readonly HTMLElement[]): HTMLElement | null {
  const left = trail.find((element) => element.isConnected);
  if (left !== undefined && left.tabIndex < 0) left.setAttribute("tabindex", "-1");
  return left ?? null;
}
