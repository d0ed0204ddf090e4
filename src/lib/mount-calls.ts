import { libraryCalls } from './library-calls.ts';

/**
 * The kernel's own calls, for file systems that live in memory: to run a program for each would cost more than all else
 * that is done for a volume. Each answers whether it was done; why not, the program that does the same can say.
 *
 * They stop this process until they are done, so never to be used where something that may hang is mounted.
 */
export interface MountCalls {
  mount(kind: { readonly type: string; readonly device: string; readonly options: string }, at: string): Done;
  unmount(at: string): Done;
}

type Done = 'done' | 'failed';

/** The last step of the way is not followed if it has become a link. */
const unmountNoFollow = 8;

/** Undefined where Node cannot call them. */
export function mountCalls(): MountCalls | undefined {
  const { mount, umount2 } = libraryCalls({
    mount: { arguments: ['string', 'string', 'string', 'uint64', 'string'], return: 'int32' },
    umount2: { arguments: ['string', 'int32'], return: 'int32' },
  });
  if (mount === undefined || umount2 === undefined) return undefined;
  return {
    mount: ({ type, device, options }, at) =>
      isWhole(device, at, type, options) ? done(mount(device, at, type, 0n, options)) : 'failed',
    unmount: (at) => (isWhole(at) ? done(umount2(at, unmountNoFollow)) : 'failed'),
  };
}

/** The kernel takes a text only as far as its first NUL. */
function isWhole(...texts: readonly string[]): boolean {
  return texts.every((text) => !text.includes('\0'));
}

function done(answer: number): Done {
  return answer === 0 ? 'done' : 'failed';
}
