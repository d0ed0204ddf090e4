import type { Container } from '../../kinds/index.ts';
import { fnv1a32 } from '../../lib/index.ts';
import { goJson } from './go-format.ts';

/**
 * What of a container's spec restarts it when changed: its name and image. Other kubelets compute the same number, so
 * that taking over a node from one of them restarts nothing.
 */
export function specHash({ name, image = '' }: Container): string {
  const bytes = Buffer.from(goJson({ image, name }));
  return fnv1a32(`([]uint8)[${bytes.join(' ')}]`).toString(16);
}
