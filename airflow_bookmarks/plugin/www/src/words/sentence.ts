/** Return what the server says as a sentence: with a capital letter in front and a full stop behind. */
export function sentence(said: string): string {
  const text = said.charAt(0).toUpperCase() + said.slice(1);
  return text.endsWith(".") ? text : `${text}.`;
}
