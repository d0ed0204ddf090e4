import type { Container } from '../../kinds/index.ts';
import { fnv1a32 } from '../../lib/index.ts';

/**
 * What of a container's spec restarts it when changed: its name and image. Other kubelets compute the same number, so
 * that taking over a node from one of them restarts nothing.
 */
export function specHash({ name, image = '' }: Container): string {
  const bytes = Buffer.from(escapeHtml(JSON.stringify({ image, name })));
  return fnv1a32(`([]uint8)[${bytes.join(' ')}]`).toString(16);
}

/** These are escaped in the JSON that was first hashed, so they must be for ever. */
const escapes: Readonly<Record<string, string>> = {
  '<': '\\u003c',
  '>': '\\u003e',
  '&': '\\u0026',
  '\u2028': '\\u2028',
  '\u2029': '\\u2029',
};

function escapeHtml(json: string): string {
  return json.replace(/[<>&\u2028\u2029]/g, (character) => escapes[character] ?? character);
}
