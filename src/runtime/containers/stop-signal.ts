import type { Signal } from '../../cri/index.ts';
import type { Container } from '../../kinds/index.ts';

/** The signal a container wants to be stopped with; undefined leaves it to the image and the runtime. */
export function stopSignal({ lifecycle }: Container): Signal | undefined {
  const name = lifecycle?.stopSignal ?? '';
  return name === '' ? undefined : (name.replace('+', 'PLUS').replace('-', 'MINUS') as Signal);
}
