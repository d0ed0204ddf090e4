import type { Container } from '../../kinds/index.ts';
import { fnv1a32 } from '../../lib/index.ts';
import { goJson } from './go-format.ts';

/**
 * Returns the hash of the spec fields whose change restarts a container: name and image. Equals the
 * Go kubelet's hash, so that replacing the Go kubelet on a node restarts no container.
 */
export function specHash({ name, image = '' }: Container): string {
  const bytes = Buffer.from(goJson({ image, name }));
  return fnv1a32(`([]uint8)[${bytes.join(' ')}]`).toString(16);
}
