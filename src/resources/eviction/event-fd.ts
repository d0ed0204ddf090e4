import { closeSync, read, writeSync } from 'node:fs';
import { libcFunctions } from '../../lib/index.ts';

const countBytes = 8;
const closeOnExec = 0o2_000_000;

/**
 * An eventfd of the kernel: the kernel increments its counter at watched events, and a reader of
 * the eventfd can wait for them.
 */
export class EventFd implements Disposable {
  readonly fd: number;
  #use: 'unused' | 'waited-for' | 'closed' = 'unused';

  private constructor(fd: number) {
    this.fd = fd;
  }

  /** Opens an eventfd; undefined if Node.js cannot create one. */
  static open(): EventFd | undefined {
    const { eventfd } = libcFunctions({ eventfd: { arguments: ['uint32', 'int32'], return: 'int32' } });
    const fd = eventfd?.(0, closeOnExec) ?? -1;
    return fd < 0 ? undefined : new EventFd(fd);
  }

  /**
   * Calls the callback at the first event, never after disposal. Call this method only once. Until
   * the event, the wait occupies one thread of the libuv pool.
   */
  onEvent(happened: () => void): void {
    if (this.#use !== 'unused') throw new Error('EventFd.onEvent must be called only once');
    this.#use = 'waited-for';
    read(this.fd, Buffer.alloc(countBytes), 0, countBytes, null, (error) => {
      const isWanted = this.#use === 'waited-for' && error === null;
      this.#use = 'closed';
      closeSync(this.fd);
      if (isWanted) happened();
    });
  }

  /**
   * A reader that is blocked in a read still uses the descriptor: the reader is woken and then
   * closes the descriptor itself.
   */
  [Symbol.dispose](): void {
    const use = this.#use;
    this.#use = 'closed';
    if (use === 'unused') closeSync(this.fd);
    if (use === 'waited-for') writeSync(this.fd, Uint8Array.of(1, 0, 0, 0, 0, 0, 0, 0));
  }
}
